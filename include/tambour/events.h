// What can happen to a file descriptor.
//
// The values are those of poll(2), which epoll(7) and io_uring share, so that no backend translates
// them on the way to a callback.
#pragma once

#include <cstdint>

#include <tambour/cxx23.h>

namespace tambour {

/// A set of readiness events: what a watcher asks for, and what its callback is told.
enum class Events : std::uint16_t {
  none = 0,
  read = 0x001,     ///< Reading does not block: data, end of file, or a pending error (POLLIN).
  urgent = 0x002,   ///< Out-of-band data, or a priority condition of the device (POLLPRI).
  write = 0x004,    ///< Writing does not block (POLLOUT).
  error = 0x008,    ///< An error is pending, or the watcher failed. Reported without being asked.
  closed = 0x2000,  ///< The peer has closed, or shut down writing (POLLRDHUP). Under select: with
                    ///< read only.
};

constexpr Events operator|(Events a, Events b) noexcept {
  return Events(std::uint16_t(a) | std::uint16_t(b));
}
constexpr Events operator&(Events a, Events b) noexcept {
  return Events(std::uint16_t(a) & std::uint16_t(b));
}
constexpr Events operator~(Events a) noexcept { return Events(std::uint16_t(~unsigned(a))); }
constexpr Events& operator|=(Events& a, Events b) noexcept { return a = a | b; }
constexpr Events& operator&=(Events& a, Events b) noexcept { return a = a & b; }

/// True where the two sets have an event in common.
constexpr bool has(Events set, Events wanted) noexcept { return (set & wanted) != Events::none; }

/// Level-triggered: the callback runs in every turn in which the descriptor is ready.
/// Edge-triggered: it need only run when the descriptor has become ready anew, so the callback must
/// read or write until EAGAIN. A permission to report less, not a promise: where a backend has no
/// edges (poll, select), or another watcher of the same descriptor wants levels, levels come.
enum class Trigger : std::uint8_t { level, edge };

}  // namespace tambour
