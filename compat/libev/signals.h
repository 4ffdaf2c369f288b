// The ev_signal watchers of one loop, and what other threads and signal handlers leave for it.
//
// A signal belongs to one loop of the process at a time, as the manual has it. Its handler is the
// loop library's own (loop/signal_slot.h), which may run on any thread, also while loops come and
// go; with EVFLAG_SIGNALFD, a signalfd(2) stands in its place.
#pragma once

#include <atomic>
#include <csignal>
#include <cstdint>

#include <ev.h>

#include <tambour/unique_fd.h>

#include "loop/signal_slot.h"
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

  /// Feeds the watchers of a signal that belongs to this loop, and takes what is pending of it.
  void feed(int number) noexcept;
  /// Does so in the loop that the signal belongs to, if any. Any thread, and signal handlers.
  static void raise(int number) noexcept;

  /// A child may run its parent's loop without ev_loop_fork(), as after daemon(3).
  void before_wait() noexcept {
    if (slot_ != nullptr) slot_->claim();
  }

  /// Feeds the watchers of all signals that have arrived. `fd_is_readable`: so is the slot's
  /// eventfd, which is then drained even if no signal is pending any more.
  void take_messages(bool fd_is_readable) noexcept;
  /// The descriptors that are shared with the parent are replaced, after fork(2).
  void reopen() noexcept;

  /// One of each signal is enough: the first watcher of the list. Null: none.
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
  tambour::loop::SignalSlot* slot_ = nullptr;
  std::uint64_t by_slot_ = 0;  ///< The signals whose handler is the slot's.
  UniqueFd signalfd_;
  ev_io signalfd_io_;
  sigset_t blocked_;  ///< The signals that come by signalfd.
  /// A signal of this loop has arrived, other than by the slot's eventfd.
  std::atomic<bool> any_arrived_{false};
};

}  // namespace tambour::libev
