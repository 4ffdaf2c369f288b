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
#include <string_view>
#include <type_traits>
#include <utility>

#include <tambour/detail/task_promise.h>
#include <tambour/task/context.h>

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;
template <class T = void>
class Task;

namespace detail {

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
class TaskPromise final : public detail::TaskPromiseBase {
 public:
  TaskPromise() noexcept
      : detail::TaskPromiseBase(std::coroutine_handle<TaskPromise>::from_promise(*this)) {}

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
class TaskPromise<void> final : public detail::TaskPromiseBase {
 public:
  TaskPromise() noexcept
      : detail::TaskPromiseBase(std::coroutine_handle<TaskPromise>::from_promise(*this)) {}

  Task<> get_return_object() noexcept;
  static void return_void() noexcept {}

  void take() const {
    if (exception() != nullptr) std::rethrow_exception(exception());
  }
};

}  // namespace detail

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
  /// What compilers need to make coroutines that return this type, and what `co_await` returns.
  using promise_type = detail::TaskPromise<T>;
  using Value = T;
  /// A callback that returns a Task by mistake does not compile: see Callback.
  static constexpr bool starts_when_awaited = true;

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
  explicit operator bool() const& noexcept { return promise_ != nullptr; }
  /// A template, so that only a program that tests a temporary instantiates it.
  template <class Self = Task>
  explicit operator bool() const&& noexcept {
    static_assert(!std::same_as<Self, Task>,
                  "this tests the Task and not its result: write co_await before the call");
    return false;
  }

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
        detail::fail_on_empty_task("co_await", at);
      return false;
    }
    template <HasTaskContext Promise>
    void await_suspend(std::coroutine_handle<Promise> awaiting,
                       std::source_location at = std::source_location::current()) {
      promise_->await_from(awaiting, promise_, at);
      detail::Resumption::transfer(awaiting, promise_->handle());
    }
    T await_resume() { return static_cast<promise_type&>(*promise_).take(); }

   private:
    detail::TaskPromiseBase* promise_;
  };

  Awaiter operator co_await() && noexcept { return Awaiter(std::exchange(promise_, nullptr)); }
  /// A template, so that only a coroutine that awaits an lvalue instantiates it.
  template <class Self = Task>
  Awaiter operator co_await() & noexcept {
    static_assert(!std::same_as<Self, Task>,
                  "a Task is awaited once, as an rvalue: co_await std::move(task)");
    return Awaiter(nullptr);
  }

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

inline Task<> detail::TaskPromise<void>::get_return_object() noexcept { return Task<>(*this); }

/// Explains why the result of a Task cannot be taken from the Task.
template <class T>
void or_throw(const Task<T>& /*task*/, std::string_view /*context*/ = {}) {
  static_assert(std::same_as<T, Task<T>>,
                "this is a Task and not its result: write or_throw(co_await task)");
}

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
/// The object to await: see ThisTask.
inline constexpr ThisTask this_task;

}  // namespace tambour

#pragma GCC visibility pop
