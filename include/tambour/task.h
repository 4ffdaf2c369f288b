// Coroutines: code that waits and reads as if it blocked.
//
// A Task is lazy: nothing runs until it is awaited or spawned, and it then runs on the thread of
// the loop that it was spawned on. What it waits for is a watcher, a timer or an operation of that
// loop, whose callback resumes it; there is no second machinery.
//
// A task ends in one of three ways. It returns; it throws, and the exception reaches whoever awaits
// it; or it is destroyed while it waits, and with it, from the inside out, all that it owns.
#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <memory>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <variant>

#include <tambour/operation.h>

namespace tambour {

class EventLoop;
template <class T = void>
class Task;

/// What a task inherits from whoever awaits or spawns it. Lives longer than the task.
struct TaskContext {
  EventLoop* loop = nullptr;
  /// Where this is requested, what the task waits for ends early with ECANCELED. Request it on the
  /// loop's own thread.
  std::stop_token stop;
  /// The context of the task that awaits when_all(), when_any() or timeout(), which give their
  /// tasks a context of their own; null in the context of a TaskScope.
  const TaskContext* outer = nullptr;
};

/// A coroutine that can tell what it inherited.
template <class Promise>
concept HasTaskContext = requires(const Promise& promise) {
  { promise.context() } -> std::convertible_to<const TaskContext&>;
};

/// Is told that a task has ended, which then rests where it ended, to be destroyed from here on.
/// Says what to resume.
class TaskObserver {
 public:
  virtual std::coroutine_handle<> task_ended(Link& task) noexcept = 0;

 protected:
  ~TaskObserver() = default;
};

/// What the promises of all tasks share. The link is that of the observer's list, if it has one.
class TaskPromiseBase : public Link {
 public:
  /// Resumes whoever awaits, without growing the stack.
  struct Final {
    [[nodiscard]] static bool await_ready() noexcept { return false; }
    template <std::derived_from<TaskPromiseBase> Promise>
    static std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) noexcept {
      TaskPromiseBase& self = ended.promise();
      if (self.observer_ != nullptr) return self.observer_->task_ended(self);
      return self.awaiting_;
    }
    static void await_resume() noexcept {}
  };

  static std::suspend_always initial_suspend() noexcept { return {}; }
  static Final final_suspend() noexcept { return {}; }

  [[nodiscard]] const TaskContext& context() const noexcept { return *context_; }
  [[nodiscard]] std::coroutine_handle<> handle() noexcept { return handle_; }

  void await_from(std::coroutine_handle<> awaiting, const TaskContext& context) noexcept {
    awaiting_ = awaiting;
    context_ = &context;
  }
  void observe_from(TaskObserver& observer, const TaskContext& context) noexcept {
    observer_ = &observer;
    context_ = &context;
  }
  /// What it threw; null where it did not.
  [[nodiscard]] virtual std::exception_ptr exception() const noexcept = 0;

 protected:
  explicit TaskPromiseBase(std::coroutine_handle<> handle) noexcept : handle_(handle) {}
  ~TaskPromiseBase() = default;

 private:
  std::coroutine_handle<> handle_;
  std::coroutine_handle<> awaiting_ = std::noop_coroutine();
  TaskObserver* observer_ = nullptr;
  const TaskContext* context_ = &no_context;

  static const inline TaskContext no_context{};
};

template <class T>
class TaskPromise final : public TaskPromiseBase {
 public:
  TaskPromise() noexcept
      : TaskPromiseBase(std::coroutine_handle<TaskPromise>::from_promise(*this)) {}

  Task<T> get_return_object() noexcept { return Task<T>(*this); }

  template <class U>
    requires std::convertible_to<U, T>
  void return_value(U&& value) {
    if constexpr (std::is_reference_v<T>) {
      outcome_.template emplace<1>(std::addressof(value));
    } else {
      outcome_.template emplace<1>(std::forward<U>(value));
    }
  }
  void unhandled_exception() noexcept { outcome_.template emplace<2>(std::current_exception()); }

  [[nodiscard]] std::exception_ptr exception() const noexcept override {
    const auto* thrown = std::get_if<2>(&outcome_);
    return thrown == nullptr ? nullptr : *thrown;
  }
  T take() {
    if (auto* thrown = std::get_if<2>(&outcome_)) std::rethrow_exception(*thrown);
    if constexpr (std::is_reference_v<T>) {
      return static_cast<T>(*std::get<1>(outcome_));
    } else {
      return std::move(std::get<1>(outcome_));
    }
  }

 private:
  using Stored =
      std::conditional_t<std::is_reference_v<T>, std::add_pointer_t<std::remove_reference_t<T>>, T>;
  std::variant<std::monostate, Stored, std::exception_ptr> outcome_;
};

template <>
class TaskPromise<void> final : public TaskPromiseBase {
 public:
  TaskPromise() noexcept
      : TaskPromiseBase(std::coroutine_handle<TaskPromise>::from_promise(*this)) {}

  Task<> get_return_object() noexcept;
  static void return_void() noexcept {}
  void unhandled_exception() noexcept { thrown_ = std::current_exception(); }

  [[nodiscard]] std::exception_ptr exception() const noexcept override { return thrown_; }
  void take() const {
    if (thrown_ != nullptr) std::rethrow_exception(thrown_);
  }

 private:
  std::exception_ptr thrown_;
};

/// The caller of a coroutine function holds this, and with it the coroutine's frame, which is all
/// that a task allocates. Destroying it destroys the coroutine wherever it is; it must not be
/// running. Awaited once, as an rvalue: `co_await read_all(stream)`.
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
    if (promise_ != nullptr) promise_->handle().destroy();
  }

  void swap(Task& other) noexcept { std::swap(promise_, other.promise_); }

  /// False once it was moved from, or spawned.
  explicit operator bool() const noexcept { return promise_ != nullptr; }

  class Awaiter {
   public:
    explicit Awaiter(promise_type& promise) noexcept : promise_(promise) {}
    [[nodiscard]] static bool await_ready() noexcept { return false; }
    template <HasTaskContext Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> awaiting) noexcept {
      promise_.await_from(awaiting, awaiting.promise().context());
      return promise_.handle();
    }
    T await_resume() { return promise_.take(); }

   private:
    promise_type& promise_;
  };

  Awaiter operator co_await() && noexcept { return Awaiter(*promise_); }

  /// For what runs tasks otherwise than by awaiting them: when_all, scopes.
  [[nodiscard]] promise_type& promise() noexcept { return *promise_; }
  [[nodiscard]] promise_type& release() noexcept { return *std::exchange(promise_, nullptr); }

 private:
  friend promise_type;
  explicit Task(promise_type& promise) noexcept : promise_(&promise) {}

  promise_type* promise_ = nullptr;
};

inline Task<> TaskPromise<void>::get_return_object() noexcept { return Task<>(*this); }

/// `co_await this_task` is the TaskContext of the task that says so; never waits.
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
