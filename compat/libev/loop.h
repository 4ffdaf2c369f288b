// The implementation of `struct ev_loop`: the iteration that libev's manual describes step by step,
// on a backend of Tambour.
//
// Watchers are memory of the user and keep libev's values in their public fields: `active`,
// `pending`, `next`, `at`. All other state is in the members below, one for each type of watcher.
//
// A loop is used by one thread at a time, not necessarily the same one. Only wake_up() and the
// functions that call it (ev_async_send, ev_feed_signal) may be called at any time, also from
// signal handlers.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include <ev.h>

#include "backend/backend.h"
#include "base/ready_queue.h"
#include "clock.h"
#include "descriptors.h"
#include "pending.h"
#include "signals.h"
#include "stats.h"
#include "timers.h"
#include "watchers.h"

namespace tambour::compat {
class HostedBackend;
struct LoopRecord;
}  // namespace tambour::compat

namespace tambour::libev {

struct Loop {
  /// The parts of a loop. `poller` is null if none of the backends in the flags is available.
  struct Parts {
    std::unique_ptr<detail::backend::Backend> poller;
    unsigned flags = 0;
    unsigned backend_kind = 0;  ///< The EVBACKEND_ flag of the backend.
  };
  static Parts open(unsigned flags) noexcept;

  explicit Loop(Parts parts) noexcept;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop();

  [[nodiscard]] struct ev_loop* handle() noexcept;

  /// The common part of starting a watcher of any type.
  template <class Watcher>
  void start(Watcher* watcher, int active) noexcept {
    clamp_priority(base_of(watcher));
    watcher->active = active;
    ++references;
  }
  template <class Watcher>
  void stop(Watcher* watcher) noexcept {
    --references;
    watcher->active = 0;
  }
  static void clamp_priority(ev_watcher* watcher) noexcept {
    if (watcher->priority < EV_MINPRI) watcher->priority = EV_MINPRI;
    if (watcher->priority > EV_MAXPRI) watcher->priority = EV_MAXPRI;
  }
  template <class Watcher>
  int take_back(Watcher* watcher) noexcept {
    return pendings.take_back(base_of(watcher));
  }

  /// Watches a descriptor for the loop itself. Such a watcher does not keep the loop running.
  void start_own(ev_io& io, int fd) noexcept;
  void stop_own(ev_io& io) noexcept;

  int run(int mode);
  void invoke_pending() {
    if (invoke_pending_cb != nullptr) {
      invoke_pending_cb(handle());
    } else {
      pendings.invoke(handle());
    }
  }

  void update_time() noexcept {
    if (clock.update()) [[unlikely]]
      periodics.reschedule();
  }
  /// Makes changes of the wall clock take effect immediately, if the kernel supports that.
  void watch_wall_clock() noexcept;

  /// Call before other threads may use the loop while it waits (ev_set_loop_release_cb()).
  void prepare_to_be_released() noexcept;

  /// Call before another thread or a signal handler may call wake_up(): opens the descriptor that
  /// ends a wait. A loop without ev_async and signal watchers has none.
  void accept_messages() noexcept;

  /// Makes the messenger also watch `fd`, the eventfd of the loop's signals.
  void watch_for_messages(int fd) noexcept { start_own(messenger_, fd); }
  void unwatch_messages() noexcept { stop_own(messenger_); }

  /// Ends the current wait and makes the next iteration call take_messages(). Callable from any
  /// thread; async-signal-safe.
  void wake_up() noexcept;

  /// Call if another loop waits for this one through the backend's descriptor. Cannot be undone:
  /// this loop may be destroyed before the other one stops watching it.
  void be_embedded() noexcept {
    accept_messages();
    embedded_ = true;
    needs_wakeup_.store(true, std::memory_order_seq_cst);
  }

  // A loop that runs on an EventLoop of the program, see hosted.cpp: the parts of run() before and
  // after the wait, as GuestCalls describes them.
  std::int64_t prepare_for_host();
  [[nodiscard]] std::int64_t deadline_for_host() noexcept;
  bool run_for_host();

  void verify();

  // The inspector of unmodified programs, see observed.cpp.
  /// Call after the loop was created, by the function of the API.
  void begin_observation() noexcept;
  void end_observation() noexcept;
  /// Invokes what is pending, and notes how long each callback takes.
  void invoke_observed();

  Pendings pendings;
  Clock clock;
  std::unique_ptr<detail::backend::Backend> poller;
  unsigned flags;
  unsigned backend_kind;
  int references = 0;  ///< Active watchers, plus ev_ref() and minus ev_unref() calls.
  int depth = 0;
  unsigned iterations = 0;
  int break_how = EVBREAK_CANCEL;
  bool forked = false;
  pid_t process;
  ev_tstamp io_interval = 0;
  ev_tstamp timeout_interval = 0;
  void* userdata = nullptr;
  /// If the loop is observed, that of the inspector, and `user_invoke_pending_cb` is the program's.
  void (*invoke_pending_cb)(struct ev_loop*) = nullptr;
  void (*user_invoke_pending_cb)(struct ev_loop*) = nullptr;
  void (*release_cb)(struct ev_loop*) noexcept = nullptr;
  void (*acquire_cb)(struct ev_loop*) noexcept = nullptr;

  Descriptors descriptors{*this};
  Timers timers{*this};
  Periodics periodics{*this};
  Watchers<ev_idle> idles[priority_count];
  int idle_count = 0;
  Watchers<ev_prepare> prepares;
  Watchers<ev_check> checks;
  Watchers<ev_fork> forks;
  Watchers<ev_cleanup> cleanups;
  Watchers<ev_async> asyncs;
  Signals signals;
  Stats stats;
  std::atomic<bool> async_sent{false};
  Array<ev_watcher*> in_reverse;  ///< The timers that expire in one iteration, until they are fed.
  compat::HostedBackend* hosted = nullptr;  ///< `poller`, if an EventLoop does the waiting.
  compat::LoopRecord* observed = nullptr;   ///< Null unless the program is inspected.

 private:
  bool invoke_before_wait();
  void wait(int mode);
  void take_results(bool was_fed) noexcept;
  void expire_and_invoke();
  [[nodiscard]] ev_tstamp time_to_deadline() noexcept;
  [[nodiscard]] ev_tstamp time_to_wait(ev_tstamp before) noexcept;
  void poll(ev_tstamp seconds) noexcept;
  void poll_released(std::int64_t timeout_ns) noexcept;
  void block_released(std::int64_t timeout_ns) noexcept;
  int list_descriptors() noexcept;
  void feed_wakeup_last() noexcept;
  void feed_idles() noexcept;
  void reopen() noexcept;
  void take_messages(bool fd_is_readable) noexcept;
  void open_timerfd() noexcept;
  void arm_timerfd() noexcept;
  static void on_message(struct ev_loop* loop, ev_io* messenger, int events);
  static void on_wall_clock_set(struct ev_loop* loop, ev_io* io, int events);

  detail::base::ReadyQueue
      ready_;              ///< Backend results other than descriptor events: failures, wakeups.
  bool embedded_ = false;  ///< Is or was embedded in another loop.
  /// Pending while there are messages. All messages are processed by its callback, like libev's
  /// `pipe_w`: messages sent after that wait for the next iteration.
  ev_io messenger_;
  bool accepts_messages_ = false;
  std::atomic<bool> needs_wakeup_{false};  ///< The loop must be woken up.
  std::atomic<bool> messages_{false};      ///< take_messages() has work to do.
  Array<pollfd> released_;                 ///< The descriptors to wait for while released.
  UniqueFd waker_;                         ///< Ends that wait if the backend has no descriptor.
  bool use_timerfd_;
  UniqueFd timerfd_;
  ev_io timerfd_io_;
};

/// Calls the function set by ev_set_syserr_cb(), or perror(3) and abort(3).
void system_error_occurred(const char* text) noexcept;

/// Makes the default loop reap all children of the process, as soon as it is created.
void start_reaping(Loop& loop, ev_signal& watcher) noexcept;

}  // namespace tambour::libev

// NOLINTNEXTLINE(readability-identifier-naming): the name is libev's.
struct ev_loop final : tambour::libev::Loop {
  using Loop::Loop;
};

/// The loop created by ev_default_loop(); null before that and after its destruction. ev.h declares
/// it only inside a function.
extern "C" struct ev_loop* ev_default_loop_ptr;  // NOLINT(readability-redundant-declaration)

namespace tambour::libev {

inline struct ev_loop* Loop::handle() noexcept { return static_cast<struct ev_loop*>(this); }

/// A loop that an interface passes as an address.
inline struct ev_loop& loop_at(void* loop) noexcept { return *static_cast<struct ev_loop*>(loop); }

}  // namespace tambour::libev
