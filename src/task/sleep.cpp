// The stop requests of sleep_for() and of waits for readiness.
#include <cerrno>

#include <tambour/task/sleep.h>

#include "base/failure.h"
#include "loop/core.h"

namespace tambour {

void SleepFor::Stop::operator()() const noexcept {
  // If the loop was destroyed, the task is never resumed.
  if (core.closed()) return;
  // Resume in a later iteration, not inside the call that requests the stop.
  self.cancelled_ = true;
  self.timer_->start(Duration::zero());
}

void ReadinessWait::Stop::operator()() const noexcept {
  if (core.closed()) return;
  self.outcome_ = detail::base::failure(ECANCELED);
  self.watcher_->stop();
  // The task is resumed by the loop, not from inside request_stop().
  core.queue(self);
}

}  // namespace tambour
