// Tasks that run beside whoever started them: spawned on a loop, or in a scope that waits for them.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <stop_token>
#include <utility>

#include <tambour/callback.h>
#include <tambour/event_loop.h>
#include <tambour/task.h>

namespace tambour {

/// Owns tasks that run at the same time, so that none is forgotten: whoever makes one either awaits
/// join() or destroys it, which destroys the tasks that are left, silently, wherever they wait.
///
///   TaskScope scope(loop);
///   for (TcpStream& peer : peers) scope.spawn(greet(peer));
///   co_await scope.join();
///
/// Where a task throws, the others are asked to stop, and join() throws the first exception when
/// all have ended. Belongs to the thread of its loop; stays where it is. A task may hold what holds
/// the scope, as a session does that spawns `serve(shared_from_this())`.
class TaskScope final : private TaskObserver {
 public:
  explicit TaskScope(EventLoop& loop);
  /// One whose tasks are also asked to stop when `outer` is: that of the task that makes it, say.
  TaskScope(EventLoop& loop, std::stop_token outer);
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;
  ~TaskScope();

  /// Starts `task`, which runs at once until it first waits.
  template <class T>
  void spawn(Task<T> task) {
    start(task.release());
  }

  /// Asks the tasks to stop: what they wait for ends with ECANCELED. May be called more than once.
  void request_stop() noexcept { stop_.request_stop(); }
  [[nodiscard]] bool stop_requested() const noexcept { return stop_.stop_requested(); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /// Is told of every exception in place of join(), and the other tasks go on.
  void set_exception_handler(Callback<void(std::exception_ptr)> handler) noexcept;

  class Join final : private Link {
   public:
    explicit Join(TaskScope& scope) noexcept : scope_(scope) {}
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
    TaskScope& scope_;
    std::coroutine_handle<> awaiting_;
    std::exception_ptr thrown_;
  };

  /// Waits until no task is left, also where whoever waits is asked to stop: make the scope with
  /// the stop token of its task, and the tasks are asked too. Where several wait, the first of them
  /// gets the exception.
  [[nodiscard]] Join join() noexcept { return Join(*this); }

 private:
  friend class ServerGroupBase;
  friend class StreamServerBase;
  struct Forward {
    TaskScope& scope;
    void operator()() const noexcept { scope.request_stop(); }
  };

  void start(TaskPromiseBase& promise);
  /// Whether a task with this context is one of the scope's, or is awaited by one of them.
  [[nodiscard]] bool runs(const TaskContext& context) const noexcept {
    const TaskContext* own = &context;
    while (own != nullptr && own != &context_) own = own->outer;
    return own != nullptr;
  }
  /// Is called whenever a task has ended and is gone.
  void set_ended_handler(Callback<void()> handler) noexcept { ended_ = std::move(handler); }
  std::coroutine_handle<> task_ended(Link& task) noexcept override;
  std::coroutine_handle<> resume_joins() noexcept;

  std::stop_source stop_;
  TaskContext context_;
  LinkList tasks_;
  std::size_t size_ = 0;
  bool* gone_ = nullptr;  ///< Where somebody on the stack wants to be told of the end.
  LinkList joins_;        ///< Who waits; one that is destroyed meanwhile leaves by itself.
  std::exception_ptr thrown_;
  Callback<void(std::exception_ptr)> handler_;
  Callback<void()> ended_;
  std::stop_callback<Forward> outer_;
};

/// Runs `task` on `loop`, at once until it first waits. The loop owns it: tasks that still wait
/// when the loop is destroyed are destroyed first, silently. An exception that leaves the task
/// leaves the loop's run(), as one that leaves a callback does.
template <class T>
void spawn(EventLoop& loop, Task<T> task) {
  loop.tasks().spawn(std::move(task));
}

}  // namespace tambour
