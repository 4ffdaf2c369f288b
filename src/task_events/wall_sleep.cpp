// The stop requests of waits for a time of the wall clock.
#include <tambour/events/wall_sleep.h>

#include <cerrno>

#include "base/failure.h"
#include "loop/core.h"

namespace tambour {

void WallSleep::Stop::operator()() const noexcept {
  // If the loop was destroyed, the task is never resumed.
  if (core.closed()) return;
  self.outcome_ = detail::base::failure(ECANCELED);
  self.timer_->stop();
  // The task is resumed by the loop, not from inside request_stop().
  core.queue(self);
}

}  // namespace tambour
