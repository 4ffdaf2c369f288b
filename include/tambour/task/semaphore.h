// Limits how many tasks of one loop use a resource at the same time.
#pragma once

#include <cerrno>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/detail/task_wait.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour {

/// A counting semaphore that tasks await. Each permit allows one of a limited number of operations,
/// for example a query of a database that accepts 8 at the same time:
///
///   TaskSemaphore queries(loop, 8);
///   ...
///   const auto permit = co_await queries.acquire();
///   if (!permit) co_return;
///   const auto rows = co_await database.query(text);
///
/// Fairness: the tasks get their permits in the order in which they wait. A task that waits for
/// several permits is not overtaken by tasks that need fewer, which wait behind it although there
/// may be enough permits for them.
/// Cancellation: a task that is stopped before it has got its permits fails with ECANCELED, and
/// loses its place. No permit is lost: a task that is destroyed returns those that it has got.
/// Thread: must be used on the loop's thread, which is checked; it does not synchronize threads.
/// Lifetime: if the semaphore is destroyed while tasks wait, their waits fail with ECANCELED.
/// Destroying it while a Permit exists aborts with a message.
class TaskSemaphore {
 public:
  /// `permits`: how many can be acquired at the same time.
  TaskSemaphore(EventLoop& loop, std::size_t permits,
                std::source_location created_at = std::source_location::current()) noexcept;
  TaskSemaphore(const TaskSemaphore&) = delete;
  TaskSemaphore& operator=(const TaskSemaphore&) = delete;
  ~TaskSemaphore();

  /// Permits that were acquired together. Returns them when it is destroyed.
  class [[nodiscard]] Permit {
   public:
    Permit(Permit&& other) noexcept
        : semaphore_(std::exchange(other.semaphore_, nullptr)),
          count_(std::exchange(other.count_, 0)) {}
    Permit& operator=(Permit&& other) noexcept {
      Permit(std::move(other)).swap(*this);
      return *this;
    }
    Permit(const Permit&) = delete;
    Permit& operator=(const Permit&) = delete;
    ~Permit() { release(); }

    void swap(Permit& other) noexcept {
      std::swap(semaphore_, other.semaphore_);
      std::swap(count_, other.count_);
    }
    /// The number of permits; 0 after release() and forget(), and if this was moved from.
    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    /// Returns the permits early.
    void release() noexcept {
      if (semaphore_ == nullptr) return;
      --semaphore_->permits_;
      std::exchange(semaphore_, nullptr)->give_back(std::exchange(count_, 0));
    }
    /// Removes the permits from the semaphore, which has fewer from then on. See add_permits().
    void forget() noexcept {
      if (semaphore_ != nullptr) --std::exchange(semaphore_, nullptr)->permits_;
      count_ = 0;
    }

   private:
    friend class TaskSemaphore;
    Permit(TaskSemaphore& semaphore, std::size_t count) noexcept
        : semaphore_(&semaphore), count_(count) {
      ++semaphore.permits_;
    }

    TaskSemaphore* semaphore_;
    std::size_t count_;
  };

  class Acquire;

  /// Waits for `count` permits. Fails with EPIPE if the semaphore is closed, and with ECANCELED if
  /// the task is asked to stop, or the semaphore is destroyed, before the task got the permits. If
  /// there are never that many permits, the wait does not end.
  [[nodiscard]] Acquire acquire(std::size_t count = 1) noexcept;

  /// Returns nothing if there are fewer permits than `count`, if tasks wait, or if the semaphore is
  /// closed.
  [[nodiscard]] std::optional<Permit> try_acquire(std::size_t count = 1) noexcept;

  /// Adds permits, and resumes waiting tasks in order, as long as the permits suffice.
  void add_permits(std::size_t count) noexcept;

  /// From then on, acquire() fails with EPIPE, also in the tasks that wait. Existing permits stay
  /// valid. May be called more than once.
  void close() noexcept;
  [[nodiscard]] bool is_closed() const noexcept { return closed_; }

  /// The number of permits that can be acquired.
  [[nodiscard]] std::size_t available() const noexcept { return available_; }

 private:
  /// Returns false if there are fewer permits, or if tasks wait.
  [[nodiscard]] bool take(std::size_t count) noexcept;
  void give_back(std::size_t count) noexcept;
  /// Gives permits to the tasks that wait, as far as they suffice.
  void grant() noexcept;
  void check_thread(std::source_location function = std::source_location::current()) const noexcept;

  detail::loop::Core* core_;  ///< Reference-counted; may outlive the loop.
  std::size_t available_;
  std::size_t permits_ = 0;  ///< The Permit objects that exist.
  bool closed_ = false;
  detail::TaskWaits waiting_;
  /// The waits that have got their permits, and have not resumed yet.
  detail::AssignedTaskWait::List granted_;
  std::source_location created_at_;
};

/// The awaitable of acquire(). May be moved until it is awaited.
class [[nodiscard]] TaskSemaphore::Acquire final : private detail::AssignedTaskWait {
 public:
  static constexpr bool is_cancel_safe = true;

  Acquire(TaskSemaphore& semaphore, std::size_t count) noexcept
      : AssignedTaskWait(*semaphore.core_, semaphore.created_at_),
        semaphore_(semaphore),
        count_(count) {}
  Acquire(Acquire&& other) noexcept
      : AssignedTaskWait(static_cast<TaskWait&&>(other), "TaskSemaphore::acquire()"),
        semaphore_(other.semaphore_),
        count_(other.count_) {}
  Acquire& operator=(Acquire&&) = delete;
  ~Acquire() { leave(); }

  [[nodiscard]] bool await_ready() noexcept {
    semaphore_.check_thread();
    if (semaphore_.closed_) set_error(EPIPE);
    return error() != 0 || semaphore_.take(count_);
  }
  template <HasTaskContext Promise>
  void await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    state_ = State::waiting;
    wait_in(semaphore_.waiting_, awaiting, WaitNote(WaitKind::semaphore, &semaphore_), at);
  }
  Result<Permit> await_resume() noexcept {
    if (error() != 0) return std::unexpected(system_error(error()));
    end();
    return Permit(semaphore_, count_);
  }

 private:
  friend class TaskSemaphore;
  enum class State : std::uint8_t { idle, waiting, granted };
  /// The wait has got its permits.
  void grant() noexcept;
  /// The wait does not refer to the semaphore any more.
  void end() noexcept {
    unassign();
    state_ = State::idle;
  }
  /// The task is stopped or destroyed.
  void leave() noexcept;
  void cancelled() noexcept override { leave(); }

  TaskSemaphore& semaphore_;  ///< May be destroyed during the wait.
  std::size_t count_;
  State state_ = State::idle;
};

inline TaskSemaphore::Acquire TaskSemaphore::acquire(std::size_t count) noexcept {
  return {*this, count};
}

inline std::optional<TaskSemaphore::Permit> TaskSemaphore::try_acquire(std::size_t count) noexcept {
  check_thread();
  if (closed_ || !take(count)) return std::nullopt;
  return Permit(*this, count);
}

}  // namespace tambour

#pragma GCC visibility pop
