// Mutual exclusion between tasks of one loop, across their waits.
#pragma once

#include <coroutine>
#include <optional>
#include <source_location>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/detail/task_wait.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

/// A mutex that tasks await. Tasks of one loop run one at a time, so data that is not used across a
/// co_await needs no mutex. One is needed if, for example, two tasks each write several messages to
/// a stream that must not be interleaved:
///
///   const auto guard = co_await mutex.lock();
///   if (!guard) co_return;
///   if (!co_await stream.write(head)) co_return;
///   if (!co_await stream.write(body)) co_return;
///
/// Fairness: the tasks get the mutex in the order in which they wait for it. The task that gets it
/// resumes in the next iteration of the loop. Not recursive: a task that locks it twice waits
/// forever.
/// Thread: must be used on the loop's thread, which is checked; it does not synchronize threads.
/// Lifetime: if the mutex is destroyed while tasks wait, their waits fail with ECANCELED.
/// Destroying it while a Guard exists aborts with a message.
class TaskMutex {
 public:
  /// The mutex is not locked.
  explicit TaskMutex(EventLoop& loop,
                     std::source_location created_at = std::source_location::current()) noexcept;
  TaskMutex(const TaskMutex&) = delete;
  TaskMutex& operator=(const TaskMutex&) = delete;
  ~TaskMutex();

  /// Unlocks the mutex when it is destroyed.
  class [[nodiscard]] Guard {
   public:
    Guard(Guard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
    Guard& operator=(Guard&& other) noexcept {
      Guard(std::move(other)).swap(*this);
      return *this;
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard() { unlock(); }

    void swap(Guard& other) noexcept { std::swap(mutex_, other.mutex_); }
    /// Unlocks the mutex early. No effect if it was unlocked already or the guard was moved from.
    void unlock() noexcept {
      if (mutex_ != nullptr) std::exchange(mutex_, nullptr)->unlock();
    }

   private:
    friend class TaskMutex;
    explicit Guard(TaskMutex& mutex) noexcept : mutex_(&mutex) {}

    TaskMutex* mutex_;
  };

  class Lock;

  /// Waits for the mutex. Fails with ECANCELED if the task is asked to stop, or the mutex is
  /// destroyed, before the task got it.
  [[nodiscard]] Lock lock() noexcept;

  /// Returns nothing if the mutex is locked.
  [[nodiscard]] std::optional<Guard> try_lock() noexcept;

  /// True while a Guard exists.
  [[nodiscard]] bool is_locked() const noexcept { return locked_; }

 private:
  /// Returns false if it is locked.
  bool acquire(std::source_location function = std::source_location::current()) noexcept;
  /// Passes the mutex to the next waiting task.
  void unlock() noexcept;
  void unlock_and_pass_on() noexcept;

  detail::loop::Core* core_;  ///< Reference-counted; may outlive the loop.
  bool locked_ = false;
  /// The wait that has got the mutex and has not resumed yet.
  Lock* passed_to_ = nullptr;
  detail::TaskWaits waiting_;
  std::source_location created_at_;
};

/// The awaitable of lock(). May be moved until it is awaited.
class [[nodiscard]] TaskMutex::Lock final : private detail::TaskWait {
 public:
  static constexpr bool is_cancel_safe = true;

  explicit Lock(TaskMutex& mutex) noexcept
      : TaskWait(*mutex.core_, mutex.created_at_), mutex_(mutex) {}
  Lock(Lock&& other) noexcept
      : TaskWait(static_cast<TaskWait&&>(other), "TaskMutex::lock()"), mutex_(other.mutex_) {}
  Lock& operator=(Lock&&) = delete;
  ~Lock() {
    // The task was destroyed after it got the mutex.
    if (passed_) mutex_.unlock_and_pass_on();
  }

  [[nodiscard]] bool await_ready() noexcept { return mutex_.acquire(); }
  template <HasTaskContext Promise>
  void await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    wait_in(mutex_.waiting_, awaiting, WaitNote(WaitKind::mutex, &mutex_), at);
  }
  Result<Guard> await_resume() noexcept {
    if (error() != 0) return std::unexpected(system_error(error()));
    if (std::exchange(passed_, false)) mutex_.passed_to_ = nullptr;
    return Guard(mutex_);
  }

 private:
  friend class TaskMutex;
  TaskMutex& mutex_;  ///< May be destroyed during the wait.
  bool passed_ = false;
};

inline TaskMutex::Lock TaskMutex::lock() noexcept { return Lock(*this); }

inline std::optional<TaskMutex::Guard> TaskMutex::try_lock() noexcept {
  if (!acquire()) return std::nullopt;
  return Guard(*this);
}

}  // namespace tambour

#pragma GCC visibility pop
