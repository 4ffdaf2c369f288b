// An EventLoop as a `struct ev_loop` of the drop-in libev.so.4, for libraries with an adapter for
// libev.
//
// The program must run with the drop-in (docs/drop-ins.md), because the original cannot do this.
#pragma once

#include <tambour/adapters/drop_in_host.h>

struct ev_loop;

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// A `struct ev_loop` whose watchers run in the iterations of an EventLoop, with one wait for both.
///
/// Each iteration of the EventLoop with something to do for libev is an iteration of libev, after
/// the other callbacks of the default priority. libev's own order and priorities apply among its
/// watchers. Costs no system call.
///
/// - EventLoop::run() invokes the callbacks of both. ev_break() inside a callback of libev calls
///   EventLoop::stop(), unless ev_run() is running.
/// - ev_run() runs the EventLoop, its callbacks included, until ev_break() or until no watcher of
///   libev is active. May be called inside callbacks of both. An exception of a callback then ends
///   the program. EventLoop::stop() does not end it.
/// - ev_child needs libev's default loop, as always; use Child. A signal may be watched with libev
///   or with Signal, not with both. ev_embed cannot embed the loop. ev_set_loop_release_cb() and
///   ev_set_io_collect_interval() have an effect in ev_run() only, or none.
///
/// Ownership: owns the ev_loop. ev_loop_destroy() is allowed, and has the effect of stop().
/// Lifetime: destroy it before the EventLoop, and stop libev's watchers before that. If the
/// EventLoop is destroyed first, watchers may still be stopped, and ev_run() aborts.
/// Thread: the loop's. ev_async_send() may be called from any thread.
/// Loop: keeps the EventLoop running until stop(), even if no watcher is active.
class LibevLoop : private detail::DropInHost {
 public:
  /// Not started.
  explicit LibevLoop(EventLoop& loop) : DropInHost(loop) {}

  /// Opens the ev_loop. Fails with ENOSYS if the process runs with another libev, with EOPNOTSUPP
  /// in a simulation, and with ENOMEM. No effect if it is open.
  [[nodiscard]] Result<> start() { return open("tambour_open_ev_loop_1"); }

  /// Destroys the ev_loop. Must not be called inside a callback of libev.
  void stop() { close(); }

  /// Null unless started.
  [[nodiscard]] struct ev_loop* get() const noexcept {
    return static_cast<struct ev_loop*>(guest());
  }
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
