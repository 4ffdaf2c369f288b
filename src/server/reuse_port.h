// Steers connections to one of the SO_REUSEPORT listeners of a port.
#pragma once

#include <span>

#include <tambour/base/result.h>

#include "backend/system.h"

namespace tambour::detail::server {

/// Returns the CPU to which this thread is pinned, or -1 if the thread may run on several.
int only_processor_of_this_thread() noexcept;

/// Steers connections that CPU `processors[i]` has received to the i-th listener that was bound,
/// and those of other CPUs to any listener. `listener` is one of them; all must be bound already.
Result<> steer_by_processor(backend::System& system, int listener,
                            std::span<const int> processors) noexcept;

}  // namespace tambour::detail::server
