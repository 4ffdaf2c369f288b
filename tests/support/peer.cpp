// Acts as the peer of a connection, without waiting.
#include "support/peer.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <span>

#include <gtest/gtest.h>

#include "io/transport.h"
#include "net/stream_filter.h"

namespace tambour::test {
namespace {

/// A stream may outlive its loop, but not the system whose descriptor it has.
struct Handle : IoHandle {
  using IoHandle::system;
};

detail::io::Transport transport_of(Stream& stream) {
  return {(stream.*&Handle::system)(), stream.fd(), detail::net::StreamFilter::kind(stream),
          stream.tls() != nullptr ? &detail::net::StreamFilter::of(stream) : nullptr};
}

}  // namespace

std::size_t send_now(Stream& stream, std::string_view bytes) {
  const std::int32_t taken = transport_of(stream).write(std::as_bytes(std::span(bytes)));
  return taken < 0 ? 0 : std::size_t(taken);
}

std::string receive_now(Stream& stream, std::size_t bytes_max) {
  std::string all(bytes_max, '\0');
  std::size_t size = 0;
  while (size < all.size()) {
    const auto place = std::as_writable_bytes(std::span(all)).subspan(size);
    const std::int32_t got = transport_of(stream).read(place);
    if (got <= 0) break;
    size += std::size_t(got);
  }
  all.resize(size);
  return all;
}

bool has_ended(Stream& stream) {
  std::array<std::byte, 1> place;
  const std::int32_t got = transport_of(stream).read(place);
  return got == 0 || transport_of(stream).is_truncation(got);
}

void shut_down_now(Stream& stream) { EXPECT_EQ(transport_of(stream).shutdown_write(), 0); }

void end_now(Stream& stream) {
  if (stream.tls() != nullptr) shut_down_now(stream);
  stream.close();
}

}  // namespace tambour::test
