// Thread pools for blocking calls and long computations.
//
//   auto work = [text] { return hash(text); };
//   const auto digest = co_await WorkerPool::shared().run(std::move(work));
//
// The task waits on its own loop and is resumed there. The callable runs on another thread, and may
// still be running after the awaiting task was destroyed: objects that it refers to must live that
// long; captures by value do. If a lambda captures more than numbers and references, store it in a
// variable first, or pass arguments: GCC 12 destroys the captures of a temporary lambda in a
// co_await expression twice.
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

#include <tambour/base/callback.h>
#include <tambour/base/result.h>
#include <tambour/detail/worker_call.h>
#include <tambour/task/combinators.h>
#include <tambour/task/task.h>

namespace tambour::detail::threads {
class WorkerQueue;
}  // namespace tambour::detail::threads

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

/// What happens if a task is asked to stop while a worker runs its call.
enum class WhenStopped : std::uint8_t {
  wait,     ///< The task keeps waiting and gets the result.
  abandon,  ///< The task gets ECANCELED at once; the call's result is discarded.
};

/// What a pool does now, and has done since it was created.
struct WorkerPoolStats {
  std::size_t threads = 0;      ///< Threads that were started.
  std::size_t running = 0;      ///< Calls that a thread runs.
  std::size_t queued = 0;       ///< Calls that wait for a thread.
  std::uint64_t completed = 0;  ///< Calls that have returned.
  std::uint64_t refused = 0;    ///< Calls that have failed because of queued_max().
};

/// A bounded thread pool. Threads are started on demand, one after another. The queue is first in,
/// first out; calls on different threads may overlap.
///
/// Thread: all functions may be called from any thread.
/// Signals: a worker thread inherits the signal mask of the thread whose call started it, so signal
/// handlers of the program may run on it. To prevent that, block the signals (pthread_sigmask(3))
/// while the first calls are submitted.
/// Simulation: run() calls the callable on the loop's own thread, in a later iteration, so that the
/// seed reproduces the run. submit() is not simulated.
/// Fork: after fork(2), a pool starts empty in the child process. Queued and running calls stay
/// with the parent, and tasks of the child that wait for them get ECANCELED when their loop is
/// reopened.
class WorkerPool {
 public:
  /// The number of processors, at least 1.
  [[nodiscard]] static unsigned processors() noexcept;

  static constexpr std::size_t queued_default = 1'048'576;

  /// `threads` is clamped to 1 to 1024; for `queued_max` see queued_max(). Throws std::bad_alloc.
  explicit WorkerPool(unsigned threads = processors(), std::size_t queued_max = queued_default);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Waits for running calls. Queued calls never start; their tasks get ECANCELED.
  ~WorkerPool();

  /// The process-wide pool for the application's calls: TAMBOUR_WORKERS threads, by default the
  /// number of processors but at least four, because most calls only wait. This pool and the next
  /// two are never destroyed: the exit of the program does not wait for their threads.
  static WorkerPool& shared();

  /// The pool of File: size() and truncate(), and every operation if no ring can be created.
  /// TAMBOUR_FILE_WORKERS threads, by default as many as shared(); 65,536 queued requests. A file
  /// system that hangs (NFS without its server) blocks only threads of this pool.
  static WorkerPool& files();

  /// The pool of Resolver::system(): TAMBOUR_RESOLVER_WORKERS threads, by default 16, because a
  /// lookup only waits; 16,384 queued lookups. A name server that does not answer blocks only
  /// threads of this pool.
  static WorkerPool& names();

  /// The maximum number of threads.
  [[nodiscard]] unsigned threads() const noexcept { return threads_; }

  /// The maximum number of calls that wait for a thread. A further call fails with EAGAIN.
  [[nodiscard]] std::size_t queued_max() const noexcept { return queued_max_; }

  /// Takes a lock. In a forked child, begins with zero.
  [[nodiscard]] WorkerPoolStats stats() const noexcept;

  /// Runs `work` on one of the threads. An exception thrown by `work` terminates the program,
  /// because no task waits for it. Throws std::bad_alloc, and std::system_error (EAGAIN) if the
  /// system cannot create any thread or queued_max() calls are queued.
  void submit(Callback<void()> work);

  template <class F>
  class Run;

  /// Runs `callable()` on one of the threads, and resumes the task on its own loop with the result.
  /// An exception of `callable` is rethrown there. A Result<T> is returned unchanged; any other
  /// type, including void, is wrapped in a Result. Fails with ECANCELED if the task is asked to
  /// stop before the call has started, which then never starts; with EAGAIN or ENOMEM if the system
  /// cannot create any thread; and with EAGAIN if queued_max() calls are queued. Throws
  /// std::bad_alloc.
  template <class F>
    requires std::invocable<std::decay_t<F>&>
  [[nodiscard]] Run<std::decay_t<F>> run(F&& callable,
                                         WhenStopped when_stopped = WhenStopped::wait) {
    return Run<std::decay_t<F>>(*this, std::forward<F>(callable), when_stopped);
  }

  /// Runs `callable(arguments...)` on a thread of the pool, with copies of the arguments; otherwise
  /// like run(callable). With a callable that captures nothing, this form can be used inside a
  /// co_await expression even with GCC 12, which destroys the captures of a lambda there twice
  /// (fixed in GCC 13):
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
  friend class detail::WorkerCall;
  struct [[gnu::visibility("hidden")]] Generation;

  [[nodiscard]] const std::shared_ptr<detail::threads::WorkerQueue>& queue();

  unsigned threads_;
  std::size_t queued_max_;
  /// Differs after fork(2): the child process creates its own.
  std::atomic<Generation*> generation_;
};

/// The awaitable of run(), which may be moved until it is awaited. If it is destroyed during the
/// wait, a call that has started runs to its end, and its result is discarded.
template <class F>
class WorkerPool::Run {
  using Value = std::invoke_result_t<F&>;

 public:
  template <class G>
  Run(WorkerPool& pool, G&& callable, WhenStopped when_stopped)
      : pool_(pool), when_stopped_(when_stopped), call_(new Call(std::forward<G>(callable))) {}
  Run(Run&& other) noexcept
      : pool_(other.pool_),
        when_stopped_(other.when_stopped_),
        call_(std::exchange(other.call_, nullptr)) {
    detail::check_not_awaited(other.awaiting_, "WorkerPool::run()");
  }
  Run& operator=(Run&&) = delete;
  ~Run() {
    stop_.reset();
    if (call_ != nullptr) call_->abandon();
  }

  [[nodiscard]] static bool await_ready() noexcept { return false; }

  template <HasTaskContext Promise>
  void await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    const TaskContext& context = awaiting.promise().context();
    note_wait(awaiting, WaitNote(WaitKind::worker, &pool_), at);
    awaiting_ = awaiting;
    call_->start(pool_, *context.loop, awaiting, context.stop, when_stopped_, context.spawned_at);
    stop_.emplace(context.stop, Stop{*call_});
  }

  detail::ResultOf<Value> await_resume() {
    if (call_->error() != 0) return std::unexpected(system_error(call_->error()));
    if (auto* thrown = std::get_if<2>(&call_->outcome)) std::rethrow_exception(std::move(*thrown));
    if constexpr (std::is_void_v<Value>) {
      return {};
    } else {
      return detail::ResultOf<Value>(std::get<1>(std::move(call_->outcome)));
    }
  }

 private:
  struct Call final : detail::WorkerCall {
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
    std::variant<std::monostate, detail::WhenValue<Value>, std::exception_ptr> outcome;
  };
  struct Stop {
    detail::WorkerCall& call;
    void operator()() const noexcept { call.request_stop(); }
  };

  WorkerPool& pool_;
  WhenStopped when_stopped_;
  Call* call_;  ///< Null: moved from.
  std::coroutine_handle<> awaiting_;
  std::optional<std::stop_callback<Stop>> stop_;
};

}  // namespace tambour

#pragma GCC visibility pop
