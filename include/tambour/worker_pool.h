// Threads for what would keep a loop waiting: calls that block, and long computations.
//
//   auto work = [text] { return hash(text); };
//   const auto digest = co_await WorkerPool::shared().run(std::move(work));
//
// The task waits on its own loop, and goes on there. The trap: the callable runs on another thread,
// and may still run when the task that asked for it was destroyed. What it refers to must live that
// long; what it captures by value does. (Give a lambda that captures more than numbers and
// references a name first, or pass arguments: GCC 12 destroys the captures of a temporary in
// co_await twice.)
#pragma once

#include <atomic>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <tambour/callback.h>
#include <tambour/operation.h>
#include <tambour/result.h>
#include <tambour/task.h>
#include <tambour/when.h>

namespace tambour {

class EventLoop;
class WorkerPool;
namespace loop {
class WorkerMailbox;
class WorkerQueue;
class WorkerReturns;
}  // namespace loop

/// A task was asked to stop while a worker was at what it waits for.
enum class WhenStopped : std::uint8_t {
  wait,   ///< It waits on, and gets the result.
  leave,  ///< It is told ECANCELED at once; what the worker does meanwhile is dropped.
};

/// One call on its way through a pool: shared by the task that waits, and the worker. What the
/// worker touches lies in here, so that the task's frame may go at any time.
class WorkerCall : public Link {
 public:
  WorkerCall(const WorkerCall&) = delete;
  WorkerCall& operator=(const WorkerCall&) = delete;

  // All of these belong to the loop's thread.

  /// Throws std::bad_alloc, and has not begun then. The task is resumed in a later turn.
  void start(WorkerPool& pool, EventLoop& loop, std::coroutine_handle<> awaiting,
             const std::stop_token& stop, WhenStopped when_stopped = WhenStopped::wait);
  /// The task is asked to stop.
  void request_stop() noexcept;
  /// Whoever waited is gone, and so is this for the caller. `and_wait`: not before the worker has
  /// let go of it.
  void abandon(bool and_wait = false) noexcept;
  /// An errno value: why it was not called, or ECANCELED. 0: it was.
  [[nodiscard]] int error() const noexcept { return error_; }

 protected:
  WorkerCall() : on_loop_(*this) {}
  virtual ~WorkerCall() = default;

  /// On a worker; in a simulation, on the loop's thread.
  virtual void work() noexcept = 0;

  /// One more owner, and one fewer; the last deletes it.
  void retain() noexcept { owners_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  friend class WorkerPool;
  friend class loop::WorkerMailbox;
  friend class loop::WorkerQueue;
  friend class loop::WorkerReturns;

  enum class State : std::uint8_t { waiting, running, ended };
  /// Its place in what the loop waits for, or has to tell.
  struct OnLoop : Link {
    explicit OnLoop(WorkerCall& of) noexcept : call(of) {}
    WorkerCall& call;
  };

  std::atomic<unsigned> owners_{1};
  State state_ = State::waiting;  ///< Under the queue's lock.
  bool abandoned_ = false;        ///< Under the mailbox's lock.
  bool returned_ = false;         ///< The pool is done with it. The loop's.
  WhenStopped when_stopped_ = WhenStopped::wait;
  int error_ = 0;
  std::coroutine_handle<> awaiting_;
  OnLoop on_loop_;
  loop::WorkerReturns* returns_ = nullptr;    ///< Valid while `on_loop_` is linked.
  std::shared_ptr<loop::WorkerQueue> queue_;  ///< Null in a simulation.
  std::shared_ptr<loop::WorkerMailbox> mailbox_;
};

/// A bounded number of threads, started one after another as there is work. All functions may be
/// called from any thread. What is submitted runs in the order of submission, as far as several
/// threads have an order.
///
/// In a simulation, run() calls on the loop's own thread, in a later turn, so that a seed repeats
/// the run; submit() knows of no simulation.
///
/// After fork(2), a pool starts anew in the child: what was waiting in it, or running, stays with
/// the parent, and the child's tasks that wait for that are told ECANCELED when their loop is
/// reopened.
class WorkerPool {
 public:
  /// As many as there are processors, at least 1.
  [[nodiscard]] static unsigned processors() noexcept;

  static constexpr std::size_t queued_default = 1'048'576;

  /// 0 threads count as 1, and more than 1024 as 1024. Of `queued_max` see queued_max(). Throws
  /// std::bad_alloc.
  explicit WorkerPool(unsigned threads = processors(), std::size_t queued_max = queued_default);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Waits for what runs. What has not begun never does; its tasks are told ECANCELED.
  ~WorkerPool();

  /// The pool of the process for the program's own calls: TAMBOUR_WORKERS threads, else as many as
  /// there are processors, but four at least, since most calls only wait. This pool and the next
  /// two are never destroyed: the end of the program waits for none of their threads.
  static WorkerPool& shared();

  /// The pool of File, on backends other than io_uring: TAMBOUR_FILE_WORKERS threads, else as many
  /// as shared(); 65,536 queued requests. A file system that hangs (NFS without its server) keeps
  /// threads of this pool only.
  static WorkerPool& files();

  /// The pool of Resolver::system(): TAMBOUR_RESOLVER_WORKERS threads, else 16, since a lookup only
  /// waits; 16,384 queued lookups. A name server that does not answer keeps threads of this pool
  /// only.
  static WorkerPool& names();

  /// How many threads there may be.
  [[nodiscard]] unsigned threads() const noexcept { return threads_; }

  /// How many calls may wait for a thread. One more fails with EAGAIN.
  [[nodiscard]] std::size_t queued_max() const noexcept { return queued_max_; }

  /// Runs `work` on one of the threads. An exception that leaves it ends the program, there being
  /// nobody to tell. Throws std::bad_alloc, and std::system_error (EAGAIN) if the system allows
  /// not even one thread, or if queued_max() calls wait already.
  void submit(Callback<void()> work);

  template <class F>
  class Run;

  /// Runs `callable()` on one of the threads, and waits for its value on the task's own loop; what
  /// it throws is thrown there. A Result<T> stays one; of other values, and void, one is made.
  /// ECANCELED where the task was asked to stop before the call began, which then never does.
  /// EAGAIN or ENOMEM if the system allows not even one thread; EAGAIN if queued_max() calls wait
  /// already. Throws std::bad_alloc.
  template <class F>
    requires std::invocable<std::decay_t<F>&>
  [[nodiscard]] Run<std::decay_t<F>> run(F&& callable,
                                         WhenStopped when_stopped = WhenStopped::wait) {
    return Run<std::decay_t<F>>(*this, std::forward<F>(callable), when_stopped);
  }

  /// The same for `callable(arguments...)`, with copies of the arguments. For a callable that
  /// captures nothing, this form can be written inside a co_await also with GCC 12, which destroys
  /// the captures of a lambda twice there (fixed in GCC 13):
  ///
  ///   const auto digest = co_await WorkerPool::shared().run(hash, text);
  template <class F, class First, class... Rest>
    requires(!std::same_as<std::remove_cvref_t<First>, WhenStopped> &&
             std::invocable<std::decay_t<F>&, std::decay_t<First>&, std::decay_t<Rest>&...>)
  [[nodiscard]] auto run(F&& callable, First&& first, Rest&&... rest) {
    auto call =
        [function = std::decay_t<F>(std::forward<F>(callable)),
         arguments = std::tuple<std::decay_t<First>, std::decay_t<Rest>...>(
             std::forward<First>(first), std::forward<Rest>(rest)...)]() mutable -> decltype(auto) {
      return std::apply(function, arguments);
    };
    return Run<decltype(call)>(*this, std::move(call), WhenStopped::wait);
  }

 private:
  friend class WorkerCall;
  struct Generation;

  [[nodiscard]] const std::shared_ptr<loop::WorkerQueue>& queue();

  unsigned threads_;
  std::size_t queued_max_;
  std::atomic<Generation*> generation_;  ///< Of processes: the child after fork(2) has another.
};

/// Destroyed while it waits, it lets a call that has begun run to its end, and drops the result.
template <class F>
class WorkerPool::Run {
  using Value = std::invoke_result_t<F&>;

 public:
  template <class G>
  Run(WorkerPool& pool, G&& callable, WhenStopped when_stopped)
      : pool_(pool), when_stopped_(when_stopped), call_(new Call(std::forward<G>(callable))) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() {
    stop_.reset();
    call_->abandon();
  }

  [[nodiscard]] static bool await_ready() noexcept { return false; }

  template <HasTaskContext Promise>
  void await_suspend(std::coroutine_handle<Promise> awaiting) {
    const TaskContext& context = awaiting.promise().context();
    call_->start(pool_, *context.loop, awaiting, context.stop, when_stopped_);
    stop_.emplace(context.stop, Stop{*call_});
  }

  ResultOf<Value> await_resume() {
    if (call_->error() != 0) return std::unexpected(system_error(call_->error()));
    if (auto* thrown = std::get_if<2>(&call_->outcome)) std::rethrow_exception(std::move(*thrown));
    if constexpr (std::is_void_v<Value>) {
      return {};
    } else {
      return std::get<1>(std::move(call_->outcome));
    }
  }

 private:
  struct Call final : WorkerCall {
    template <class G>
      requires std::constructible_from<F, G>
    explicit Call(G&& callable) : function(std::forward<G>(callable)) {}
    void work() noexcept override {
      try {
        if constexpr (std::is_void_v<Value>) {
          std::invoke(function);
          outcome.template emplace<1>();
        } else {
          outcome.template emplace<1>(std::invoke(function));
        }
      } catch (...) {
        outcome.template emplace<2>(std::current_exception());
      }
    }
    F function;
    std::variant<std::monostate, WhenValue<Value>, std::exception_ptr> outcome;
  };
  struct Stop {
    WorkerCall& call;
    void operator()() const noexcept { call.request_stop(); }
  };

  WorkerPool& pool_;
  WhenStopped when_stopped_;
  Call* call_;
  std::optional<std::stop_callback<Stop>> stop_;
};

}  // namespace tambour
