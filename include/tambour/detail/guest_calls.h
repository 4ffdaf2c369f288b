// The functions that connect an EventLoop with a loop of a drop-in that runs on it.
//
// The two sides are compiled apart: the host in the program (<tambour/adapters/drop_in_host.h>),
// the guest in the drop-in. So these structures have C types only, and the name of the function
// that a drop-in exports ends in their version. Not part of the public interface.
#pragma once

#include <cstdint>

#include <tambour/base/cxx23.h>

#pragma GCC visibility push(default)

namespace tambour::detail {

/// Whether a descriptor may refer to another file than when it was watched last.
enum class FileIdentity : std::uint8_t { same, probably_same, probably_new };

/// What the drop-in calls: on the thread of the loop, except wake().
struct HostCalls {
  void* data;            ///< The first argument of the functions.
  std::uint8_t backend;  ///< The BackendKind of the loop.
  /// Watches a descriptor for `events` (tambour::Events) from now on; 0: no longer. Returns 0 or an
  /// errno value.
  int (*watch)(void* data, int fd, std::uint16_t events, bool edge_triggered,
               FileIdentity identity) noexcept;
  /// Returns the next descriptor that has become ready, with its events or a negated errno value.
  bool (*take_event)(void* data, int* fd, std::int32_t* result) noexcept;
  /// Runs the loop until a callback was invoked, for at most `timeout_ns` (negative: without
  /// limit). Returns false if the loop was destroyed.
  bool (*wait)(void* data, std::int64_t timeout_ns);
  /// Makes the loop call GuestCalls::run() soon. Callable from any thread; async-signal-safe.
  void (*wake)(void* data) noexcept;
  /// The drop-in's loop is being destroyed, and calls no function of this structure any more.
  void (*detach)(void* data) noexcept;
};

/// What the host calls, on the thread of the loop.
struct GuestCalls {
  void* loop = nullptr;  ///< The `struct ev_loop` or `struct event_base`.
  /// Call before the loop waits. Returns what deadline() returns. `must_run` is set if run() must
  /// be called after the wait even if nothing is due.
  std::int64_t (*prepare)(void* loop, bool* must_run) = nullptr;
  /// Call after each wait, before the callbacks of the host: sets the time to which new timers are
  /// relative. May be null.
  void (*update_time)(void* loop) noexcept = nullptr;
  /// Returns when run() has to be called, in nanoseconds of CLOCK_MONOTONIC: 0 is at once,
  /// INT64_MAX only for events.
  std::int64_t (*deadline)(void* loop) noexcept = nullptr;
  /// Runs the callbacks that are due. Returns true if one of them asked to end the loop.
  bool (*run)(void* loop) = nullptr;
  void (*after_fork)(void* loop) noexcept = nullptr;  ///< In the child, after fork(2).
  void (*destroy)(void* loop) = nullptr;              ///< Calls HostCalls::detach().
};

/// The type of the functions that the drop-ins export: opens a loop. Returns 0 or an errno value.
using OpenGuest = int (*)(const HostCalls& host, GuestCalls& guest) noexcept;

}  // namespace tambour::detail

#pragma GCC visibility pop
