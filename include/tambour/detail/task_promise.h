// The part of a task's promise that does not depend on the type of its result. Not part of the
// public interface: it is visible only because the promise of a Task derives from it.
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <source_location>

#include <tambour/detail/intrusive_list.h>
#include <tambour/detail/resumption.h>
#include <tambour/task/context.h>
#include <tambour/task/wait_kind.h>

namespace tambour::detail::task {
struct PromiseAccess;
}  // namespace tambour::detail::task

#pragma GCC visibility push(default)

namespace tambour::detail {

class TaskPromiseBase;

/// Aborts with a message that names the coroutine.
[[noreturn]] void fail_on_misplaced_frame(std::source_location at) noexcept;

// GCC 12 places the value of some conditions with co_await before the resume pointer of the frame,
// where no coroutine handle finds it; see "GCC 12 and co_await" in docs/tasks.md.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
#define TAMBOUR_CHECKS_FRAMES
#endif

/// Observes tasks that no coroutine awaits directly, for example those of a scope or of when_all().
class TaskObserver {
 public:
  /// Called when the task has ended and is suspended at its final suspend point; it may be
  /// destroyed here. Returns the coroutine to resume next, or null.
  virtual std::coroutine_handle<> task_ended(TaskPromiseBase& task) noexcept = 0;
  /// Called before a scope destroys a task that it does not observe itself.
  virtual void task_destroyed() noexcept {}
  /// True if the coroutine of this frame is one of the observed tasks, or is awaited by one.
  [[nodiscard]] virtual bool observes(const void* /*frame*/) const noexcept { return false; }

 protected:
  ~TaskObserver() = default;
};

/// The common base class of task promises. The link belongs to the observer's list, if any.
class TaskPromiseBase : public ListHook<TaskPromiseBase> {
 public:
  /// Transfers control to the awaiting coroutine.
  struct Final {
    [[nodiscard]] static bool await_ready() noexcept { return false; }
    template <std::derived_from<TaskPromiseBase> Promise>
    static void await_suspend(std::coroutine_handle<Promise> ended) noexcept {
      Resumption::transfer(ended, ended.promise().end());
    }
    static void await_resume() noexcept {}
  };

#ifdef TAMBOUR_CHECKS_FRAMES
  /// Suspends, and aborts with a message if the compiler has misplaced the promise.
  struct Initial {
    [[nodiscard]] static bool await_ready() noexcept { return false; }
    template <std::derived_from<TaskPromiseBase> Promise>
    static void await_suspend(std::coroutine_handle<Promise> created,
                              std::source_location at = std::source_location::current()) noexcept {
      // In a misplaced frame, this reads another member of the promise, which is null.
      const TaskPromiseBase& promise = created.promise();
      if (promise.context_ != &no_context) [[unlikely]]
        fail_on_misplaced_frame(at);
    }
    static void await_resume() noexcept {}
  };
#else
  using Initial = std::suspend_always;
#endif

  static Initial initial_suspend() noexcept { return {}; }
  static Final final_suspend() noexcept { return {}; }

  [[nodiscard]] const TaskContext& context() const noexcept { return *context_; }
  [[nodiscard]] std::coroutine_handle<> handle() noexcept {
    return std::coroutine_handle<>::from_address(reinterpret_cast<std::byte*>(this) -
                                                 offset_in_frame_);
  }

  /// `slot` is the owning pointer to this task, in the frame of the awaiting coroutine, which
  /// awaits it in `at`.
  template <HasTaskContext Promise>
  void await_from(std::coroutine_handle<Promise> awaiting, TaskPromiseBase*& slot,
                  const std::source_location& at) noexcept {
    context_ = &awaiting.promise().context();
    if constexpr (std::derived_from<Promise, TaskPromiseBase>) {
      parent_ = &awaiting.promise();
      parent_->note_place(at);
      parent_->awaited_ = &slot;
      waiter_ = Waiter::task;
    } else {
      awaiting_ = awaiting.address();
      waiter_ = Waiter::coroutine;
    }
  }
  void observe_from(TaskObserver& observer, const TaskContext& context) noexcept {
    observer_ = &observer;
    waiter_ = Waiter::observer;
    context_ = &context;
  }
  /// The task must have an observer, which may be replaced while the task exists.
  [[nodiscard]] TaskObserver& observer() const noexcept { return *observer_; }
  void set_observer(TaskObserver& observer) noexcept { observer_ = &observer; }
  /// Sets the observed tasks that this task awaits: `first` is one of them; null: none.
  void set_awaited(TaskPromiseBase** first) noexcept { awaited_ = first; }
  /// Puts this task into the ring of the tasks that one task awaits; `first` may be this task.
  void enter_ring(TaskPromiseBase& first) noexcept {
    if (&first == this) {
      insert_between(*this, *this);
    } else {
      insert_between(*first.previous_, first);
    }
  }

  /// For dumps of tasks: where the task awaits something, what, and since when.
#ifndef TAMBOUR_NO_TASK_DUMP
  void note_place(const std::source_location& at) noexcept { awaits_at_ = at; }
  void note_wait(WaitNote wait, std::source_location at) noexcept;
#else
  static void note_place(const std::source_location& /*at*/) noexcept {}
  static void note_wait(WaitNote /*wait*/, std::source_location /*at*/) noexcept {}
#endif

  /// True if `frame` is the frame of this task or of a task that it awaits.
  [[nodiscard]] bool is_or_awaits(const void* frame) const noexcept;

  /// Destroys the frame at any suspension point, after the frames of the tasks that it awaits.
  /// Aborts with a message if the task is running.
  void destroy() noexcept {
    if (ended_ || waiter_ == Waiter::none) {
      handle().destroy();
    } else {
      destroy_suspended();
    }
  }

  /// The exception that the task has thrown, or null.
  [[nodiscard]] const std::exception_ptr& exception() const noexcept { return thrown_; }
  void unhandled_exception() noexcept { thrown_ = std::current_exception(); }

 protected:
  explicit TaskPromiseBase(std::coroutine_handle<> handle) noexcept
      : offset_in_frame_(static_cast<std::uint16_t>(reinterpret_cast<std::byte*>(this) -
                                                    static_cast<std::byte*>(handle.address()))) {}
  ~TaskPromiseBase() = default;

 private:
  friend struct task::PromiseAccess;
  /// Which member of the union is set.
  enum class Waiter : std::uint8_t { none, task, coroutine, observer };

  /// Returns the coroutine to resume next.
  std::coroutine_handle<> end() noexcept {
    ended_ = true;
    switch (waiter_) {
      case Waiter::task:
        parent_->awaited_ = nullptr;
        return parent_->handle();
      case Waiter::coroutine:
        return std::coroutine_handle<>::from_address(awaiting_);
      case Waiter::observer:
        return observer_->task_ended(*this);
      case Waiter::none:
        break;
    }
    return nullptr;
  }
  [[nodiscard]] bool awaits_one() const noexcept {
    return awaited_ != nullptr && (*awaited_)->waiter_ == Waiter::task;
  }
  void destroy_suspended() noexcept;
  [[nodiscard]] const void* frame() const noexcept {
    return reinterpret_cast<const std::byte*>(this) - offset_in_frame_;
  }

  // clang-tidy takes the members of an anonymous union for public ones.
  union {
    TaskPromiseBase* parent_ = nullptr;  // NOLINT(readability-identifier-naming)
    void* awaiting_;                     // NOLINT(readability-identifier-naming)
    TaskObserver* observer_;             // NOLINT(readability-identifier-naming)
  };
  TaskPromiseBase** awaited_ = nullptr;  ///< The owning pointer to the task that this one awaits.
  const TaskContext* context_ = &no_context;
  std::exception_ptr thrown_;
  /// Of the promise; depends on its alignment. Each task has a promise, so it is small.
  std::uint16_t offset_in_frame_;
  Waiter waiter_ = Waiter::none;
  bool ended_ = false;
#ifndef TAMBOUR_NO_TASK_DUMP
  std::uint32_t waits_since_ = 0;  ///< See note_wait(). In what would be padding.
  WaitNote wait_;
  std::source_location awaits_at_;
#endif

  static const TaskContext no_context;
};

/// Tasks that no coroutine awaits.
using ObservedTasks = IntrusiveList<TaskPromiseBase>;

#undef TAMBOUR_CHECKS_FRAMES

}  // namespace tambour::detail

namespace tambour {

/// For the await_suspend() of awaitables: records for dumps of tasks what the task of `awaiting` is
/// about to wait for. `at` is the place of the co_await expression, which await_suspend() gets from
/// a default argument:
///
///   template <HasTaskContext Promise>
///   void await_suspend(std::coroutine_handle<Promise> awaiting,
///                      std::source_location at = std::source_location::current()) {
///     note_wait(awaiting, WaitNote(WaitKind::other, this), at);
///     ...
///
/// No effect if the coroutine is not a Task.
template <HasTaskContext Promise>
void note_wait(std::coroutine_handle<Promise> awaiting, WaitNote wait,
               const std::source_location& at) noexcept {
  if constexpr (std::derived_from<Promise, detail::TaskPromiseBase>)
    awaiting.promise().note_wait(wait, at);
}

}  // namespace tambour

#pragma GCC visibility pop
