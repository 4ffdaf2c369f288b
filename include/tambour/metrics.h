// Counters, gauges and histograms, and their formats.
// Includes all headers of <tambour/metrics/>.
#pragma once

#include <tambour/metrics/exposition.h>  // IWYU pragma: export
#include <tambour/metrics/registry.h>    // IWYU pragma: export
