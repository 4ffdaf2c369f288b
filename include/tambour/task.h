// Coroutine tasks, scopes, channels and combinators.
// Includes all headers of <tambour/task/>.
#pragma once

#include <tambour/task/awaitable.h>     // IWYU pragma: export
#include <tambour/task/block_on.h>      // IWYU pragma: export
#include <tambour/task/cancellation.h>  // IWYU pragma: export
#include <tambour/task/channel.h>       // IWYU pragma: export
#include <tambour/task/combinators.h>   // IWYU pragma: export
#include <tambour/task/context.h>       // IWYU pragma: export
#include <tambour/task/dump.h>          // IWYU pragma: export
#include <tambour/task/event.h>         // IWYU pragma: export
#include <tambour/task/interval.h>      // IWYU pragma: export
#include <tambour/task/join_handle.h>   // IWYU pragma: export
#include <tambour/task/mutex.h>         // IWYU pragma: export
#include <tambour/task/scope.h>         // IWYU pragma: export
#include <tambour/task/select.h>        // IWYU pragma: export
#include <tambour/task/semaphore.h>     // IWYU pragma: export
#include <tambour/task/sleep.h>         // IWYU pragma: export
#include <tambour/task/task.h>          // IWYU pragma: export
#include <tambour/task/wait_kind.h>     // IWYU pragma: export
