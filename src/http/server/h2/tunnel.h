// A stream of HTTP/2 as a byte stream: the tunnel of CONNECT, and of extended CONNECT (RFC 8441).
#pragma once

#include <cstddef>

#include <tambour/detail/namespaces.h>
#include <tambour/net/byte_stream.h>

namespace tambour::http {

class H2Stream;

/// Ownership: owned by a ByteStream, which may outlive the stream and its connection: operations
/// then fail with ECONNRESET. Thread: that of the connection's loop.
class H2Tunnel final : public ByteStreamImplementation {
 public:
  explicit H2Tunnel(H2Stream& stream) noexcept;
  ~H2Tunnel() override { close(); }

  /// The stream is about to be destroyed.
  void detach() noexcept { stream_ = nullptr; }

  [[nodiscard]] EventLoop& loop() const noexcept override { return loop_; }
  [[nodiscard]] bool is_open() const noexcept override { return stream_ != nullptr; }
  [[nodiscard]] Task<Result<std::size_t>> read(Buffer& into, std::size_t bytes_max) override;
  [[nodiscard]] Task<Result<>> write(Buffer& from) override;
  [[nodiscard]] Result<> try_write(Buffer& from) noexcept override;
  [[nodiscard]] Task<Result<>> shutdown_write() override;
  /// Ends this side of the stream, or resets the stream if a write was interrupted.
  void close() noexcept override;
  [[nodiscard]] const tls::Session* tls() const noexcept override;
  [[nodiscard]] Result<Endpoint> local_endpoint() const override;
  [[nodiscard]] Result<Endpoint> peer_endpoint() const override;

 private:
  H2Stream* stream_;  ///< Null after close(), or after the stream has ended.
  EventLoop& loop_;
};

}  // namespace tambour::http
