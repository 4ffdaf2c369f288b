#include <tambour/task_event.h>

#include "loop/core.h"

namespace tambour {

TaskEvent::TaskEvent(EventLoop& loop, std::source_location created_at) noexcept
    : core_(&loop::core_of(loop)), created_at_(created_at) {
  core_->check_thread_of(created_at);
  core_->attach();
}

TaskEvent::~TaskEvent() {
  core_->check_thread_unless_closed(created_at_);
  while (auto* const link = waiting_.front()) {
    auto& wait = *static_cast<Wait*>(link);
    // A later stop request must not reach the core, which may be gone.
    wait.stop_.reset();
    wait.cancel();
  }
  core_->detach();
}

void TaskEvent::set() noexcept {
  core_->check_thread_of(created_at_);
  set_ = true;
  while (auto* const link = waiting_.front()) {
    link->unlink();
    auto& wait = *static_cast<Wait*>(link);
    // The wait succeeds even if the event is reset or the task is asked to stop before it resumes.
    wait.stop_.reset();
    core_->queue(wait);
  }
}

void TaskEvent::Wait::cancel() noexcept {
  cancelled_ = true;
  unlink();
  // If the loop was destroyed, the task is never resumed.
  if (!core_->closed()) core_->queue(*this);
}

void TaskEvent::Wait::run(detail::ReadyNode& ready) {
  auto& self = static_cast<Wait&>(ready);
  self.stop_.reset();
  Resumption::run(self.awaiting_);
}

}  // namespace tambour
