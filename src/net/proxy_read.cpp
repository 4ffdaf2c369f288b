// Waiting for headers of the PROXY protocol.
#include <sys/socket.h>

#include <array>
#include <utility>

#include <tambour/proxy_protocol.h>
#include <tambour/stream_error.h>

namespace tambour {
namespace {

std::unexpected<Error> end_after(bool something) {
  return std::unexpected<Error>(something ? StreamError::truncated : StreamError::end);
}

/// Looks at what has come, and leaves it where it is.
class Peek final : public SocketWait {
 public:
  Peek(Stream& stream, std::span<std::byte> into) noexcept
      : SocketWait(stream, IoKind::recv, false) {
    data = into.data();
    size = into.size();
    flags = MSG_PEEK;
  }
  [[nodiscard]] Result<std::size_t> await_resume() const noexcept {
    if (outcome < 0) return std::unexpected(system_error(outcome));
    return static_cast<std::size_t>(outcome);
  }
};

}  // namespace

Task<Result<ProxyHeader>> read_proxy_header(Stream& stream, Buffer& buffer) {
  for (;;) {
    auto header = take_proxy_header(buffer);
    if (!header) co_return std::unexpected(header.error());
    if (*header) co_return std::move(**header);
    const auto got = co_await stream.read(buffer);
    if (!got) co_return std::unexpected(got.error());
    if (*got == 0) co_return end_after(!buffer.empty());
  }
}

Task<Result<ProxyHeader>> read_proxy_header(Stream& stream) {
  Buffer taken;
  for (;;) {
    std::array<std::byte, 512> place;
    const auto got = co_await Peek(stream, place);
    if (!got) co_return std::unexpected(got.error());
    if (*got == 0) co_return end_after(!taken.empty());
    const auto seen = std::span(place).first(*got);
    Buffer attempt = taken.share();
    attempt.append(seen);
    auto header = take_proxy_header(attempt);
    if (!header) co_return std::unexpected(header.error());
    // As long as it is not whole, all that has come is part of it, and is taken: what was left
    // would say without end that there is something to read.
    auto part = seen.first(*header ? seen.size() - attempt.size() : seen.size());
    taken.append(part);
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
