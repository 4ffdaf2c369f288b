// Results, callbacks, clocks and file descriptors.
// Includes all headers of <tambour/base/>.
#pragma once

#include <tambour/base/callback.h>   // IWYU pragma: export
#include <tambour/base/clock.h>      // IWYU pragma: export
#include <tambour/base/cxx23.h>      // IWYU pragma: export
#include <tambour/base/log.h>        // IWYU pragma: export
#include <tambour/base/priority.h>   // IWYU pragma: export
#include <tambour/base/result.h>     // IWYU pragma: export
#include <tambour/base/unique_fd.h>  // IWYU pragma: export
#include <tambour/base/uuid.h>       // IWYU pragma: export
#include <tambour/base/version.h>    // IWYU pragma: export
