// The inside of an EventLoop: what the public handles and the drop-ins stand on.
//
// A turn: wait (backend), read the clock, expire timers, run what is ready, run what was posted,
// delete what was retired. What becomes ready while callbacks run waits for the next turn, so that
// no descriptor starves another. Everything but post() and wake() belongs to one thread.
//
// Handles may outlive their loop, so the memory of a core is shared by the loop and its handles:
// the loop closes it, and whoever is last deletes it.
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

#include <tambour/async.h>
#include <tambour/event_loop.h>
#include <tambour/hooks.h>

#include "backend/backend.h"
#include "base/check.h"
#include "base/clock.h"
#include "loop/post_queue.h"
#include "loop/spin.h"
#include "loop/timers.h"
#include "op/ready_queue.h"

namespace tambour::loop {

class Services;

class Core {
 public:
  Core(std::unique_ptr<backend::Backend> backend, const LoopOptions& options,
       std::source_location created_at) noexcept;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  /// A handle exists; one fewer does.
  void attach() noexcept { ++owners_; }
  void detach() noexcept {
    if (--owners_ == 0) delete this;
  }

  /// Destroys what the loop owns, and what was posted to it and not run.
  void drop_owned() noexcept;

  /// The loop is gone: its handles fall silent.
  void close() noexcept;

  /// `loop` is alive and belongs to this thread, which opened it: live_here() finds it.
  void announce(const EventLoop& loop) noexcept;
  /// The core of `loop`, or null if that was destroyed or belongs to another thread. `loop` is
  /// compared and not dereferenced.
  [[nodiscard]] static Core* live_here(const EventLoop* loop) noexcept;

  /// Whether run() or one of its kind is on the stack.
  [[nodiscard]] bool is_running() const noexcept { return depth_ != 0; }

  void run();
  void run_once();
  void run_ready();
  void stop() noexcept { stop_ = true; }

  /// Any thread. Throws std::bad_alloc, and then `task` is the caller's.
  void post(Callback<void()>&& task);
  void wake() noexcept { backend_->wake(); }
  Result<> reopen() noexcept;

  /// Watchers and references that keep run() going, as started timers do.
  void add_reference() noexcept { ++references_; }
  void drop_reference() noexcept { --references_; }

  /// When this turn began to call back, and what the clock says at this moment.
  [[nodiscard]] std::int64_t now_ns() const noexcept { return now_ns_; }
  [[nodiscard]] std::int64_t clock_ns() const noexcept { return backend_->monotonic_ns(); }
  void update_now() noexcept { now_ns_ = clock_ns(); }
  [[nodiscard]] std::int64_t wall_ns() const noexcept { return backend_->wall_ns(); }

  /// Defers the deletion of a closure that may be running. It is deleted at the end of the current
  /// iteration; in a nested run(), one that existed before it waits for the outer iteration.
  void retire(Closure* closure) noexcept {
    if (closure == nullptr) return;
    if (depth_ == 0) {
      delete closure;
      return;
    }
    Level* level = level_;
    while (closure->born() < level->nested_run) level = level->outside;
    closure->set_next(level->retired);
    level->retired = closure;
  }

  /// While one exists, callbacks may be on the stack, and what is retired is kept.
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
      core_.delete_retired();
      core_.backend_->settle();
    }

   private:
    Core& core_;
  };

  /// Makes `thrown` leave run(), in a later turn or at its end, as what leaves a callback does.
  void throw_out_of_run(std::exception_ptr thrown) noexcept;

  /// Counts a transfer that is to be tried at once, and says whether this turn has been taken up by
  /// such for so long that it had better wait for the next: everybody else would wait for it.
  [[nodiscard]] bool overstays() noexcept {
    constexpr unsigned often = 256;  // The clock is not read each time.
    if (++at_once_ % often == 0) look_at_length_of_turn();
    return overstays_;
  }

  /// What is deleted with the loop, if not before: by retire(), once it is unlinked.
  [[nodiscard]] LinkList& owned() noexcept { return owned_; }

  [[nodiscard]] bool closed() const noexcept { return backend_ == nullptr; }

  /// The tasks that the loop owns; made when first asked for. Throws std::bad_alloc.
  TaskScope& tasks(EventLoop& loop);

  /// Whether the caller may use the loop; false also after the loop's end.
  [[nodiscard]] bool in_thread() const noexcept { return __builtin_thread_pointer() == thread_; }
  /// Aborts, naming the calling function, if the loop belongs to another thread or is destroyed.
  void check_thread(
      std::source_location function = std::source_location::current()) const noexcept {
    if (!in_thread()) [[unlikely]]
      fail_thread_check(function.function_name(), nullptr);
  }
  /// The same for a function of an object, of which the message says where it was created.
  void check_thread_of(
      const std::source_location& object,
      std::source_location function = std::source_location::current()) const noexcept {
    if (!in_thread()) [[unlikely]]
      fail_thread_check(function.function_name(), &object);
  }
  /// The same for functions that may be called after the loop was destroyed.
  void check_thread_unless_closed(
      const std::source_location& object,
      std::source_location function = std::source_location::current()) const noexcept {
    if (!closed()) check_thread_of(object, function);
  }
  [[nodiscard]] const std::source_location& created_at() const noexcept { return created_at_; }

  void add(Hook& hook) noexcept;
  void remove(Hook& hook) noexcept;
  void add(Async& async) noexcept;
  void remove(Async& async) noexcept;
  /// Any thread, and signal handlers.
  void async_sent() noexcept {
    any_async_sent_.store(true, std::memory_order_seq_cst);
    rouse();
  }

  /// Any thread, while the loop lives.
  void worker_returned() noexcept { async_sent(); }

  [[nodiscard]] std::size_t pending_count() const noexcept {
    return ready_.size() + running_queue_.size();
  }
  void set_pending_runner(Callback<void()> runner) noexcept;
  void run_pending();
  void set_collect_intervals(std::int64_t io_ns, std::int64_t timeout_ns) noexcept {
    collect_io_ns_ = io_ns > 0 ? io_ns : 0;
    collect_timeout_ns_ = timeout_ns > 0 ? timeout_ns : 0;
  }
  void suspend() noexcept;
  void resume() noexcept;
  /// Which turn it is.
  [[nodiscard]] std::uint64_t turn_number() const noexcept { return stats_.turns; }
  [[nodiscard]] LoopStats stats() const noexcept;
  void set_stall_detector(std::int64_t threshold_ns, Callback<void(const Stall&)> report) noexcept;
  void feed_fd(int fd, Events events) noexcept { backend_->feed(fd, events, ready_); }

  backend::Backend& backend() noexcept { return *backend_; }
  Timers& timers() noexcept { return timers_; }

  /// What signals, children and the like need; made when the first of them starts. ENOMEM.
  Result<Services*> open_services() noexcept;
  /// The same where something has been started, and the loop has not been destroyed since.
  Services& services() noexcept { return *services_; }

  /// queue() makes an item due when the loop next dispatches. queue_now() makes it due in this one,
  /// if called from a callback: only for what one event of the kernel makes due. An item that
  /// queues itself again, or whose callback can cause the next event, must use queue(), or it
  /// starves the loop.
  void queue(Ready& item) noexcept {
    if (!item.linked()) ready_.push(item);
  }
  void queue_now(Ready& item) noexcept {
    if (!item.linked()) running_queue_.push(item);
  }

  /// For a loop whose waiting another loop does: until when it has nothing to do, by its own clock,
  /// unless its backend's descriptor becomes readable. The start of time: something is due.
  std::int64_t begin_foreign_wait() noexcept;
  void end_foreign_wait() noexcept { sleeping_.store(false, std::memory_order_relaxed); }

  /// For whoever lets the loop take its turns, by run_ready(): what run() looks at between two.
  [[nodiscard]] bool alive() noexcept {
    return references_ > 0 || any_due() || timers_.are_started(1 - references_);
  }
  [[nodiscard]] bool take_stop() noexcept { return std::exchange(stop_, false); }

 private:
  class Iterating;
  class Stoppable;
  /// run(), or a run() inside one of its callbacks.
  struct Level {
    std::uint64_t nested_run = 0;  ///< See Closure::born().
    Closure* retired = nullptr;    ///< To be deleted when an iteration of this level ends.
    Level* outside = nullptr;
  };
  ~Core();
  enum class Wait : std::uint8_t { none, until_due };

  [[nodiscard]] bool any_due() const noexcept {
    return !ready_.empty() || !running_queue_.empty() || any_from_others();
  }
  [[nodiscard]] bool any_from_others() const noexcept {
    return !posted_.empty() || any_async_sent_.load(std::memory_order_seq_cst);
  }
  /// True where anything was due.
  bool turn(Wait wait);
  void wait_until_due();
  void sleep(std::int64_t until_ns) noexcept;
  bool spin(std::int64_t until_ns) noexcept;
  void dispatch();
  void delete_retired() noexcept;

  /// Wakes the loop if it sleeps. Whoever calls has left something for it to find first.
  void rouse() noexcept {
    // The loop says that it sleeps and then looks for what others left; they leave it and then look
    // whether it sleeps, all sequentially consistent: one of the two sees the other.
    if (sleeping_.load(std::memory_order_seq_cst) &&
        sleeping_.exchange(false, std::memory_order_seq_cst)) {
      wake_ups_.fetch_add(1, std::memory_order_relaxed);
      backend_->wake();
    }
  }
  [[nodiscard]] Hook*& hooks_at(HookPoint point) noexcept {
    return hooks_[static_cast<std::size_t>(point)];
  }
  std::int64_t collect(std::int64_t until_ns) noexcept;
  void look_at_length_of_turn() noexcept;
  /// Where the loop was stopped in the turn in which a task threw.
  void throw_what_is_left();
  std::size_t run_queue();
  void note_times(std::int64_t before_ns) noexcept;
  void run_hooks(HookPoint point);
  void queue_hooks(HookPoint point, ReadyQueue& queue) noexcept;
  void queue_idle_hooks() noexcept;
  void queue_asyncs() noexcept;

  void renounce() noexcept;
  [[noreturn]] void fail_thread_check(const char* function,
                                      const std::source_location* object) const noexcept;

  const void* thread_ = __builtin_thread_pointer();  ///< Null: the loop is destroyed.
  const EventLoop* loop_ = nullptr;                  ///< Null: not announced.
  Core* next_on_thread_ = nullptr;                   ///< In the list of announced ones.
  std::int64_t now_ns_ = 0;
  std::int64_t references_ = 0;
  bool stop_ = false;
  int depth_ = 0;         ///< Of run() inside callbacks of run().
  unsigned at_once_ = 0;  ///< Transfers that were tried at once in this turn.
  bool overstays_ = false;
  std::int64_t owners_ = 1;
  ReadyQueue ready_;          ///< Due in this turn.
  ReadyQueue running_queue_;  ///< Being run; the rest of it where a callback threw.
  Level outermost_;
  Level* level_ = &outermost_;
  Timers timers_;
  Spin spin_;
  std::unique_ptr<backend::Backend> backend_;
  std::unique_ptr<Services> services_;
  std::unique_ptr<TaskScope> tasks_;
  LinkList owned_;
  std::int64_t services_ns_ = base::end_of_time_ns;  ///< When they have something to do next.
  std::array<Hook*, 5> hooks_{};  ///< By HookPoint: the started ones, the latest first.
  Async* asyncs_ = nullptr;
  Callback<void()> pending_runner_;
  LoopStats stats_;
  bool measure_times_;
  std::int64_t stall_ns_ = 0;
  Callback<void(const Stall&)> report_stall_;
  std::int64_t collect_io_ns_ = 0;
  std::int64_t collect_timeout_ns_ = 0;
  std::optional<std::int64_t> suspended_ns_;  ///< Since when.
  PostQueue posted_;
  std::atomic<bool> sleeping_{false};
  std::atomic<bool> any_async_sent_{false};
  std::atomic<std::uint64_t> wake_ups_{0};

  /// An exception on its way out of run(), for which no memory is needed.
  struct Thrown final : Ready {
    Thrown() noexcept : Ready(&run) {}
    static void run(Ready& ready) {
      std::rethrow_exception(std::exchange(static_cast<Thrown&>(ready).what, nullptr));
    }
    std::exception_ptr what;
  };
  Thrown thrown_;
  std::source_location created_at_;
  int thread_id_;  ///< gettid(2) of its thread, for messages.
};

}  // namespace tambour::loop
