// A stream whose waits can be ended by a timer without closing it.
#pragma once

#include <utility>

#include <tambour/socket_stream.h>

namespace tambour::http {

class InterruptibleStream final : public SocketStream {
 public:
  explicit InterruptibleStream(SocketStream&& stream) noexcept : SocketStream(std::move(stream)) {}
  using IoHandle::stop_waiting;
  /// Closes the connection so that the peer's reads fail with ECONNRESET.
  void reset() noexcept;
};

}  // namespace tambour::http
