// Structured concurrency: tasks that run concurrently with the code that spawned them, on a loop or
// in a scope that is joined.
#pragma once

#include <cerrno>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <source_location>
#include <stop_token>
#include <type_traits>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/base/result.h>
#include <tambour/detail/ready_node.h>
#include <tambour/detail/stop_hook.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/awaitable.h>
#include <tambour/task/task.h>

namespace tambour::detail::task {
struct ScopeAccess;
}  // namespace tambour::detail::task

#pragma GCC visibility push(default)

namespace tambour {

/// A callable that returns a Task when it is invoked with rvalues of these types.
template <class F, class... Args>
concept TaskFunction =
    std::move_constructible<F> && (std::move_constructible<Args> && ...) &&
    std::invocable<F, Args...> && detail::is_task<std::invoke_result_t<F, Args...>>;

namespace detail {

/// Runs `callable(arguments...)` inside a coroutine whose frame owns the callable and the
/// arguments, so that they exist until the task has ended. The task may refer to them. Throws
/// std::bad_alloc.
///
///   Task<int> sum = call_as_task([values]() -> Task<int> { ... });
template <class F, class... Args>
  requires TaskFunction<F, Args...>
std::invoke_result_t<F, Args...> call_as_task(F callable, Args... arguments) {
  if constexpr (std::is_member_pointer_v<F>) {
    co_return co_await std::invoke(callable, std::move(arguments)...);
  } else {
    // Without std::invoke(), so that objects to which arguments are converted exist until the task
    // has ended: a std::string that a parameter refers to, for example.
    co_return co_await std::move(callable)(std::move(arguments)...);
  }
}

}  // namespace detail

/// Owns tasks that run concurrently. The owner either awaits join() or destroys the scope, which
/// destroys the unfinished tasks at their suspension points.
///
///   TaskScope scope(loop);
///   for (TcpStream& peer : peers) scope.spawn(greet(peer));
///   co_await scope.join();
///
/// Errors: if a task throws, the others are asked to stop, and join() throws the first exception
/// when all have ended. An exception that no join() has thrown propagates out of the loop's run()
/// after the scope is destroyed, like an exception of a callback; it is lost only if the loop is
/// never run again.
/// Thread: must be used on the loop's thread, which is checked.
/// Lifetime: cannot be moved. A task may own the object that owns the scope, for example a session
/// that spawns `serve(shared_from_this())`, but a running task must not destroy its scope: that
/// aborts with a message.
class TaskScope final : private detail::TaskObserver {
 public:
  explicit TaskScope(EventLoop& loop,
                     std::source_location created_at = std::source_location::current());
  /// The tasks are also asked to stop when `outer` is: pass the stop token of the task that creates
  /// the scope, for example.
  TaskScope(EventLoop& loop, std::stop_token outer,
            std::source_location created_at = std::source_location::current());
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;
  ~TaskScope();

  /// Starts `task`, which runs immediately until it first suspends. It must not be empty. The stall
  /// detector names `at`.
  template <class T>
  void spawn(Task<T> task, std::source_location at = std::source_location::current()) {
    if (!task) [[unlikely]]
      detail::fail_on_empty_task("spawn()", at);
    start(task.release(), at, std::source_location::current());
  }

  /// Starts `callable(arguments...)`, which returns a Task, and keeps copies of the callable and
  /// its arguments in a coroutine frame until the task has ended. Use it for a lambda with
  /// captures: `scope.spawn([&]() -> Task<> { ... }())` would destroy the lambda before its
  /// coroutine resumes. The arguments are passed as rvalues, as by std::thread; pass a reference
  /// with std::ref(). With more than two arguments, the stall detector names the place in which the
  /// scope was created.
  template <class F>
    requires TaskFunction<std::decay_t<F>>
  void spawn(F&& callable, std::source_location at = std::source_location::current()) {
    start_call(at, std::source_location::current(), std::forward<F>(callable));
  }
  template <class F, class A>
    requires TaskFunction<std::decay_t<F>, std::decay_t<A>>
  void spawn(F&& callable, A&& argument,
             std::source_location at = std::source_location::current()) {
    start_call(at, std::source_location::current(), std::forward<F>(callable),
               std::forward<A>(argument));
  }
  template <class F, class A, class B>
    requires TaskFunction<std::decay_t<F>, std::decay_t<A>, std::decay_t<B>>
  void spawn(F&& callable, A&& first, B&& second,
             std::source_location at = std::source_location::current()) {
    start_call(at, std::source_location::current(), std::forward<F>(callable),
               std::forward<A>(first), std::forward<B>(second));
  }
  template <class F, class... Args>
    requires(sizeof...(Args) > 2) && TaskFunction<std::decay_t<F>, std::decay_t<Args>...>
  void spawn(F&& callable, Args&&... arguments) {
    start_call(created_at_, std::source_location::current(), std::forward<F>(callable),
               std::forward<Args>(arguments)...);
  }

  /// Asks the tasks to stop: their waits fail with ECANCELED. May be called more than once; no
  /// effect after the loop was destroyed.
  void request_stop() noexcept;
  [[nodiscard]] bool stop_requested() const noexcept { return stop_.stop_requested(); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /// Invoked with every exception of a task, instead of join() throwing it; the other tasks keep
  /// running. The handler may replace itself and may destroy the scope. An exception that it throws
  /// propagates out of the loop's run().
  void set_exception_handler(Callback<void(std::exception_ptr)> handler) noexcept;

  class StoppableJoin;
  class Join : private detail::ReadyNode {
   public:
    using Stoppable = StoppableJoin;
    static constexpr bool is_cancel_safe = true;

    explicit Join(TaskScope& scope) noexcept : ReadyNode(&run), scope_(&scope) {}
    Join(Join&& other) noexcept : ReadyNode(&run), scope_(other.scope_) {
      detail::check_not_awaited(other.awaiting_, "TaskScope::join()");
    }
    Join& operator=(Join&&) = delete;
    ~Join() = default;

    [[nodiscard]] bool await_ready() const noexcept { return scope_->empty(); }
    template <HasTaskContext Promise>
    void await_suspend(std::coroutine_handle<Promise> awaiting) noexcept {
      awaiting_ = awaiting;
      set_created_at(awaiting.promise().context().spawned_at);
      scope_->joins_.push_back(*this);
    }
    void await_resume() {
      if (!awaiting_) thrown_ = std::exchange(scope_->thrown_, nullptr);
      if (thrown_ != nullptr) std::rethrow_exception(std::move(thrown_));
    }

   private:
    friend class TaskScope;
    friend class StoppableJoin;
    static void run(ReadyNode& ready) {
      detail::Resumption::run(static_cast<Join&>(ready).awaiting_);
    }

    TaskScope* scope_;  ///< Null if the wait has ended.
    std::coroutine_handle<> awaiting_;
    std::exception_ptr thrown_;
  };

  /// What when_all(), when_any() and timeout() await in place of a Join. Fails with ECANCELED if it
  /// is asked to stop before the tasks have ended, which keep running.
  class StoppableJoin final : public Join, private detail::StopHook {
   public:
    using Stoppable = void;  ///< Not that of Join.

    explicit StoppableJoin(Join&& join) noexcept : Join(std::move(join)), StopHook(&cancel) {}
    StoppableJoin(StoppableJoin&& other) noexcept : StoppableJoin(static_cast<Join&&>(other)) {}
    StoppableJoin& operator=(StoppableJoin&&) = delete;
    ~StoppableJoin() = default;

    template <HasTaskContext Promise>
    void await_suspend(std::coroutine_handle<Promise> awaiting) noexcept {
      Join::await_suspend(awaiting);
      const TaskContext& context = awaiting.promise().context();
      context.waits.add(*this, context.stop);
    }
    Result<> await_resume() {
      ignore_stop();
      if (cancelled_) return std::unexpected(system_error(ECANCELED));
      Join::await_resume();
      return {};
    }

   private:
    static void cancel(StopHook& hook) noexcept;
    bool cancelled_ = false;
  };

  /// Waits until all tasks have ended, even if the caller is asked to stop: to stop the tasks as
  /// well, create the scope with the stop token of the caller's task. In when_all(), when_any() and
  /// timeout(), the wait fails with ECANCELED when it is asked to stop. If several tasks wait, the
  /// first of them gets the exception and is resumed first; the others are resumed in the next
  /// iteration of the loop. A join() also ends when the scope is destroyed.
  [[nodiscard]] Join join() noexcept { return Join(*this); }

 private:
  friend struct detail::task::ScopeAccess;
  struct [[gnu::visibility("hidden")]] OtherPlace;
  struct Forward {
    TaskScope& scope;
    void operator()() const noexcept;
  };

  template <class F, class... Args>
  void start_call(const std::source_location& at, const std::source_location& function,
                  F&& callable, Args&&... arguments) {
    start(detail::call_as_task(std::decay_t<F>(std::forward<F>(callable)),
                               std::decay_t<Args>(std::forward<Args>(arguments))...)
              .release(),
          at, function);
  }
  void start(detail::TaskPromiseBase& promise, const std::source_location& at,
             const std::source_location& function);
  [[nodiscard]] const TaskContext& context_at(const std::source_location& at) noexcept;
  /// True if the task with this context is one of the scope's tasks, or is awaited by one of them.
  [[nodiscard]] bool runs(const TaskContext& context) const noexcept {
    const TaskContext* task_context = &context;
    while (task_context != nullptr && task_context != &context_) task_context = task_context->outer;
    return task_context != nullptr;
  }
  /// Invoked whenever a task has ended and has been destroyed.
  void set_ended_handler(Callback<void()> handler) noexcept { ended_ = std::move(handler); }
  std::coroutine_handle<> task_ended(detail::TaskPromiseBase& task) noexcept override;
  void report(std::exception_ptr thrown) noexcept;
  std::coroutine_handle<> finish_joins() noexcept;
  /// Null if no task waits.
  Join* take_first_join() noexcept;

  detail::loop::Core* core_;  ///< Reference-counted; may outlive the loop.
  std::stop_source stop_;
  TaskContext context_;  ///< Of the tasks that were spawned in the place of the first one.
  detail::ObservedTasks tasks_;
  std::size_t size_ = 0;
  /// Set by the destructor, for member functions that are still on the stack.
  bool* destroyed_ = nullptr;
  detail::ReadyNodes joins_;  ///< A Join that is destroyed unlinks itself.
  std::exception_ptr thrown_;
  Callback<void(std::exception_ptr)> handler_;
  Callback<void()> ended_;
  std::source_location created_at_;
  std::unique_ptr<OtherPlace> places_;  ///< In which further tasks were spawned.
  std::stop_callback<Forward> outer_;
};

namespace detail {

/// The scope of the tasks that were spawned on the loop itself. Must be called on the loop's
/// thread; `function` is the public function that a failed check of the thread names. The first
/// call may throw std::bad_alloc.
[[nodiscard]] TaskScope& tasks_of(EventLoop& loop,
                                  std::source_location function = std::source_location::current());

}  // namespace detail

/// Runs `task`, which must not be empty, on `loop`: immediately until it first suspends. The loop
/// owns the task; destroying the loop first destroys the tasks that are still suspended. An
/// exception thrown by the task propagates out of the loop's run(), like an exception of a
/// callback. Must be called on the loop's thread; from another thread, post() a callback that calls
/// spawn().
template <class T>
void spawn(EventLoop& loop, Task<T> task,
           std::source_location at = std::source_location::current()) {
  detail::tasks_of(loop).spawn(std::move(task), at);
}

/// Runs the task that `callable(arguments...)` returns, on `loop`. The callable and the arguments
/// are copied or moved into a coroutine frame, and exist until the task has ended; see
/// TaskScope::spawn(). A coroutine that is a lambda refers to its captures in the lambda object,
/// not in its own frame:
///
///   spawn(loop, [peer = std::move(peer)]() mutable -> Task<> { co_await serve(peer); });
///
/// Without this form, that lambda would be destroyed at the end of the statement.
template <class F>
  requires TaskFunction<std::decay_t<F>>
void spawn(EventLoop& loop, F&& callable,
           std::source_location at = std::source_location::current()) {
  detail::tasks_of(loop).spawn(std::forward<F>(callable), at);
}
template <class F, class A>
  requires TaskFunction<std::decay_t<F>, std::decay_t<A>>
void spawn(EventLoop& loop, F&& callable, A&& argument,
           std::source_location at = std::source_location::current()) {
  detail::tasks_of(loop).spawn(std::forward<F>(callable), std::forward<A>(argument), at);
}
template <class F, class A, class B>
  requires TaskFunction<std::decay_t<F>, std::decay_t<A>, std::decay_t<B>>
void spawn(EventLoop& loop, F&& callable, A&& first, B&& second,
           std::source_location at = std::source_location::current()) {
  detail::tasks_of(loop).spawn(std::forward<F>(callable), std::forward<A>(first),
                               std::forward<B>(second), at);
}
template <class F, class... Args>
  requires(sizeof...(Args) > 2) && TaskFunction<std::decay_t<F>, std::decay_t<Args>...>
void spawn(EventLoop& loop, F&& callable, Args&&... arguments) {
  detail::tasks_of(loop).spawn(std::forward<F>(callable), std::forward<Args>(arguments)...);
}

}  // namespace tambour

#pragma GCC visibility pop
