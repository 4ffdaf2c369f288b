// Waits in the queues of objects that threads share: channels between threads, broadcasts, watches.
// Not part of the public interface: it is visible only because an awaitable derives from it.
//
// A wait is a task of any loop, or a thread that blocks. It is a node in the frame of the task or
// on the stack of the thread, so waiting allocates nothing. The mutex of the object guards its
// queues and the nodes in them. A node that is woken leaves its queue; a task is then resumed by
// its own loop, which gets the node through its mailbox.
#pragma once

#include <condition_variable>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <mutex>
#include <source_location>
#include <utility>

#include <tambour/base/clock.h>
#include <tambour/detail/intrusive_list.h>
#include <tambour/detail/remote_call.h>
#include <tambour/detail/stop_hook.h>
#include <tambour/task/task.h>

namespace tambour::detail::threads {
class LoopInbox;
class LoopMailbox;
}  // namespace tambour::detail::threads

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

namespace detail {

/// The state of an object that threads share. The waits share ownership of it, so the object may be
/// destroyed during a wait.
class SharedState {
 public:
  SharedState() noexcept;
  SharedState(const SharedState&) = delete;
  SharedState& operator=(const SharedState&) = delete;

  /// In a child after fork(2), a thread that does not exist there may hold the mutex, so the lock
  /// is not taken, and the object must not be used.
  [[nodiscard]] std::unique_lock<std::mutex> lock() noexcept;
  [[nodiscard]] bool is_of_parent() const noexcept;

 protected:
  ~SharedState() = default;

 private:
  std::mutex mutex_;
  unsigned process_number_;  ///< Of the process that created the object.
};

/// A wait in a queue of a SharedState, whose lock must be held for all functions.
class SharedWait : public ListHook<SharedWait> {
 public:
  SharedWait(const SharedWait&) = delete;
  SharedWait& operator=(const SharedWait&) = delete;

  /// Ends the wait, and removes it from its queue. `error` is an errno value; 0: success.
  void wake(int error) noexcept {
    unlink();
    woken_ = true;
    error_ = error;
    notify();
  }

  /// The item to send.
  [[nodiscard]] void* item() const noexcept { return item_; }
  void set_item(void* item) noexcept { item_ = item; }

  [[nodiscard]] bool is_woken() const noexcept { return woken_; }
  [[nodiscard]] int error() const noexcept { return error_; }

 protected:
  SharedWait() = default;
  ~SharedWait() = default;

  virtual void notify() noexcept = 0;
  void set_error(int error) noexcept { error_ = error; }

 private:
  void* item_ = nullptr;
  bool woken_ = false;
  int error_ = 0;
};

using SharedWaits = IntrusiveList<SharedWait>;

/// The wait of a thread that blocks.
class ThreadWait final : public SharedWait {
 public:
  /// Aborts with a message that names `function` if a loop runs on this thread, which would be
  /// blocked.
  explicit ThreadWait(const char* function) noexcept;
  ~ThreadWait() = default;

  /// Blocks until the wait is woken. Returns false if the limit passed first; the wait has then
  /// left its queue. `lock` is released meanwhile.
  [[nodiscard]] bool wait(std::unique_lock<std::mutex>& lock, Duration limit) noexcept;

 private:
  void notify() noexcept override { condition_.notify_one(); }

  std::condition_variable condition_;
};

/// The wait of a task. A class that derives from it is final, and calls leave() in its destructor.
/// May be moved until it is awaited. While the task waits, its loop has a reference.
class SharedTaskWait : public SharedWait, private LoopMessage, private StopHook {
 public:
  SharedTaskWait& operator=(SharedTaskWait&&) = delete;

 protected:
  explicit SharedTaskWait(std::shared_ptr<SharedState> state) noexcept
      : StopHook(&cancel_hook), state_(std::move(state)) {}
  /// `function` returned the awaitable.
  SharedTaskWait(SharedTaskWait&& other, const char* function) noexcept
      : StopHook(&cancel_hook), state_(std::move(other.state_)) {
    check_not_awaited(other.awaiting_, function);
  }
  ~SharedTaskWait() = default;

  /// Puts the wait into `queue`, unless `attempt`, called with the lock, returns true. Returns
  /// false in that case: the task must not be suspended. Throws std::bad_alloc.
  template <HasTaskContext Promise>
  bool wait_in(SharedWaits& queue, std::coroutine_handle<Promise> awaiting, auto attempt) {
    const TaskContext& context = awaiting.promise().context();
    threads::LoopInbox& inbox = open_inbox(*context.loop);
    {
      const auto lock = state_->lock();
      if (attempt()) return false;
      // From here on another thread may wake this wait, but only the loop's thread resumes the
      // task.
      awaiting_ = awaiting;
      queue.push_back(*this);
    }
    expect(inbox);
    context.waits.add(*this, context.stop);
    return true;
  }

  /// Ends the wait of a task that is destroyed.
  void leave() noexcept;
  /// Ends the wait with ECANCELED. To be called on the thread of the task's loop. The task is
  /// resumed in a later iteration.
  void cancel() noexcept;

  /// The task of a wait that was woken without an error is stopped or destroyed: returns the item
  /// of the wait. Returns false if the wait succeeds nevertheless. The lock is held.
  [[nodiscard]] virtual bool give_back() noexcept = 0;

  [[nodiscard]] SharedState& state() const noexcept { return *state_; }
  using SharedWait::error;

 private:
  static void cancel_hook(StopHook& hook) noexcept { static_cast<SharedTaskWait&>(hook).cancel(); }
  threads::LoopInbox& open_inbox(EventLoop& loop);
  void expect(threads::LoopInbox& inbox) noexcept;
  void notify() noexcept final;
  void deliver() final;
  void drop() noexcept final;
  void leave_queue() noexcept;

  std::shared_ptr<SharedState> state_;
  std::coroutine_handle<> awaiting_;
  threads::LoopInbox* inbox_ = nullptr;  ///< Null unless the task waits and its loop exists.
  std::shared_ptr<threads::LoopMailbox> mailbox_;
};

/// Aborts with a message: the object was created with a capacity of 0.
[[noreturn]] void fail_on_empty_capacity(const char* type,
                                         std::source_location created_at) noexcept;
/// Aborts with a message: a second task waits.
[[noreturn]] void fail_on_second_wait(const char* function) noexcept;

}  // namespace detail
}  // namespace tambour

#pragma GCC visibility pop
