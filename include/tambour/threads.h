// Groups of loops, worker pools, tasks on other loops.
// Includes all headers of <tambour/threads/>.
#pragma once

#include <tambour/threads/loop_group.h>   // IWYU pragma: export
#include <tambour/threads/run_on.h>       // IWYU pragma: export
#include <tambour/threads/worker_pool.h>  // IWYU pragma: export
