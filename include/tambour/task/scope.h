// Structured concurrency: tasks that run concurrently with the code that spawned them, on a loop or
// in a scope that is joined.
#pragma once

#include <cerrno>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <functional>
#include <source_location>
#include <stop_token>
#include <type_traits>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/detail/ready_node.h>
#include <tambour/detail/stop_hook.h>
#include <tambour/detail/task_list.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/awaitable.h>
#include <tambour/task/join_handle.h>  // IWYU pragma: export
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

template <class F, class... Args>
using HandleOf =
    JoinHandle<typename std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>::Value>;

}  // namespace detail

/// Owns tasks that run concurrently. The owner either awaits join() or destroys the scope, which
/// destroys the unfinished tasks at their suspension points.
///
///   TaskScope scope(loop);
///   for (TcpStream& peer : peers) scope.spawn(greet(peer));
///   co_await scope.join();
///
/// Errors: if a task throws, the others are asked to stop, and join() throws the first exception
/// when all have ended. If the program has kept the handle of that task, the exception belongs to
/// the handle instead: JoinHandle::join() throws it, and the other tasks go on. An exception that
/// no join() has thrown propagates out of the loop's run() after the scope is destroyed, like an
/// exception of a callback; it is lost only if the loop is never run again.
/// Thread: must be used on the loop's thread, which is checked.
/// Lifetime: cannot be moved. A task may own the object that owns the scope, for example a session
/// that spawns `serve(shared_from_this())`, but a running task must not destroy its scope: that
/// aborts with a message.
class TaskScope final : private detail::TaskObserver {
 public:
  /// A scope without tasks. Throws std::bad_alloc.
  explicit TaskScope(EventLoop& loop,
                     std::source_location created_at = std::source_location::current());
  /// The tasks are also asked to stop when `outer` is: pass the stop token of the task that creates
  /// the scope, for example.
  TaskScope(EventLoop& loop, std::stop_token outer,
            std::source_location created_at = std::source_location::current());
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;
  ~TaskScope();

  /// Starts `task`, which runs immediately until it first suspends. It must not be empty. The
  /// handle that is returned awaits or cancels this one task; if it is dropped, the task keeps
  /// running in the scope. The stall detector names `at`.
  ///
  ///   auto user = scope.spawn(load_user(id));
  ///   ...
  ///   Result<User> loaded = co_await user.join();
  template <class T>
  JoinHandle<T> spawn(Task<T> task, std::source_location at = std::source_location::current()) {
    if (!task) [[unlikely]]
      detail::fail_on_empty_task("spawn()", at);
    return JoinHandle<T>(*this, task.release(), at, std::source_location::current());
  }

  /// Starts `callable(arguments...)`, which returns a Task, and keeps copies of the callable and
  /// its arguments in a coroutine frame until the task has ended. Use it for a lambda with
  /// captures: `scope.spawn([&]() -> Task<> { ... }())` would destroy the lambda before its
  /// coroutine resumes. The arguments are passed as rvalues, as by std::thread; pass a reference
  /// with std::ref(). With more than two arguments, the stall detector names the place in which the
  /// scope was created.
  template <class F>
    requires TaskFunction<std::decay_t<F>>
  detail::HandleOf<F> spawn(F&& callable,
                            std::source_location at = std::source_location::current()) {
    return start_call(at, std::source_location::current(), std::forward<F>(callable));
  }
  template <class F, class A>
    requires TaskFunction<std::decay_t<F>, std::decay_t<A>>
  detail::HandleOf<F, A> spawn(F&& callable, A&& argument,
                               std::source_location at = std::source_location::current()) {
    return start_call(at, std::source_location::current(), std::forward<F>(callable),
                      std::forward<A>(argument));
  }
  template <class F, class A, class B>
    requires TaskFunction<std::decay_t<F>, std::decay_t<A>, std::decay_t<B>>
  detail::HandleOf<F, A, B> spawn(F&& callable, A&& first, B&& second,
                                  std::source_location at = std::source_location::current()) {
    return start_call(at, std::source_location::current(), std::forward<F>(callable),
                      std::forward<A>(first), std::forward<B>(second));
  }
  template <class F, class... Args>
    requires(sizeof...(Args) > 2) && TaskFunction<std::decay_t<F>, std::decay_t<Args>...>
  detail::HandleOf<F, Args...> spawn(F&& callable, Args&&... arguments) {
    return start_call(created_at_, std::source_location::current(), std::forward<F>(callable),
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

  class Join;
  /// The awaitable of join(), except that it ignores stop requests: for the library.
  class JoinToEnd : private detail::ReadyNode {
   public:
    explicit JoinToEnd(TaskScope& scope) noexcept : ReadyNode(&run), scope_(&scope) {}
    JoinToEnd(JoinToEnd&& other) noexcept : ReadyNode(&run), scope_(other.scope_) {
      detail::check_not_awaited(other.awaiting_, "TaskScope::join()");
    }
    JoinToEnd& operator=(JoinToEnd&&) = delete;
    ~JoinToEnd() = default;

    [[nodiscard]] bool await_ready() const noexcept { return scope_->empty(); }
    template <HasTaskContext Promise>
    void await_suspend(std::coroutine_handle<Promise> awaiting,
                       std::source_location at = std::source_location::current()) noexcept {
      note_wait(awaiting, WaitNote(WaitKind::join, scope_), at);
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
    friend class Join;
    static void run(ReadyNode& ready) {
      detail::Resumption::run(static_cast<JoinToEnd&>(ready).awaiting_);
    }

    TaskScope* scope_;  ///< Null if the wait has ended.
    std::coroutine_handle<> awaiting_;
    std::exception_ptr thrown_;
  };

  class Join final : public JoinToEnd, private detail::StopHook {
   public:
    static constexpr bool is_cancel_safe = true;

    explicit Join(TaskScope& scope) noexcept : JoinToEnd(scope), StopHook(&cancel) {}
    Join(Join&& other) noexcept : JoinToEnd(std::move(other)), StopHook(&cancel) {}
    Join& operator=(Join&&) = delete;
    ~Join() = default;

    template <HasTaskContext Promise>
    void await_suspend(std::coroutine_handle<Promise> awaiting,
                       std::source_location at = std::source_location::current()) noexcept {
      JoinToEnd::await_suspend(awaiting, at);
      const TaskContext& context = awaiting.promise().context();
      context.waits.add(*this, context.stop);
    }
    Result<> await_resume() {
      ignore_stop();
      if (cancelled_) return std::unexpected(system_error(ECANCELED));
      JoinToEnd::await_resume();
      return {};
    }

   private:
    static void cancel(StopHook& hook) noexcept;
    bool cancelled_ = false;
  };

  /// Waits until all tasks have ended. Fails with ECANCELED if the awaiting task is asked to stop
  /// first; the tasks then keep running until the scope is destroyed or asked to stop. So a time
  /// limit works as for other waits: `co_await timeout(1s, scope.join())` fails with ETIMEDOUT
  /// after a second. Throws the first exception of a task, when all have ended. If several tasks
  /// wait, the first of them gets the exception and is resumed first; the others are resumed in the
  /// next iteration of the loop. A join() also ends, without an error, when the scope is destroyed.
  [[nodiscard]] Join join() noexcept { return Join(*this); }

  /// Waits up to `grace` until all tasks have ended, asks the remaining ones to stop, and waits for
  /// these. If the awaiting task is asked to stop, the remaining ones are asked at once; it still
  /// waits until they have ended. Throws the first exception of a task, like join(). Must not be
  /// awaited by a task of this scope, which would wait for itself: aborts with a message. The scope
  /// must exist until the wait has ended.
  Task<> shut_down(Duration grace);

 private:
  friend struct detail::task::ScopeAccess;
  friend class detail::JoinHandleBase;
  struct [[gnu::visibility("hidden")]] OtherPlace;
  struct Forward {
    TaskScope& scope;
    void operator()() const noexcept;
  };

  template <class F, class... Args>
  detail::HandleOf<F, Args...> start_call(const std::source_location& at,
                                          const std::source_location& function, F&& callable,
                                          Args&&... arguments) {
    return detail::HandleOf<F, Args...>(
        *this,
        detail::call_as_task(std::decay_t<F>(std::forward<F>(callable)),
                             std::decay_t<Args>(std::forward<Args>(arguments))...)
            .release(),
        at, function);
  }
  /// `observer` is the scope, or a handle that passes what it observes on to the scope.
  void start(detail::TaskPromiseBase& promise, detail::TaskObserver& observer,
             const std::source_location& at, const std::source_location& function);
  [[nodiscard]] bool end_task(detail::TaskPromiseBase& task, std::exception_ptr thrown) noexcept;
  /// Destroys a task, which must not be running.
  void destroy_task(detail::TaskPromiseBase& task) noexcept;
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
  void queue_joins() noexcept;
  /// Null if no task waits.
  JoinToEnd* take_first_join() noexcept;

  detail::loop::Core* core_;  ///< Reference-counted; may outlive the loop.
  std::stop_source stop_;
  TaskContext context_;  ///< Of the tasks that were spawned in the place of the first one.
  detail::TaskList tasks_;
  std::size_t size_ = 0;
  /// Set by the destructor, for member functions that are still on the stack.
  bool* destroyed_ = nullptr;
  detail::ReadyNodes joins_;  ///< A Join that is destroyed unlinks itself.
  /// Those with an exception that no join() has thrown.
  detail::Hlist<detail::JoinHandleBase> failed_handles_;
  std::exception_ptr thrown_;
  Callback<void(std::exception_ptr)> handler_;
  Callback<void()> ended_;
  std::source_location created_at_;
  detail::OwnedPointer<OtherPlace> places_;  ///< In which further tasks were spawned.
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
/// callback, unless the caller has kept the handle: join() then throws it. Must be called on the
/// loop's thread; from another thread, call spawn_on().
template <class T>
JoinHandle<T> spawn(EventLoop& loop, Task<T> task,
                    std::source_location at = std::source_location::current()) {
  return detail::tasks_of(loop).spawn(std::move(task), at);
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
detail::HandleOf<F> spawn(EventLoop& loop, F&& callable,
                          std::source_location at = std::source_location::current()) {
  return detail::tasks_of(loop).spawn(std::forward<F>(callable), at);
}
template <class F, class A>
  requires TaskFunction<std::decay_t<F>, std::decay_t<A>>
detail::HandleOf<F, A> spawn(EventLoop& loop, F&& callable, A&& argument,
                             std::source_location at = std::source_location::current()) {
  return detail::tasks_of(loop).spawn(std::forward<F>(callable), std::forward<A>(argument), at);
}
template <class F, class A, class B>
  requires TaskFunction<std::decay_t<F>, std::decay_t<A>, std::decay_t<B>>
detail::HandleOf<F, A, B> spawn(EventLoop& loop, F&& callable, A&& first, B&& second,
                                std::source_location at = std::source_location::current()) {
  return detail::tasks_of(loop).spawn(std::forward<F>(callable), std::forward<A>(first),
                                      std::forward<B>(second), at);
}
template <class F, class... Args>
  requires(sizeof...(Args) > 2) && TaskFunction<std::decay_t<F>, std::decay_t<Args>...>
detail::HandleOf<F, Args...> spawn(EventLoop& loop, F&& callable, Args&&... arguments) {
  return detail::tasks_of(loop).spawn(std::forward<F>(callable), std::forward<Args>(arguments)...);
}

}  // namespace tambour

#pragma GCC visibility pop
