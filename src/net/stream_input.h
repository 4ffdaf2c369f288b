// Whether a stream that waits for nothing has received something.
#pragma once

#include <tambour/bytes/buffer.h>
#include <tambour/net/stream.h>

namespace tambour::detail::net {

struct StreamInput {
  /// True if a read of the stream, which must be a socket, would not wait: bytes, the end of the
  /// stream or an error have arrived, although no iteration of the loop may have noticed. Costs one
  /// recv(2). Bytes stay in the socket; one that was decrypted is appended to `decrypted`.
  [[nodiscard]] static bool has_arrived(Stream& stream, Buffer& decrypted) noexcept;
};

}  // namespace tambour::detail::net
