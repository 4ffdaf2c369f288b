// Readiness events of a file descriptor.
//
// The values are those of poll(2), which epoll(7) and io_uring share, so no backend has to
// translate them.
#pragma once

#include <cstdint>

#include <tambour/base/cxx23.h>

#pragma GCC visibility push(default)

namespace tambour {

/// A set of readiness events: the interest of a watcher, or the events passed to its callback.
enum class Events : std::uint16_t {
  none = 0,
  read = 0x001,    ///< A read does not block: data, end of file, or a pending error (POLLIN).
  urgent = 0x002,  ///< Out-of-band data, or an exceptional condition of the device (POLLPRI).
  write = 0x004,   ///< A write does not block (POLLOUT).
  /// An error is pending, or the watcher failed. Always reported, even if not requested.
  error = 0x008,
  /// The peer closed the connection or shut down its write side (POLLRDHUP). With the select
  /// backend it requires `read`.
  closed = 0x2000,
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

/// True if the two sets have an event in common.
constexpr bool has(Events set, Events wanted) noexcept { return (set & wanted) != Events::none; }

/// When readiness is reported. `level`: the callback is invoked in every iteration in which the
/// file descriptor is ready. `edge`: the callback may be invoked only when the file descriptor
/// becomes ready, so it must read or write until EAGAIN. Edge triggering allows fewer callbacks but
/// does not guarantee them: if the backend does not support it (poll, select), or another watcher
/// of the same file descriptor is level-triggered, events are reported level-triggered.
enum class Trigger : std::uint8_t { level, edge };

}  // namespace tambour

#pragma GCC visibility pop
