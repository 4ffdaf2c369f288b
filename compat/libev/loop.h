// The inside of a `struct ev_loop`: one turn, as the manual of libev describes it step by step, on
// a backend of Tambour.
//
// Watchers are the user's memory, and keep in their public fields what libev keeps there: `active`,
// `pending`, `next`, `at`. Everything else is in the parts below, one for each kind of watcher.
//
// A loop is used by one thread at a time; which one, may change. Only wake_up() and what leads
// there (ev_async_send, ev_feed_signal) may be called at any time, from signal handlers too.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <atomic>
#include <memory>

#include <ev.h>

#include "backend/backend.h"
#include "clock.h"
#include "descriptors.h"
#include "op/ready_queue.h"
#include "pending.h"
#include "signals.h"
#include "stats.h"
#include "timers.h"
#include "watchers.h"

namespace tambour::libev {

struct Loop {
  /// What a loop is made of. `poller` is null if none of the backends that the flags name is
  /// available.
  struct Parts {
    std::unique_ptr<backend::Backend> poller;
    unsigned flags = 0;
    unsigned backend_kind = 0;  ///< The flag of the backend.
  };
  static Parts open(unsigned flags) noexcept;

  explicit Loop(Parts parts) noexcept;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop();

  [[nodiscard]] struct ev_loop* handle() noexcept;

  /// What all types of watchers have in common.
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

  /// Watches a descriptor for the loop itself: such a watcher keeps nothing going.
  void start_own(ev_io& io, int fd) noexcept;
  void stop_own(ev_io& io) noexcept;

  int run(int how);
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
  /// From now on, changes of the wall clock are told at once, where the kernel can.
  void watch_wall_clock() noexcept;

  /// From now on others use the loop while it waits.
  void prepare_to_be_released() noexcept;

  /// Must be called before another thread or a signal handler may call wake_up(): opens the
  /// descriptor that ends a wait. A loop without asynchronous watchers has none.
  void accept_messages() noexcept;

  /// The messenger also watches `fd`, the eventfd of the loop's signals.
  void watch_for_messages(int fd) noexcept { start_own(messenger_, fd); }
  void unwatch_messages() noexcept { stop_own(messenger_); }

  /// Any thread, and signal handlers: take_messages() is called in the next iteration, which starts
  /// at once.
  void wake_up() noexcept;

  /// Another loop waits in place of this one and is woken through the backend's descriptor. There
  /// is no way back: this loop may be destroyed before the other one stops watching it.
  void be_embedded() noexcept {
    accept_messages();
    embedded_ = true;
    asleep_.store(true, std::memory_order_seq_cst);
  }

  void verify();

  Pendings pendings;
  Clock clock;
  std::unique_ptr<backend::Backend> poller;
  unsigned flags;
  unsigned backend_kind;
  int references = 0;  ///< Watchers, and those of ev_ref().
  int depth = 0;
  unsigned iterations = 0;
  int break_how = EVBREAK_CANCEL;
  bool forked = false;
  pid_t process;
  ev_tstamp io_interval = 0;
  ev_tstamp timeout_interval = 0;
  void* userdata = nullptr;
  void (*invoke_pending_cb)(struct ev_loop*) = nullptr;
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
  Array<ev_watcher*> in_reverse;  ///< What expires in one turn, until it is fed.

 private:
  void wait(int how);
  [[nodiscard]] ev_tstamp time_to_wait(ev_tstamp before) noexcept;
  void poll(ev_tstamp seconds) noexcept;
  void poll_released(std::int64_t timeout_ns) noexcept;
  void block_released(std::int64_t timeout_ns) noexcept;
  int list_descriptors() noexcept;
  void feed_messenger_last() noexcept;
  void feed_idles() noexcept;
  void reopen() noexcept;
  void take_messages(bool fd_is_readable) noexcept;
  void open_timerfd() noexcept;
  void arm_timerfd() noexcept;
  static void on_message(struct ev_loop* loop, ev_io* messenger, int events);
  static void on_wall_clock_set(struct ev_loop* loop, ev_io* io, int events);

  ReadyQueue ready_;       ///< What the backend finds but for descriptors: failures, wake-ups.
  bool embedded_ = false;  ///< Is, or was.
  /// Pending while there are messages. The only watcher that takes them, as libev's `pipe_w`: what
  /// is sent after it was invoked waits for the next iteration.
  ev_io messenger_;
  bool accepts_messages_ = false;
  std::atomic<bool> asleep_{false};    ///< Somebody has to wake the loop.
  std::atomic<bool> messages_{false};  ///< There is something for take_messages().
  Array<pollfd> released_;             ///< What is waited for while the loop is released,
  UniqueFd waker_;                     ///< and what ends that, where the backend cannot.
  bool use_timerfd_;
  UniqueFd timerfd_;
  ev_io timerfd_io_;
};

/// Tells ev_set_syserr_cb()'s function, or perror(3) and the end of the process.
void system_error_occurred(const char* what) noexcept;

/// The default loop waits for all children of the process, from its beginning on.
void start_reaping(Loop& loop, ev_signal& watcher) noexcept;

}  // namespace tambour::libev

// NOLINTNEXTLINE(readability-identifier-naming): the name is libev's.
struct ev_loop final : tambour::libev::Loop {
  using Loop::Loop;
};

/// The loop that ev_default_loop() made; null before and after.
/// ev.h declares it inside a function only.
extern "C" struct ev_loop* ev_default_loop_ptr;  // NOLINT(readability-redundant-declaration)

namespace tambour::libev {

inline struct ev_loop* Loop::handle() noexcept { return static_cast<struct ev_loop*>(this); }

}  // namespace tambour::libev
