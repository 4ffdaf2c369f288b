// TaskEvent: wakes all tasks that wait.
#include <cerrno>

#include <tambour/task/event.h>

#include "loop/core.h"

namespace tambour {

TaskEvent::TaskEvent(EventLoop& loop, std::source_location created_at) noexcept
    : core_(&detail::loop::core_of(loop)), created_at_(created_at) {
  core_->check_thread_of(created_at);
  core_->attach();
}

TaskEvent::~TaskEvent() {
  core_->check_thread_unless_closed(created_at_);
  while (auto* const wait = waiting_.front()) wait->complete(ECANCELED);
  core_->detach();
}

void TaskEvent::set() noexcept {
  core_->check_thread_of(created_at_);
  set_ = true;
  // The waits succeed even if the event is reset or a task is asked to stop before it resumes.
  while (auto* const wait = waiting_.front()) wait->complete(0);
}

}  // namespace tambour
