// The priorities of callbacks.
#pragma once

#include <tambour/base/cxx23.h>

#pragma GCC visibility push(default)

namespace tambour {

/// Among the callbacks that are due in one iteration, those of higher priority run first. The
/// default is 0.
inline constexpr int priority_min = -2;
inline constexpr int priority_max = 2;

}  // namespace tambour

#pragma GCC visibility pop
