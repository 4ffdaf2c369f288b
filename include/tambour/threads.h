// Groups of loops, worker pools, tasks on other loops, channels between threads.
// Includes all headers of <tambour/threads/>.
#pragma once

#include <tambour/threads/broadcast.h>    // IWYU pragma: export
#include <tambour/threads/channel.h>      // IWYU pragma: export
#include <tambour/threads/completion.h>   // IWYU pragma: export
#include <tambour/threads/loop_group.h>   // IWYU pragma: export
#include <tambour/threads/per_loop.h>     // IWYU pragma: export
#include <tambour/threads/run_on.h>       // IWYU pragma: export
#include <tambour/threads/spawn_on.h>     // IWYU pragma: export
#include <tambour/threads/watch.h>        // IWYU pragma: export
#include <tambour/threads/worker_pool.h>  // IWYU pragma: export
