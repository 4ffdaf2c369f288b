// TaskSemaphore: the permits, and the queue of tasks that wait for them.
#include <tambour/task/semaphore.h>

#include <cerrno>

#include "base/check.h"
#include "loop/core.h"

namespace tambour {

TaskSemaphore::TaskSemaphore(EventLoop& loop, std::size_t permits,
                             std::source_location created_at) noexcept
    : core_(&detail::loop::core_of(loop)), available_(permits), created_at_(created_at) {
  core_->check_thread_of(created_at);
  core_->attach();
}

TaskSemaphore::~TaskSemaphore() {
  core_->check_thread_unless_closed(created_at_);
  if (permits_ != 0) [[unlikely]] {
    detail::base::fail_check(
        "the TaskSemaphore created in %s:%u was destroyed while a Permit of it exists; destroy the "
        "Permit first, for example by declaring the semaphore before the scope of the tasks that "
        "acquire it",
        created_at_.file_name(), unsigned(created_at_.line()));
  }
  while (auto* const granted = static_cast<Acquire*>(granted_.front())) {
    granted->end();
    granted->complete(ECANCELED);
  }
  while (auto* const waiting = static_cast<Acquire*>(waiting_.front())) {
    waiting->end();
    waiting->complete(ECANCELED);
  }
  core_->detach();
}

void TaskSemaphore::add_permits(std::size_t count) noexcept {
  check_thread();
  give_back(count);
}

void TaskSemaphore::close() noexcept {
  check_thread();
  closed_ = true;
  while (auto* const waiting = static_cast<Acquire*>(waiting_.front())) {
    waiting->end();
    waiting->complete(EPIPE);
  }
}

bool TaskSemaphore::take(std::size_t count) noexcept {
  if (count > available_ || waiting_.front() != nullptr) return false;
  available_ -= count;
  return true;
}

void TaskSemaphore::give_back(std::size_t count) noexcept {
  core_->check_thread_unless_closed(created_at_);
  available_ += count;
  grant();
}

void TaskSemaphore::grant() noexcept {
  while (auto* const first = static_cast<Acquire*>(waiting_.front())) {
    if (first->count_ > available_) return;
    available_ -= first->count_;
    granted_.push_back(*first);
    first->grant();
  }
}

void TaskSemaphore::check_thread(std::source_location function) const noexcept {
  core_->check_thread_of(created_at_, function);
}

void TaskSemaphore::Acquire::grant() noexcept {
  state_ = State::granted;
  // A task that is stopped before it resumes returns its permits.
  complete_unless_stopped();
}

void TaskSemaphore::Acquire::leave() noexcept {
  const State left = state_;
  if (left == State::idle) return;
  end();
  if (left == State::granted) return semaphore_.give_back(count_);
  // The tasks behind this one may need fewer permits.
  detail::ReadyNode::unlink();
  semaphore_.grant();
}

}  // namespace tambour
