// The waits for objects that threads share: how they end on the thread of their loop.
#include <tambour/detail/shared_wait.h>

#include <cerrno>
#include <chrono>
#include <new>

#include <tambour/detail/resumption.h>
#include <tambour/loop/event_loop.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/process_number.h"
#include "loop/core.h"
#include "threads/loop_inbox.h"

namespace tambour::detail {

SharedState::SharedState() noexcept {
  base::count_forks();
  process_number_ = base::process_number();
}

std::unique_lock<std::mutex> SharedState::lock() noexcept {
  if (is_of_parent()) return std::unique_lock(mutex_, std::defer_lock);
  return std::unique_lock(mutex_);
}

bool SharedState::is_of_parent() const noexcept {
  return process_number_ != base::process_number();
}

ThreadWait::ThreadWait(const char* function) noexcept {
  if (!loop::Core::is_any_running_on_this_thread()) [[likely]]
    return;
  base::fail_check(
      "%s called on a thread that runs an EventLoop, which it would block; co_await the function "
      "without \"blocking_\" in a task",
      function);
}

bool ThreadWait::wait(std::unique_lock<std::mutex>& lock, Duration limit) noexcept {
  const auto woken = [this] { return is_woken(); };
  const TimePoint now = Clock::now();
  const TimePoint deadline = base::saturating_add(now, limit);
  if (deadline == never) {
    condition_.wait(lock, woken);
  } else if (!condition_.wait_until(lock, deadline, woken)) {
    unlink();
    return false;
  }
  return true;
}

/// Throws std::bad_alloc.
threads::LoopInbox& SharedTaskWait::open_inbox(EventLoop& loop) {
  auto inbox = loop::core_of(loop).open_service<threads::LoopInbox>();
  if (!inbox) throw std::bad_alloc();
  mailbox_ = (*inbox)->mailbox();
  return **inbox;
}

void SharedTaskWait::expect(threads::LoopInbox& inbox) noexcept {
  inbox_ = &inbox;
  inbox.expect(*this);
}

/// Called on any thread.
void SharedTaskWait::notify() noexcept {
  // If the loop was destroyed, the task is never resumed.
  static_cast<void>(mailbox_->put(*this));
}

/// The loop has received this message, or a stop was requested, or this is a child after fork(2).
void SharedTaskWait::deliver() {
  inbox_->delivered();
  inbox_ = nullptr;
  ignore_stop();
  if (!received_) {
    const auto lock = state_->lock();
    SharedWait::unlink();
    if (error() == 0) set_error(ECANCELED);
  }
  Resumption::run(awaiting_);
}

/// The loop is destroyed before the task was resumed.
void SharedTaskWait::drop() noexcept {
  inbox_ = nullptr;
  ignore_stop();
  leave_queue();
}

void SharedTaskWait::leave_queue() noexcept {
  const auto lock = state_->lock();
  SharedWait::unlink();
  if (is_woken() && error() == 0) {
    static_cast<void>(give_back());
    set_error(ECANCELED);
  }
}

void SharedTaskWait::cancel() noexcept {
  if (inbox_ == nullptr) return;
  {
    const auto lock = state_->lock();
    if (is_woken()) {
      // The message is on its way, or has been received.
      if (error() == 0 && give_back()) set_error(ECANCELED);
      return;
    }
    SharedWait::unlink();
    set_error(ECANCELED);
  }
  inbox_->deliver_later(*this);
}

void SharedTaskWait::leave() noexcept {
  if (inbox_ == nullptr) return;
  leave_queue();
  static_cast<void>(mailbox_->refuse(*this));
  inbox_->remove(*this);
  inbox_ = nullptr;
}

void fail_on_empty_capacity(const char* type, std::source_location created_at) noexcept {
  base::fail_check("%s (created in %s:%u) got a capacity of 0; it must be at least 1", type,
                   created_at.file_name(), unsigned(created_at.line()));
}

void fail_on_second_wait(const char* function) noexcept {
  base::fail_check("%s awaited by two tasks at the same time; give each task a receiver of its own",
                   function);
}

}  // namespace tambour::detail
