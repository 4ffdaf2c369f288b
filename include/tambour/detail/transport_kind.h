// How the bytes of a descriptor are transferred.
//
// Internal building block of streams and connections; not part of the public interface.
#pragma once

#include <cstdint>

namespace tambour::io {

enum class TransportKind : std::uint8_t {
  socket,  ///< By recv(2), send(2) and sendmsg(2).
  file,    ///< A pipe or a terminal: by read(2) and write(2).
  /// A file on which the stream has set O_NONBLOCK, although others may use the open file
  /// description: the flag is cleared when the stream gives up its descriptor.
  shared_file,
};

}  // namespace tambour::io
