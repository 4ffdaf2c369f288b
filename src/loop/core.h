// The implementation of EventLoop, used by the public handles and the drop-in libraries.
//
// One iteration: wait in the backend, read the clock, expire timers, run the ready queue, run
// posted tasks, delete deferred closures (see defer_delete()). An item that becomes ready while
// callbacks run is dispatched in the next iteration, so that no descriptor starves another. All
// functions except post(), wake(), stop() and async_sent() must be called on the loop's thread.
//
// Handles may outlive their loop, so the core is reference-counted: the loop and each handle hold
// one reference. The loop closes the core; the last owner deletes it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <source_location>
#include <utility>

#include <tambour/detail/task_lists.h>
#include <tambour/loop/async.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/hooks.h>

#include "backend/backend.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/ready_queue.h"
#include "loop/observation/call_clock.h"
#include "loop/observation/debug_loops.h"
#include "loop/observation/monitor.h"
#include "loop/post_queue.h"
#include "loop/service.h"
#include "loop/spin.h"
#include "loop/timers.h"

namespace tambour::detail::loop {

class Core final : public backend::Owner {
 public:
  Core(std::unique_ptr<backend::Backend> backend, const LoopOptions& options,
       std::source_location created_at) noexcept;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  /// Adds or releases one owner: the loop or a handle.
  void attach() noexcept { ++owners_; }
  void detach() noexcept {
    if (--owners_ == 0) delete this;
  }

  /// Destroys the tasks and objects that the loop owns, and posted tasks that have not run.
  void drop_owned() noexcept;

  /// Warns, once per process, that a loop was destroyed with tasks and never run.
  void warn_if_never_run() const noexcept;

  /// Called when the EventLoop is destroyed: invokes the cleanup hooks, destroys what the loop owns
  /// and stops all handles without invoking their callbacks.
  void close(std::source_location function = std::source_location::current()) noexcept;

  /// Registers `loop` in the thread-local list of live loops, for find_on_this_thread().
  void register_loop(const EventLoop& loop) noexcept;
  /// Returns the core of `loop`, or null if the loop was destroyed or belongs to another thread.
  /// `loop` is compared but never dereferenced.
  [[nodiscard]] static Core* find_on_this_thread(const EventLoop* loop) noexcept;

  /// True inside run(), run_once() or run_ready() of a loop of this thread.
  [[nodiscard]] static bool is_any_running_on_this_thread() noexcept;

  /// True inside run(), run_once() or run_ready().
  [[nodiscard]] bool is_running() const noexcept { return depth_ != 0; }

  /// `function` is the public function that a failed thread check names.
  void run(std::source_location function = std::source_location::current());
  void run_once(std::source_location function = std::source_location::current());
  void run_ready(std::source_location function = std::source_location::current());
  /// Callable from any thread.
  void stop() noexcept {
    stop_.store(true, std::memory_order_seq_cst);
    wake_if_waiting();
  }

  /// Callable from any thread. Throws like EventLoop::post(); the caller then keeps `task`.
  void post(Callback<void()>&& task,
            const std::source_location& posted_at = std::source_location::current());
  void wake() noexcept { backend_->wake(); }
  Result<> reopen() noexcept;

  /// Watchers and ref() hold references, which keep run() from returning. Started timers do so too
  /// but are counted separately.
  void add_reference() noexcept { ++references_; }
  void drop_reference() noexcept { --references_; }

  /// now_ns() is the time at which this iteration started to invoke callbacks; clock_ns() reads the
  /// monotonic clock.
  [[nodiscard]] std::int64_t now_ns() const noexcept { return now_ns_; }
  [[nodiscard]] std::int64_t clock_ns() const noexcept { return backend_->monotonic_ns(); }
  void update_now() noexcept { now_ns_ = clock_ns(); }
  [[nodiscard]] std::int64_t wall_ns() const noexcept { return backend_->wall_ns(); }

  /// Defers the deletion of a closure that may be running. It is deleted at the end of the current
  /// iteration; in a nested run(), one that existed before it waits for the outer iteration.
  void defer_delete(detail::Closure* closure) noexcept {
    if (closure == nullptr) return;
    if (depth_ == 0) {
      delete closure;
      return;
    }
    Level* level = level_;
    while (closure->born() < level->nested_run) level = level->outside;
    closure->set_next(level->deferred);
    level->deferred = closure;
  }

  /// While an instance exists, callbacks may be on the stack, so deferred closures are kept.
  class Running {
   public:
    explicit Running(Core& core,
                     std::source_location function = std::source_location::current()) noexcept
        : core_(core) {
      core.check_thread(function);
      ++core.depth_;
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() {
      if (--core_.depth_ != 0) return;
      core_.delete_deferred();
      core_.backend_->release_unwatched_fds();
    }

   private:
    Core& core_;
  };

  /// The stall detector names `place` for the callback that runs now: for items that resume tasks
  /// or invoke functions of several places of the program. No effect if `place` is empty.
  void name_callback(const std::source_location& place) noexcept {
    if (place.line() != 0) callback_place_.store(place, std::memory_order_relaxed);
  }
  /// The place of the callback that runs, if callbacks are timed. Callable from any thread while
  /// the core exists.
  [[nodiscard]] std::source_location callback_place() const noexcept {
    return callback_place_.load(std::memory_order_relaxed);
  }

  /// What other threads may read of this loop. From the first call with `measures` on, the loop
  /// measures times, and times each callback. Throws std::bad_alloc.
  [[nodiscard]] std::shared_ptr<Monitor> monitor(bool measures);

  /// Makes run() throw `thrown`, in a later iteration or before it returns, as if a callback had
  /// thrown it.
  void throw_out_of_run(std::exception_ptr thrown) noexcept;

  /// Counts an I/O attempt made without waiting for readiness. Returns true if this iteration has
  /// exhausted its I/O budget; the caller must then wait for readiness, so that other handles are
  /// not starved.
  [[nodiscard]] bool io_budget_exhausted() noexcept {
    constexpr unsigned often = 256;  // Amortizes the clock reads.
    if (++at_once_ % often == 0) update_io_budget();
    return io_budget_exhausted_;
  }

  /// True if the callbacks of this iteration have run for so long that a connection with further
  /// work should leave it to the next iteration. Reads the clock.
  [[nodiscard]] bool iteration_is_long() const noexcept {
    constexpr std::int64_t long_ns = 10'000'000;
    return clock_ns() - iteration_began_ns_ > long_ns;
  }

  /// Objects deleted with the loop if they still exist. To delete one earlier, unlink it and pass
  /// it to defer_delete().
  [[nodiscard]] detail::IntrusiveList<detail::LoopOwned>& owned() noexcept { return owned_; }

  /// The tasks of the layer above, for dumps of tasks.
  [[nodiscard]] TaskLists& task_lists() noexcept { return task_lists_; }

  [[nodiscard]] bool closed() const noexcept { return backend_ == nullptr; }

  /// True on the loop's thread while the loop exists.
  [[nodiscard]] bool in_group_thread() const noexcept { return this_thread == thread_; }
  /// Aborts with a message that names the calling function if the loop belongs to another thread or
  /// was destroyed.
  void check_thread(
      std::source_location function = std::source_location::current()) const noexcept {
    if (!in_group_thread()) [[unlikely]]
      fail_thread_check(function.function_name(), nullptr);
  }
  /// Like check_thread(), for a member function; the message also says where the object was
  /// created.
  void check_thread_of(
      std::source_location object,
      std::source_location function = std::source_location::current()) const noexcept {
    if (!in_group_thread()) [[unlikely]]
      fail_thread_check_of(function.function_name(), object);
  }
  /// Like check_thread_of(), for functions that may be called after the loop was destroyed.
  void check_thread_unless_closed(
      std::source_location object,
      std::source_location function = std::source_location::current()) const noexcept {
    if (!closed()) check_thread_of(object, function);
  }
  [[nodiscard]] const std::source_location& created_at() const noexcept { return created_at_; }

  void add(Hook& hook) noexcept;
  void remove(Hook& hook) noexcept;
  void add(Async& async) noexcept;
  void remove(Async& async) noexcept;
  /// Callable from any thread and from signal handlers (async-signal-safe).
  void async_sent() noexcept {
    any_async_sent_.store(true, std::memory_order_seq_cst);
    wake_if_waiting();
  }

  [[nodiscard]] std::size_t pending_count() const noexcept {
    return ready_.size() + running_queue_.size();
  }
  void set_pending_runner(Callback<void()> runner) noexcept;
  void run_pending(std::source_location function = std::source_location::current());
  void set_collect_intervals(std::int64_t io_ns, std::int64_t timeout_ns) noexcept {
    collect_io_ns_ = io_ns > 0 ? io_ns : 0;
    collect_timeout_ns_ = timeout_ns > 0 ? timeout_ns : 0;
  }
  void suspend_timers() noexcept;
  void resume_timers() noexcept;
  /// The number of the current iteration.
  [[nodiscard]] std::uint64_t iteration_number() const noexcept { return stats_.iterations; }
  /// A pseudorandom number below 65536: a counter would give the same branch to each of several
  /// selections that a task makes in turn. The generator of "Numerical Recipes".
  std::uint32_t next_selection() noexcept {
    selections_ = selections_ * 1664525U + 1013904223U;
    return selections_ >> 16U;
  }
  [[nodiscard]] LoopStats stats() const noexcept;
  void set_stall_detector(std::int64_t threshold_ns, Callback<void(const Stall&)> report) noexcept;
  void feed_fd(int fd, Events events) noexcept { backend_->feed(fd, events, ready_); }

  backend::Backend& backend() noexcept { return *backend_; }
  Timers& timers() noexcept { return timers_; }

  /// Returns the loop's service of this type; opens it on first use. Fails with ENOMEM.
  template <class S>
  Result<S*> open_service() noexcept {
    return services_.open<S>(*this);
  }
  /// Requires a successful open_service() and a loop that has not been destroyed since.
  template <class S>
  [[nodiscard]] S& service() const noexcept {
    return *services_.find<S>();
  }

  /// queue() makes an item due at the next dispatch. If called from a callback, queue_now() makes
  /// it due in the current dispatch; use it only for items made due by one kernel event. An item
  /// that requeues itself, or whose callback can cause the next event, must use queue(), or it
  /// starves the loop.
  void queue(detail::ReadyNode& item) noexcept {
    if (!item.linked()) ready_.push(item);
  }
  void queue_now(detail::ReadyNode& item) noexcept {
    if (!item.linked()) running_queue_.push(item);
  }

  /// For a loop inside another one, which does its waiting. Returns the time, by this loop's
  /// clock, until which it has nothing to do unless its backend's descriptor becomes readable.
  /// Returns 0 if something is due now.
  std::int64_t begin_host_wait() noexcept;
  void end_host_wait() noexcept { sleeping_.store(false, std::memory_order_relaxed); }

  /// For callers that drive the loop with run_ready() instead of run(): the conditions that run()
  /// checks between two iterations.
  [[nodiscard]] bool alive() noexcept { return references() > 0 || any_due(); }
  [[nodiscard]] bool take_stop() noexcept {
    return stop_requested() && stop_.exchange(false, std::memory_order_relaxed);
  }

 private:
  class Iterating;
  class Stoppable;
  /// One run() call; a nested run() has its own level.
  struct Level {
    std::uint64_t nested_run = 0;  ///< See Closure::born().
    detail::Closure* deferred =
        nullptr;  ///< Closures to delete when an iteration of this level ends.
    Level* outside = nullptr;
  };
  ~Core();
  enum class Wait : std::uint8_t { none, until_due };

  /// Negative if the program has dropped more references than there are.
  [[nodiscard]] std::int64_t references() const noexcept {
    return references_ + static_cast<std::int64_t>(timers_.size());
  }
  [[nodiscard]] bool any_due() const noexcept {
    return !ready_.empty() || !running_queue_.empty() || any_from_others();
  }
  [[nodiscard]] bool stop_requested() const noexcept {
    return stop_.load(std::memory_order_relaxed);
  }
  /// Returns whether another thread wants the loop not to wait. Call after `sleeping_` is set.
  [[nodiscard]] bool must_return() const noexcept {
    return any_from_others() || stop_.load(std::memory_order_seq_cst);
  }
  [[nodiscard]] bool any_from_others() const noexcept {
    return !posted_.empty() || any_async_sent_.load(std::memory_order_seq_cst);
  }
  /// Runs one iteration. Returns true if anything was due.
  bool run_iteration(Wait wait);
  void wait_until_due();
  void sleep(std::int64_t until_ns) noexcept;
  bool spin(std::int64_t until_ns) noexcept;
  void dispatch();
  void delete_deferred() noexcept;

  /// Wakes the loop if it is waiting. The caller must have published its work first.
  void wake_if_waiting() noexcept {
    // Dekker-style handshake: the loop publishes `sleeping_` and then checks for work; a producer
    // publishes its work and then checks `sleeping_`. With sequentially consistent operations at
    // least one of them sees the other, so no wakeup is lost.
    if (sleeping_.load(std::memory_order_seq_cst) &&
        sleeping_.exchange(false, std::memory_order_seq_cst)) {
      wakeups_.fetch_add(1, std::memory_order_relaxed);
      backend_->wake();
    }
  }
  [[nodiscard]] detail::Hlist<Hook>& hooks_at(HookPoint point) noexcept {
    return hooks_[static_cast<std::size_t>(point)];
  }
  std::int64_t collect(std::int64_t until_ns) noexcept;
  void update_io_budget() noexcept;
  /// Rethrows an exception of a task if stop() ended run() before the exception was dispatched.
  void rethrow_pending();
  std::size_t run_queue();
  std::size_t run_posted();
  /// Like run_queue() and run_posted(), with the times of the callbacks.
  std::size_t time_queue();
  std::size_t time_posted();
  template <class Call>
  void time_callback(const std::source_location& created_at, Call call);
  /// When the previous iteration of this run() ended, or else the time.
  [[nodiscard]] std::int64_t take_end_of_iteration() noexcept;
  void note_wait(std::int64_t before_ns) noexcept;
  void note_times() noexcept;
  void run_hooks(HookPoint point);
  void queue_hooks(HookPoint point, ReadyQueue& queue) noexcept;
  void queue_idle_hooks() noexcept;
  void queue_asyncs() noexcept;

  void unregister_loop() noexcept;
  [[noreturn]] void fail_thread_check(const char* function,
                                      const std::source_location* object) const noexcept;
  /// By value, so that callers need no stack frame.
  [[noreturn]] void fail_thread_check_of(const char* function,
                                         std::source_location object) const noexcept;

  /// The number of the current thread; 0 if it has opened no loop. Unlike a thread pointer or a
  /// thread id, a number is never reused. Static TLS: the access needs no function call.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local std::uint64_t this_thread;
  static std::uint64_t number_this_thread() noexcept;
  static constexpr std::uint64_t no_thread = ~std::uint64_t{0};

  /// The number of the loop's thread; `no_thread` after the loop is destroyed.
  std::uint64_t thread_ = number_this_thread();
  const EventLoop* loop_ = nullptr;  ///< Null until register_loop().
  Core* next_on_thread_ = nullptr;   ///< Next in the thread's list of registered cores.
  std::int64_t now_ns_ = 0;
  std::int64_t iteration_began_ns_ = 0;  ///< Unlike now_ns_, not changed by update_now().
  std::int64_t references_ = 0;
  int depth_ = 0;         ///< Nesting depth of run().
  unsigned at_once_ = 0;  ///< I/O attempts made without waiting in this iteration.
  bool io_budget_exhausted_ = false;
  std::uint32_t selections_ = 0;
  std::int64_t owners_ = 1;
  ReadyQueue ready_;          ///< Due in this iteration.
  ReadyQueue running_queue_;  ///< Being dispatched; keeps the remaining items if a callback throws.
  Level outermost_;
  Level* level_ = &outermost_;
  Timers timers_;
  Spin spin_;
  std::unique_ptr<backend::Backend> backend_;
  Services services_;
  detail::IntrusiveList<detail::LoopOwned> owned_;
  TaskLists task_lists_;
  DebugLoop debug_loop_;
  std::int64_t services_ns_ = base::end_of_time_ns;  ///< When the services next need to run.
  std::array<detail::Hlist<Hook>, 5>
      hooks_{};  ///< Started hooks by HookPoint, most recently started first.
  detail::Hlist<Async> asyncs_;
  Callback<void()> pending_runner_;
  LoopStats stats_;
  bool measure_times_;
  std::int64_t stall_ns_ = 0;
  Callback<void(const Stall&)> report_stall_;
  bool times_callbacks_ = false;   ///< For the stall detector or the monitor.
  bool monitor_measures_ = false;  ///< See monitor().
  /// Of the callback that runs; see name_callback(). Other threads read it. A place is a pointer,
  /// so that a relaxed access costs nothing.
  std::atomic<std::source_location> callback_place_{};
  std::shared_ptr<Monitor> monitor_;
  std::int64_t collect_io_ns_ = 0;
  std::int64_t collect_timeout_ns_ = 0;
  std::optional<std::int64_t> suspended_ns_;  ///< Time of suspend_timers(), if suspended.
  PostQueue posted_;
  std::atomic<bool> sleeping_{false};
  std::atomic<bool> any_async_sent_{false};
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> wakeups_{0};

  /// Carries an exception out of run() without allocating memory.
  struct Thrown final : detail::ReadyNode {
    Thrown() noexcept : detail::ReadyNode(&run) {}
    static void run(detail::ReadyNode& ready) {
      std::rethrow_exception(std::exchange(static_cast<Thrown&>(ready).exception, nullptr));
    }
    std::exception_ptr exception;
  };
  Thrown thrown_;
  std::source_location created_at_;
  int thread_id_;  ///< gettid(2) of the loop's thread, for messages.
  CallClock call_clock_;
  /// When the last callback of this iteration ended, and so the next one begins; 0 if unknown.
  std::int64_t call_ended_ns_ = 0;
  std::int64_t iteration_ended_ns_ = 0;  ///< See take_end_of_iteration(); 0 if unknown.
};

}  // namespace tambour::detail::loop
