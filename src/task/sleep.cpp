// The stop requests of sleeps and of waits for readiness.
#include <tambour/task/sleep.h>

#include <cerrno>

#include "base/failure.h"
#include "loop/core.h"

namespace tambour {

void detail::Sleep::cancel(const loop::Core& core) noexcept {
  // If the loop was destroyed, the task is never resumed.
  if (core.closed()) return;
  // Resume in a later iteration, not inside the call that requests the stop.
  cancelled_ = true;
  timer_->start(Duration::zero());
}

void ReadinessWait::Stop::operator()() const noexcept {
  if (core.closed()) return;
  self.outcome_ = detail::base::failure(ECANCELED);
  self.watcher_->stop();
  // The task is resumed by the loop, not from inside request_stop().
  core.queue(self);
}

}  // namespace tambour
