// The inspector of a running program, and the collector of its statistics.
// Includes all headers of <tambour/inspector/>.
#pragma once

#include <tambour/inspector/collector.h>  // IWYU pragma: export
#include <tambour/inspector/error.h>      // IWYU pragma: export
#include <tambour/inspector/inspector.h>  // IWYU pragma: export
