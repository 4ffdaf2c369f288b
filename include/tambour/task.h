// Coroutine tasks: asynchronous code with sequential control flow.
//
// A Task is lazy: it starts when it is awaited or spawned, and runs on the thread of the loop that
// it was spawned on. A task waits by means of a watcher, a timer or an operation of that loop,
// whose callback resumes it.
//
// A task ends in one of three ways: it returns; it throws, and the exception propagates to the
// awaiting coroutine; or it is destroyed while it is suspended, together with all that its frame
// owns, the innermost task first. None of these recurses for tasks that await one another directly,
// so such a chain may have any length. Each nested when_all(), when_any() or timeout() is destroyed
// inside the destruction of the enclosing one, and so uses stack.
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <source_location>
#include <stop_token>
#include <type_traits>
#include <utility>

#include <tambour/detail/operation.h>
#include <tambour/detail/stop_hook.h>
#include <tambour/resumption.h>

namespace tambour {

class EventLoop;
template <class T = void>
class Task;

/// The context that a task inherits from the task that awaits it or from its scope. Outlives the
/// task.
struct TaskContext {
  EventLoop* loop = nullptr;
  /// If a stop is requested, the pending wait of the task ends early with ECANCELED. Request it on
  /// the loop's thread.
  std::stop_token stop;
  /// when_all(), when_any() and timeout() give their tasks a context of their own; `outer` is then
  /// the context of the awaiting task. Null in the context of a TaskScope.
  const TaskContext* outer = nullptr;
  /// Of the library: the pending waits that a stop request cancels.
  mutable detail::StopHooks waits = {};
};

/// A coroutine promise that has a TaskContext.
template <class Promise>
concept HasTaskContext = requires(const Promise& promise) {
  { promise.context() } -> std::convertible_to<const TaskContext&>;
};

class TaskPromiseBase;

/// Observes tasks that no coroutine awaits directly, for example those of a scope or of when_all().
class TaskObserver {
 public:
  /// Called when the task has ended and is suspended at its final suspend point; it may be
  /// destroyed here. Returns the coroutine to resume next, or null.
  virtual std::coroutine_handle<> task_ended(TaskPromiseBase& task) noexcept = 0;
  /// True if the coroutine of this frame is one of the observed tasks, or is awaited by one.
  [[nodiscard]] virtual bool observes(const void* /*frame*/) const noexcept { return false; }

 protected:
  ~TaskObserver() = default;
};

/// The common base class of task promises. The link belongs to the observer's list, if any.
class TaskPromiseBase : public detail::ListHook<TaskPromiseBase> {
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

  static std::suspend_always initial_suspend() noexcept { return {}; }
  static Final final_suspend() noexcept { return {}; }

  [[nodiscard]] const TaskContext& context() const noexcept { return *context_; }
  [[nodiscard]] std::coroutine_handle<> handle() noexcept {
    return std::coroutine_handle<>::from_address(reinterpret_cast<std::byte*>(this) -
                                                 offset_in_frame_);
  }

  /// `slot` is the owning pointer to this task, in the frame of the awaiting coroutine.
  template <HasTaskContext Promise>
  void await_from(std::coroutine_handle<Promise> awaiting, TaskPromiseBase*& slot) noexcept {
    context_ = &awaiting.promise().context();
    if constexpr (std::derived_from<Promise, TaskPromiseBase>) {
      parent_ = &awaiting.promise();
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
  /// Sets the observed tasks that this task awaits: `first` is one of them; null: none.
  void set_awaited(TaskPromiseBase** first) noexcept { awaited_ = first; }

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

  static const inline TaskContext no_context{};
};

/// These abort with a message.
[[noreturn]] void fail_on_empty_task(const char* function, std::source_location at) noexcept;
[[noreturn]] void fail_on_empty_range(const char* function, std::source_location at) noexcept;
[[noreturn]] void fail_on_moved_wait(const char* function) noexcept;

/// For the move constructors of awaitables, which may be moved until they are awaited: aborts with
/// a message if `awaiting` is not null. `function` returned the awaitable.
inline void check_not_awaited(std::coroutine_handle<> awaiting, const char* function) noexcept {
  if (awaiting) [[unlikely]]
    fail_on_moved_wait(function);
}

template <class T>
class TaskPromise final : public TaskPromiseBase {
 public:
  TaskPromise() noexcept
      : TaskPromiseBase(std::coroutine_handle<TaskPromise>::from_promise(*this)) {}

  Task<T> get_return_object() noexcept { return Task<T>(*this); }

  /// The default argument is for `co_return {};`, which has no type to deduce.
  template <class U = std::remove_cv_t<T>>
    requires std::convertible_to<U, T>
  void return_value(U&& value) {
    if constexpr (std::is_reference_v<T>) {
      value_.emplace(std::addressof(value));
    } else {
      value_.emplace(std::forward<U>(value));
    }
  }

  T take() {
    if (exception() != nullptr) std::rethrow_exception(exception());
    if constexpr (std::is_reference_v<T>) {
      return static_cast<T>(**value_);
    } else {
      return std::move(*value_);
    }
  }

 private:
  using Stored =
      std::conditional_t<std::is_reference_v<T>, std::add_pointer_t<std::remove_reference_t<T>>, T>;
  std::optional<Stored> value_;
};

template <>
class TaskPromise<void> final : public TaskPromiseBase {
 public:
  TaskPromise() noexcept
      : TaskPromiseBase(std::coroutine_handle<TaskPromise>::from_promise(*this)) {}

  Task<> get_return_object() noexcept;
  static void return_void() noexcept {}

  void take() const {
    if (exception() != nullptr) std::rethrow_exception(exception());
  }
};

/// A coroutine that returns a T. `co_return` accepts what converts to T: in a Task<Result<T>>, a
/// value, std::unexpected(error) or another Result; in a Task<Result<>>, `co_return {};` means
/// success.
///
/// Ownership: owns the coroutine frame, which is a task's only allocation. Destroying the Task
/// destroys the coroutine at its suspension point, after the tasks that it awaits, the innermost
/// first. A running task must not destroy itself.
/// Use: awaited once, as an rvalue: `co_await read_all(stream)`. The frame is destroyed at the end
/// of that expression. Awaiting or spawning an empty Task aborts with a message.
template <class T>
class [[nodiscard("a task does nothing until it is awaited or spawned")]] Task {
 public:
  using promise_type = TaskPromise<T>;
  using Value = T;

  Task() = default;
  Task(Task&& other) noexcept : promise_(std::exchange(other.promise_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    Task(std::move(other)).swap(*this);
    return *this;
  }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() {
    if (promise_ != nullptr) promise_->destroy();
  }

  void swap(Task& other) noexcept { std::swap(promise_, other.promise_); }

  /// False if the Task is empty: it was moved from, awaited or spawned.
  explicit operator bool() const noexcept { return promise_ != nullptr; }

  /// Owns the frame.
  class Awaiter {
   public:
    explicit Awaiter(promise_type* promise) noexcept : promise_(promise) {}
    Awaiter(const Awaiter&) = delete;
    Awaiter& operator=(const Awaiter&) = delete;
    ~Awaiter() {
      if (promise_ != nullptr) std::exchange(promise_, nullptr)->destroy();
    }

    [[nodiscard]] bool await_ready(
        std::source_location at = std::source_location::current()) const noexcept {
      if (promise_ == nullptr) [[unlikely]]
        fail_on_empty_task("co_await", at);
      return false;
    }
    template <HasTaskContext Promise>
    void await_suspend(std::coroutine_handle<Promise> awaiting) {
      promise_->await_from(awaiting, promise_);
      Resumption::transfer(awaiting, promise_->handle());
    }
    T await_resume() { return static_cast<promise_type&>(*promise_).take(); }

   private:
    TaskPromiseBase* promise_;
  };

  Awaiter operator co_await() && noexcept { return Awaiter(std::exchange(promise_, nullptr)); }

  /// For code that runs tasks without awaiting them, such as when_all() and scopes. The Task must
  /// not be empty.
  [[nodiscard]] promise_type& promise() noexcept { return *promise_; }
  [[nodiscard]] const promise_type& promise() const noexcept { return *promise_; }
  [[nodiscard]] promise_type& release() noexcept { return *std::exchange(promise_, nullptr); }

 private:
  friend promise_type;
  explicit Task(promise_type& promise) noexcept : promise_(&promise) {}

  promise_type* promise_ = nullptr;
};

inline Task<> TaskPromise<void>::get_return_object() noexcept { return Task<>(*this); }

/// `co_await this_task` returns the TaskContext of the current task without suspending it.
struct ThisTask {
  class Awaiter {
   public:
    [[nodiscard]] static bool await_ready() noexcept { return false; }
    template <HasTaskContext Promise>
    bool await_suspend(std::coroutine_handle<Promise> asking) noexcept {
      context_ = &asking.promise().context();
      return false;
    }
    [[nodiscard]] const TaskContext& await_resume() const noexcept { return *context_; }

   private:
    const TaskContext* context_ = nullptr;
  };
  Awaiter operator co_await() const noexcept { return {}; }
};
inline constexpr ThisTask this_task;

}  // namespace tambour
