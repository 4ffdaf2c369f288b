// Processes, and zero-downtime restarts.
// Includes all headers of <tambour/process/>.
#pragma once

#include <tambour/process/inherited_listeners.h>  // IWYU pragma: export
#include <tambour/process/process.h>              // IWYU pragma: export
#include <tambour/process/run_until_signal.h>     // IWYU pragma: export
