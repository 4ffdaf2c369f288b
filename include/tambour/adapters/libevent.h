// An EventLoop as a `struct event_base` of the drop-in libevent_core-2.1.so.7, for libraries with
// an adapter for libevent.
//
// The program must run with the drop-in (docs/drop-ins.md), because the original cannot do this.
#pragma once

#include <tambour/adapters/drop_in_host.h>

struct event_base;

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// A `struct event_base` whose events run in the iterations of an EventLoop, with one wait for
/// both. Bufferevents, evdns and evhttp work on it.
///
/// Each iteration of the EventLoop with something to do for libevent activates its events and runs
/// those of the highest active priority, after the other callbacks of the default priority. Costs
/// no system call.
///
/// - EventLoop::run() invokes the callbacks of both. event_base_loopbreak() and
///   event_base_loopexit() inside a callback of libevent call EventLoop::stop(), unless
///   event_base_loop() is running.
/// - event_base_loop() and event_base_dispatch() run the EventLoop, its callbacks included, until
///   their own condition is met. They may be called inside callbacks of the EventLoop. An exception
///   of a callback then ends the program. EventLoop::stop() does not end them.
/// - If a callback of libevent runs the EventLoop, libevent's other events wait until it returns.
/// - A signal may be watched with libevent or with Signal, not with both.
///
/// Ownership: owns the event_base. event_base_free() is allowed, and has the effect of stop().
/// Lifetime: destroy it before the EventLoop. If the EventLoop is destroyed first, events may still
/// be deleted, and event_base_loop() aborts.
/// Thread: the loop's. If evthread_use_pthreads() was called before start(), other threads may add,
/// delete and activate events, as always.
/// Loop: keeps the EventLoop running until stop(), even if no event is added.
class LibeventBase : private detail::DropInHost {
 public:
  /// Not started.
  explicit LibeventBase(EventLoop& loop) : DropInHost(loop) {}

  /// Opens the event_base. Fails with ENOSYS if the process runs with another libevent, with
  /// EOPNOTSUPP in a simulation, and with ENOMEM. No effect if it is open.
  [[nodiscard]] Result<> start() { return open("tambour_open_event_base_1"); }

  /// Frees the event_base. Must not be called inside a callback of libevent.
  void stop() { close(); }

  /// Null unless started.
  [[nodiscard]] struct event_base* get() const noexcept {
    return static_cast<struct event_base*>(guest());
  }
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
