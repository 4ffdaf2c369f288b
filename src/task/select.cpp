// select(): the branch that is tried first.
#include <tambour/task/select.h>

#include "loop/core.h"

namespace tambour::detail {

std::size_t first_branch(EventLoop& loop, std::size_t branches) noexcept {
  // Per loop, so that a simulation is reproducible.
  return loop::core_of(loop).next_selection() % branches;
}

}  // namespace tambour::detail
