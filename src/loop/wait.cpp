#include <tambour/wait.h>

#include <cerrno>

#include "loop/core.h"

namespace tambour {

void WaitForReadiness::Stop::operator()() const noexcept {
  self.outcome_ = std::unexpected(system_error(ECANCELED));
  self.watcher_->stop();
  // The task is resumed by the loop, not from inside request_stop().
  loop::core_of(loop).queue(self);
}

}  // namespace tambour
