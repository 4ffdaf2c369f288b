// The handle of a task that was spawned: awaits its result, or cancels it.
//
// A handle does not own its task: the scope or the loop does. Dropping the handle changes nothing
// for the task.
#pragma once

#include <cerrno>
#include <concepts>
#include <coroutine>
#include <exception>
#include <functional>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/detail/intrusive_list.h>
#include <tambour/detail/task_promise.h>
#include <tambour/detail/task_wait.h>
#include <tambour/task/awaitable.h>
#include <tambour/task/task.h>

namespace tambour::detail::loop {
class Core;
}  // namespace tambour::detail::loop

#pragma GCC visibility push(default)

namespace tambour {

class TaskScope;

namespace detail {

class JoinHandleBase;

/// A wait in JoinHandle::join().
class JoinWait : public TaskWait {
 public:
  [[nodiscard]] bool await_ready() const noexcept;
  template <HasTaskContext Promise>
  void await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    wait_in(queue(), awaiting, WaitNote(WaitKind::join, handle_), at);
  }

 protected:
  explicit JoinWait(JoinHandleBase& handle) noexcept;
  JoinWait(JoinWait&& other) noexcept;
  ~JoinWait();

  /// Ends the wait; returns the error, an errno value, with which it failed.
  int finish() noexcept;
  [[nodiscard]] JoinHandleBase& handle() const noexcept { return *handle_; }

 private:
  friend class JoinHandleBase;
  [[nodiscard]] TaskWaits& queue() noexcept;

  JoinHandleBase* handle_;  ///< Null: the handle was destroyed.
};

/// The part of a JoinHandle that does not depend on the type of the result. Observes the task until
/// it has ended, and passes its end on to the scope.
class JoinHandleBase : private TaskObserver, private HlistHook<JoinHandleBase> {
 public:
  JoinHandleBase& operator=(JoinHandleBase&&) = delete;

  /// False if the handle is empty: it was default-constructed or moved from.
  explicit operator bool() const noexcept { return state_ != State::empty; }

  /// True if the task has returned, thrown, or was destroyed, so that join() does not wait.
  [[nodiscard]] bool has_ended() const noexcept { return state_ > State::running; }

  /// Destroys the task where it is suspended, with everything that it owns and awaits, as
  /// destroying its scope would. join() then fails with ECANCELED. No effect if the task has ended
  /// or the handle is empty. A task that cancels itself aborts with a message. To let the task
  /// clean up in its own code instead, spawn it with with_stop_token(), and request a stop of that
  /// token.
  void cancel() noexcept;

 protected:
  JoinHandleBase() noexcept = default;
  JoinHandleBase(JoinHandleBase&& other) noexcept;
  ~JoinHandleBase() {
    if (state_ != State::empty) drop();
  }

  void start(TaskScope& scope, TaskPromiseBase& task, const std::source_location& at,
             const std::source_location& function);
  /// Takes over the task of `other`, after drop().
  void replace(JoinHandleBase& other) noexcept;
  /// Leaves the task to its scope, and becomes empty.
  void drop() noexcept;

  /// Moves the result of the task, which has returned, to the handle.
  virtual void store(TaskPromiseBase& task) = 0;
  /// Throws the exception of the task. Aborts with a message if the result was taken before.
  void begin_take();

 private:
  friend class HlistHook<JoinHandleBase>;
  friend class Hlist<JoinHandleBase>;
  friend class JoinWait;
  friend class tambour::TaskScope;
  enum class State : unsigned char {
    empty,
    running,
    returned,
    thrown,
    cancelled,
    taken,  ///< join() has returned the result or thrown the exception.
  };

  std::coroutine_handle<> task_ended(TaskPromiseBase& task) noexcept final;
  void task_destroyed() noexcept final;
  void end(State state) noexcept;
  /// The scope of a handle with an exception is destroyed first.
  void outlive_scope() noexcept;
  [[nodiscard]] loop::Core& core() const noexcept;

  TaskPromiseBase* task_ = nullptr;  ///< Null unless the task is running.
  TaskScope* scope_ = nullptr;       ///< While the task runs, or the handle has its exception.
  loop::Core* core_ = nullptr;       ///< Reference-counted. Null while the task is running.
  std::exception_ptr thrown_;
  JoinWait* join_ = nullptr;
  TaskWaits waiting_;  ///< `join_` until it completes.
  State state_ = State::empty;
};

/// The result of a task in a handle: an lvalue reference becomes a std::reference_wrapper.
template <class T>
using JoinedValue =
    std::conditional_t<std::is_lvalue_reference_v<T>,
                       std::reference_wrapper<std::remove_reference_t<T>>, std::remove_cvref_t<T>>;

}  // namespace detail

/// Awaits the result of a task that was spawned, or cancels the task. spawn() returns it. Like
/// Tokio's JoinHandle.
///
///   auto page = scope.spawn(fetch(url));
///   ...
///   const Result<Page> fetched = co_await page.join();
///
/// Ownership: the task belongs to its scope or loop. Dropping the handle, for example by ignoring
/// what spawn() returns, leaves it running there; its result is discarded.
/// Exceptions: if the task throws while the handle exists, join() throws the exception, and the
/// scope does not: its other tasks go on. A handle that is dropped with an exception that no join()
/// has thrown passes it on to the scope, as if the task had thrown it then; if the scope has been
/// destroyed, the exception propagates out of the loop's run().
/// Thread: must be used and destroyed on the loop's thread.
/// Lifetime: may outlive the task, the scope and the loop. A scope that is destroyed cancels its
/// tasks: join() fails with ECANCELED.
template <class T = void>
class JoinHandle final : public detail::JoinHandleBase {
 public:
  /// The result of join(): a Result<T> is unchanged, any other type is wrapped in a Result.
  using Value = detail::ResultOf<detail::JoinedValue<T>>;

  /// An empty handle; join() must not be called on it.
  JoinHandle() noexcept = default;
  JoinHandle(JoinHandle&& other) noexcept
      : JoinHandleBase(std::move(other)), value_(std::move(other.value_)) {
    other.value_.reset();
  }
  JoinHandle& operator=(JoinHandle&& other) noexcept {
    if (this == &other) return *this;
    drop();
    value_ = std::move(other.value_);
    other.value_.reset();
    replace(other);
    return *this;
  }
  ~JoinHandle() = default;

  /// For scopes, which start the task here: it runs until it first suspends.
  JoinHandle(TaskScope& scope, detail::TaskPromise<T>& task, const std::source_location& at,
             const std::source_location& function) {
    start(scope, task, at, function);
  }

  class Join final : public detail::JoinWait {
   public:
    static constexpr bool is_cancel_safe = true;

    explicit Join(JoinHandle& handle) noexcept : JoinWait(handle) {}
    Join(Join&& other) noexcept = default;
    Join& operator=(Join&&) = delete;
    ~Join() = default;

    Value await_resume() {
      if (const int error = this->finish(); error != 0) return std::unexpected(system_error(error));
      return static_cast<JoinHandle&>(this->handle()).take();
    }
  };

  /// Waits until the task has ended, and returns its result or throws its exception. Fails with
  /// ECANCELED if the awaiting task is asked to stop first: this task then keeps running, and
  /// join() may be called again. Fails with ECANCELED too if this task was cancelled or the handle
  /// was destroyed. The result can be taken once: a second join() aborts with a message, and so do
  /// two tasks that wait at the same time.
  [[nodiscard]] Join join() noexcept
    requires std::is_void_v<T> || std::move_constructible<detail::JoinedValue<T>>
  {
    return Join(*this);
  }

 private:
  static constexpr bool has_value = std::move_constructible<detail::JoinedValue<T>>;
  struct Nothing {};
  using Stored = std::conditional_t<has_value, detail::JoinedValue<T>, Nothing>;

  void store(detail::TaskPromiseBase& task) override {
    if constexpr (has_value) value_.emplace(static_cast<detail::TaskPromise<T>&>(task).take());
  }
  Value take() {
    begin_take();
    if constexpr (std::is_void_v<T>) {
      return {};
    } else {
      Value value(*std::move(value_));
      value_.reset();
      return value;
    }
  }

  std::optional<Stored> value_;
};

}  // namespace tambour

#pragma GCC visibility pop
