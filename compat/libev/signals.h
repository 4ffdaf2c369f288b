// The ev_signal watchers of one loop, and the signals that signal handlers and other threads
// report.
//
// As documented, a signal belongs to at most one loop of the process at a time. The handler is that
// of the loop library (events/signal_slot.h); it may run on any thread, also while loops are
// created and destroyed. With EVFLAG_SIGNALFD, a signalfd(2) replaces it.
#pragma once

#include <atomic>
#include <csignal>
#include <cstdint>

#include <ev.h>

#include <tambour/base/unique_fd.h>

#include "events/signal_slot.h"
#include "watchers.h"

namespace tambour::libev {

struct Loop;

class Signals {
 public:
  Signals(Loop& loop, bool use_signalfd) noexcept;
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();

  void add(ev_signal& watcher) noexcept;
  void remove(ev_signal& watcher) noexcept;

  /// Feeds the watchers of a signal that belongs to this loop, and clears its pending state.
  void feed(int number) noexcept;
  /// Reports a signal to the loop that it belongs to, if any. Callable from any thread;
  /// async-signal-safe.
  static void raise(int number) noexcept;

  /// A child may run its parent's loop without ev_loop_fork(), as after daemon(3).
  void before_wait() noexcept {
    if (slot_ != nullptr) slot_->claim();
  }

  /// Feeds the watchers of all signals that have arrived. If `fd_is_readable`, the slot's eventfd
  /// is drained even if no signal is pending any more.
  void take_messages(bool fd_is_readable) noexcept;
  /// Replaces the descriptors shared with the parent, after fork(2).
  /// Call before reopen(); see Backend::disown_if_lost().
  void disown_if_lost(bool has_all) noexcept;
  void reopen() noexcept;

  /// Returns the first watcher of a signal, or null.
  static ev_signal* first_of(int number) noexcept;

 private:
  void install(int number) noexcept;
  void uninstall(int number) noexcept;
  bool open_slot() noexcept;
  bool open_signalfd() noexcept;
  void read_signalfd() noexcept;
  static void on_signalfd(struct ev_loop* loop, ev_io* io, int events);

  Loop& loop_;
  bool use_signalfd_;
  tambour::detail::events::SignalSlot* slot_ = nullptr;
  std::uint64_t by_slot_ = 0;  ///< The signals handled by `slot_`.
  UniqueFd signalfd_;
  bool had_signalfd_ = false;  ///< Before disown_if_lost().
  ev_io signalfd_io_;
  sigset_t blocked_;  ///< The signals received by signalfd.
  /// A signal of this loop was reported, other than by the slot's eventfd.
  std::atomic<bool> any_arrived_{false};
};

}  // namespace tambour::libev
