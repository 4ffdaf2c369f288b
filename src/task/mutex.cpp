// TaskMutex: the queue of tasks that wait, and the transfer to the first of them.
#include <tambour/task/mutex.h>

#include <cerrno>

#include "base/check.h"
#include "loop/core.h"

namespace tambour {

TaskMutex::TaskMutex(EventLoop& loop, std::source_location created_at) noexcept
    : core_(&detail::loop::core_of(loop)), created_at_(created_at) {
  core_->check_thread_of(created_at);
  core_->attach();
}

TaskMutex::~TaskMutex() {
  core_->check_thread_unless_closed(created_at_);
  if (passed_to_ != nullptr) {
    passed_to_->passed_ = false;
    passed_to_->complete(ECANCELED);
  } else if (locked_) [[unlikely]] {
    detail::base::fail_check(
        "the TaskMutex created in %s:%u was destroyed while it was locked; destroy its Guard "
        "first, "
        "for example by declaring the mutex before the scope of the tasks that lock it",
        created_at_.file_name(), unsigned(created_at_.line()));
  }
  while (auto* const wait = waiting_.front()) wait->complete(ECANCELED);
  core_->detach();
}

bool TaskMutex::acquire(std::source_location function) noexcept {
  core_->check_thread_of(created_at_, function);
  return !std::exchange(locked_, true);
}

void TaskMutex::unlock() noexcept {
  core_->check_thread_unless_closed(created_at_);
  auto* const next = static_cast<Lock*>(waiting_.front());
  if (next == nullptr) {
    locked_ = false;
    return;
  }
  passed_to_ = next;
  next->passed_ = true;
  next->complete(0);
}

void TaskMutex::unlock_and_pass_on() noexcept {
  passed_to_ = nullptr;
  unlock();
}

}  // namespace tambour
