// Signals, child processes, wall-clock times, file status, other loops.
// Includes all headers of <tambour/events/>.
#pragma once

#include <tambour/events/child.h>          // IWYU pragma: export
#include <tambour/events/embedded_loop.h>  // IWYU pragma: export
#include <tambour/events/file_status.h>    // IWYU pragma: export
#include <tambour/events/signal.h>         // IWYU pragma: export
#include <tambour/events/signal_set.h>     // IWYU pragma: export
#include <tambour/events/task_dump.h>      // IWYU pragma: export
#include <tambour/events/wall_sleep.h>     // IWYU pragma: export
#include <tambour/events/wall_timer.h>     // IWYU pragma: export
