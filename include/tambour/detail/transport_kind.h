// How the bytes of a descriptor are transferred.
//
// Internal building block of streams and connections; not part of the public interface.
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)

namespace tambour::detail::io {

/// A decision that depends on the kind is a switch without `default`, so that the compiler finds
/// the ones that a new kind needs.
enum class TransportKind : std::uint8_t {
  socket,  ///< By recv(2), send(2) and sendmsg(2).
  file,    ///< A pipe or a terminal: by read(2) and write(2).
  /// A file on which the stream has set O_NONBLOCK, although others may use the open file
  /// description: the flag is cleared when the stream gives up its descriptor.
  shared_file,
  tls,  ///< A socket, through a TransportFilter.
};

/// Returns whether the kind is a pipe or a terminal, which has no write side of its own.
constexpr bool is_file(TransportKind kind) noexcept {
  switch (kind) {
    case TransportKind::socket:
    case TransportKind::tls:
      return false;
    case TransportKind::file:
    case TransportKind::shared_file:
      return true;
  }
  return false;
}

}  // namespace tambour::detail::io

#pragma GCC visibility pop
