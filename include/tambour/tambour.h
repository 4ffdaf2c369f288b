// All of Tambour.
#pragma once

#include <tambour/async.h>          // IWYU pragma: export
#include <tambour/buffer.h>         // IWYU pragma: export
#include <tambour/callback.h>       // IWYU pragma: export
#include <tambour/child.h>          // IWYU pragma: export
#include <tambour/clock.h>          // IWYU pragma: export
#include <tambour/connection.h>     // IWYU pragma: export
#include <tambour/embedded_loop.h>  // IWYU pragma: export
#include <tambour/endpoint.h>       // IWYU pragma: export
#include <tambour/event_loop.h>     // IWYU pragma: export
#include <tambour/events.h>         // IWYU pragma: export
#include <tambour/fd_watcher.h>     // IWYU pragma: export
#include <tambour/file.h>           // IWYU pragma: export
#include <tambour/file_status.h>    // IWYU pragma: export
#include <tambour/hooks.h>          // IWYU pragma: export
#include <tambour/io_operation.h>   // IWYU pragma: export
#include <tambour/loop_stats.h>     // IWYU pragma: export
#include <tambour/operation.h>      // IWYU pragma: export
#include <tambour/pipe.h>           // IWYU pragma: export
#include <tambour/result.h>         // IWYU pragma: export
#include <tambour/signal.h>         // IWYU pragma: export
#include <tambour/simulation.h>     // IWYU pragma: export
#include <tambour/stream.h>         // IWYU pragma: export
#include <tambour/stream_server.h>  // IWYU pragma: export
#include <tambour/task.h>           // IWYU pragma: export
#include <tambour/task_event.h>     // IWYU pragma: export
#include <tambour/task_scope.h>     // IWYU pragma: export
#include <tambour/tcp.h>            // IWYU pragma: export
#include <tambour/timer.h>          // IWYU pragma: export
#include <tambour/unique_fd.h>      // IWYU pragma: export
#include <tambour/unix.h>           // IWYU pragma: export
#include <tambour/version.h>        // IWYU pragma: export
#include <tambour/wait.h>           // IWYU pragma: export
#include <tambour/wall_timer.h>     // IWYU pragma: export
#include <tambour/when.h>           // IWYU pragma: export
#include <tambour/worker_pool.h>    // IWYU pragma: export
