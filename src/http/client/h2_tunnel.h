// A stream of HTTP/2 as a byte stream: the tunnel of CONNECT, and of extended CONNECT (RFC 8441).
#pragma once

#include <cstddef>
#include <memory>

#include <tambour/detail/namespaces.h>
#include <tambour/net/byte_stream.h>

#include "http/client/pool.h"
#include "http/h2/client_stream.h"

namespace tambour::http::detail::client {

/// Ownership: owned by a ByteStream; has a slot of the connection. Thread: that of the loop.
class H2Tunnel final : public ByteStreamImplementation {
 public:
  H2Tunnel(Lease lease, std::unique_ptr<H2ClientStream> stream);
  ~H2Tunnel() override { close(); }

  [[nodiscard]] EventLoop& loop() const noexcept override { return loop_; }
  [[nodiscard]] bool is_open() const noexcept override { return alive_ != nullptr; }
  [[nodiscard]] Task<Result<std::size_t>> read(Buffer& into, std::size_t bytes_max) override;
  [[nodiscard]] Task<Result<>> write(Buffer& from) override;
  [[nodiscard]] Result<> try_write(Buffer& from) noexcept override;
  [[nodiscard]] Task<Result<>> shutdown_write() override;
  /// Resets the stream unless both sides have ended.
  void close() noexcept override;
  [[nodiscard]] const tls::Session* tls() const noexcept override;
  [[nodiscard]] Result<Endpoint> local_endpoint() const override;
  [[nodiscard]] Result<Endpoint> peer_endpoint() const override;

 private:
  [[nodiscard]] Task<Result<>> flush();

  EventLoop& loop_;
  Lease lease_;
  std::unique_ptr<H2ClientStream> stream_;  ///< Null after close().
  /// Null after close(). Tasks may be resumed after the tunnel was destroyed.
  std::shared_ptr<const bool> alive_;
};

}  // namespace tambour::http::detail::client
