// Tasks that run beside the code that started them: spawned on a loop, or in a scope that is
// joined.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <source_location>
#include <stop_token>
#include <utility>

#include <tambour/callback.h>
#include <tambour/event_loop.h>
#include <tambour/task.h>

namespace tambour {

/// Owns tasks that run at the same time. The owner either awaits join(), or destroys the scope,
/// which destroys the tasks that have not ended, silently, wherever they wait.
///
///   TaskScope scope(loop);
///   for (TcpStream& peer : peers) scope.spawn(greet(peer));
///   co_await scope.join();
///
/// If a task throws, the others are asked to stop, and join() throws the first exception when all
/// have ended. An exception that no join() has thrown leaves the loop's run() when the scope is
/// destroyed, as one that leaves a callback does; it is lost only if the loop is never run again.
///
/// Belongs to the thread of its loop, which is checked; cannot move. A task may own the object that
/// owns the scope, as a session does that spawns `serve(shared_from_this())`; but a task must not
/// destroy its scope while it runs: that aborts with a message.
class TaskScope final : private TaskObserver {
 public:
  explicit TaskScope(EventLoop& loop,
                     std::source_location created_at = std::source_location::current());
  /// One whose tasks are also asked to stop when `outer` is: that of the task that makes it, say.
  TaskScope(EventLoop& loop, std::stop_token outer,
            std::source_location created_at = std::source_location::current());
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;
  ~TaskScope();

  /// Starts `task`, which runs at once until it first waits. It must not be empty.
  template <class T>
  void spawn(Task<T> task, std::source_location at = std::source_location::current()) {
    if (!task) [[unlikely]]
      fail_on_empty_task("spawn()", at);
    start(task.release());
  }

  /// Asks the tasks to stop: their waits end with ECANCELED. May be called more than once.
  void request_stop() noexcept;
  [[nodiscard]] bool stop_requested() const noexcept { return stop_.stop_requested(); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /// Invoked with every exception in place of join(); the other tasks go on. It may replace itself
  /// and destroy the scope; an exception that it throws leaves the loop's run().
  void set_exception_handler(Callback<void(std::exception_ptr)> handler) noexcept;

  class Join final : private Ready {
   public:
    explicit Join(TaskScope& scope) noexcept : Ready(&run), scope_(scope) {}
    Join(const Join&) = delete;
    Join& operator=(const Join&) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return scope_.empty(); }
    void await_suspend(std::coroutine_handle<> awaiting) noexcept {
      awaiting_ = awaiting;
      scope_.joins_.push_back(*this);
    }
    void await_resume() {
      if (!awaiting_) thrown_ = std::exchange(scope_.thrown_, nullptr);
      if (thrown_ != nullptr) std::rethrow_exception(std::move(thrown_));
    }

   private:
    friend class TaskScope;
    static void run(Ready& ready) { Resumption::run(static_cast<Join&>(ready).awaiting_); }

    TaskScope& scope_;
    std::coroutine_handle<> awaiting_;
    std::exception_ptr thrown_;
  };

  /// Waits until no task is left, also if the caller is asked to stop: make the scope with the stop
  /// token of its task, and the tasks are asked too. If several tasks wait, the first of them gets
  /// the exception and continues first, the others in the next iteration of the loop. A join() also
  /// ends when the scope is destroyed.
  [[nodiscard]] Join join() noexcept { return Join(*this); }

 private:
  friend class ServerGroupBase;
  friend class StreamServerBase;
  struct Forward {
    TaskScope& scope;
    void operator()() const noexcept { scope.stop_.request_stop(); }
  };

  void start(TaskPromiseBase& promise);
  /// Whether a task with this context is one of the scope's, or is awaited by one of them.
  [[nodiscard]] bool runs(const TaskContext& context) const noexcept {
    const TaskContext* own = &context;
    while (own != nullptr && own != &context_) own = own->outer;
    return own != nullptr;
  }
  /// Invoked whenever a task has ended and is destroyed.
  void set_ended_handler(Callback<void()> handler) noexcept { ended_ = std::move(handler); }
  std::coroutine_handle<> task_ended(Link& task) noexcept override;
  void report(std::exception_ptr thrown) noexcept;
  std::coroutine_handle<> finish_joins() noexcept;

  loop::Core* core_;  ///< May outlive the loop.
  std::stop_source stop_;
  TaskContext context_;
  LinkList tasks_;
  std::size_t size_ = 0;
  bool* destroyed_ = nullptr;  ///< Set by the destructor, for functions of this scope on the stack.
  LinkList joins_;             ///< One that is destroyed unlinks itself.
  std::exception_ptr thrown_;
  Callback<void(std::exception_ptr)> handler_;
  Callback<void()> ended_;
  std::source_location created_at_;
  std::stop_callback<Forward> outer_;
};

/// Runs `task`, which must not be empty, on `loop`, at once until it first waits. The loop owns it:
/// tasks that still wait when the loop is destroyed are destroyed first, silently. An exception
/// that leaves the task leaves the loop's run(), as one that leaves a callback does. On the loop's
/// thread; from another thread, post() a callback that spawns.
template <class T>
void spawn(EventLoop& loop, Task<T> task,
           std::source_location at = std::source_location::current()) {
  loop.tasks().spawn(std::move(task), at);
}

}  // namespace tambour
