// Which of the listeners on one port gets a connection.
#pragma once

#include <span>

#include <tambour/result.h>

#include "backend/system.h"

namespace tambour::net {

/// The processor that this thread is pinned to; -1 where it may run on several.
int only_processor_of_this_thread() noexcept;

/// Lets connections that processor `processors[i]` has received go to the i-th listener that was
/// bound, and those of other processors to any. `listener` is one of them; all are bound already.
Result<> steer_by_processor(backend::System& system, int listener,
                            std::span<const int> processors) noexcept;

}  // namespace tambour::net
