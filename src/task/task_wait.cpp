// How the waits in the queues of events, channels and mutexes end.
#include <tambour/detail/task_wait.h>

#include <cerrno>

#include "loop/core.h"

namespace tambour::detail {

void TaskWait::complete(int error) noexcept {
  // A later stop request must not reach the core, which may have been deleted.
  ignore_stop();
  error_ = error;
  complete_unless_stopped();
}

void TaskWait::complete_unless_stopped() noexcept {
  unlink();
  // If the loop was destroyed, the task is never resumed.
  if (!core_->closed()) core_->queue(*this);
}

void TaskWait::cancel() noexcept {
  if (error_ == 0) error_ = ECANCELED;
  cancelled();
  complete_unless_stopped();
}

void TaskWait::run(ReadyNode& ready) {
  auto& self = static_cast<TaskWait&>(ready);
  self.ignore_stop();
  Resumption::run(self.awaiting_);
}

}  // namespace tambour::detail
