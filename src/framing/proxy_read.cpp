// Reads PROXY protocol headers from a stream.
#include <sys/socket.h>

#include <array>
#include <utility>

#include <tambour/net/proxy_protocol.h>
#include <tambour/net/stream_error.h>

#include "base/failure.h"
#include "framing/proxy_header.h"
#include "io/transport.h"
#include "loop/core.h"

namespace tambour {
namespace {

std::unexpected<Error> end_after(bool something) {
  return std::unexpected<Error>(something ? StreamError::truncated : StreamError::eof);
}

/// Reads available bytes with MSG_PEEK, so they stay in the socket.
class Peek final : public detail::IoWait {
 public:
  Peek(SocketStream& stream, std::span<std::byte> into) noexcept
      : detail::IoWait(stream, Events::read, detail::FirstCall::when_ready), into_(into) {}
  [[nodiscard]] Result<std::size_t> await_resume() const noexcept {
    if (outcome < 0) return detail::base::failure(outcome);
    return static_cast<std::size_t>(outcome);
  }

 private:
  [[nodiscard]] bool step(detail::loop::Core& core) noexcept override {
    detail::backend::System& system = core.backend().system();
    return finish(detail::io::retry(
        [&] { return system.recv(fd(), into_.data(), into_.size(), MSG_PEEK | MSG_DONTWAIT); }));
  }

  std::span<std::byte> into_;
};

}  // namespace

Task<Result<ProxyHeader>> read_proxy_header(Stream& stream, Buffer& buffer, std::size_t bytes_max) {
  for (;;) {
    auto header = take_proxy_header(buffer, bytes_max);
    if (!header) co_return std::unexpected(header.error());
    if (*header) co_return std::move(**header);
    const auto got = co_await stream.read(buffer);
    if (!got) co_return std::unexpected(got.error());
    if (*got == 0) co_return end_after(!buffer.empty());
  }
}

Task<Result<ProxyHeader>> read_proxy_header(SocketStream& stream, std::size_t bytes_max) {
  Buffer taken;
  for (;;) {
    // A version 2 header contains its length; the rest is read without peeking first.
    if (const std::size_t rest = detail::framing::proxy_v2_bytes_missing(taken); rest > 0) {
      const auto got = co_await stream.read(taken, rest);
      if (!got) co_return std::unexpected(got.error());
      if (*got == 0) co_return end_after(true);
      if (*got < rest) continue;
      auto header = take_proxy_header(taken, bytes_max);
      if (!header) co_return std::unexpected(header.error());
      co_return std::move(**header);
    }
    if (stream.tls() != nullptr) {
      // The socket has only encrypted bytes to peek at. A header without a length is short.
      const auto got = co_await stream.read(taken, 1);
      if (!got) co_return std::unexpected(got.error());
      if (*got == 0) co_return end_after(!taken.empty());
      auto header = take_proxy_header(taken, bytes_max);
      if (!header) co_return std::unexpected(header.error());
      if (*header) co_return std::move(**header);
      continue;
    }
    std::array<std::byte, 512> place;
    const auto got = co_await Peek(stream, place);
    if (!got) co_return std::unexpected(got.error());
    if (*got == 0) co_return end_after(!taken.empty());
    const auto seen = std::span(place).first(*got);
    taken.append(seen);
    auto header = take_proxy_header(taken, bytes_max);
    if (!header) co_return std::unexpected(header.error());
    // An incomplete header is consumed: left in the socket, it would keep the socket readable and
    // the loop would spin. Bytes after a complete header stay.
    auto part = seen.first(*header ? seen.size() - taken.size() : seen.size());
    while (!part.empty()) {
      const auto dropped = co_await stream.read(part);
      if (!dropped) co_return std::unexpected(dropped.error());
      if (*dropped == 0) co_return end_after(true);
      part = part.subspan(*dropped);
    }
    if (*header) co_return std::move(**header);
  }
}

}  // namespace tambour
