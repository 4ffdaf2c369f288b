// The event loop, timers, descriptor watchers, hooks.
// Includes all headers of <tambour/loop/>.
#pragma once

#include <tambour/loop/async.h>       // IWYU pragma: export
#include <tambour/loop/control.h>     // IWYU pragma: export
#include <tambour/loop/event_loop.h>  // IWYU pragma: export
#include <tambour/loop/fd_watcher.h>  // IWYU pragma: export
#include <tambour/loop/hooks.h>       // IWYU pragma: export
#include <tambour/loop/options.h>     // IWYU pragma: export
#include <tambour/loop/readiness.h>   // IWYU pragma: export
#include <tambour/loop/stats.h>       // IWYU pragma: export
#include <tambour/loop/timer.h>       // IWYU pragma: export
