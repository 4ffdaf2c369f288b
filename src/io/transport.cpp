#include "io/transport.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <exception>

#include "io/read_size.h"

namespace tambour::io {
namespace {

constexpr int send_flags = MSG_DONTWAIT | MSG_NOSIGNAL;

/// The number of blocks of a buffer that one sendmsg(2) sends at most.
constexpr std::size_t blocks_max = 16;

}  // namespace

std::int32_t Transport::read(std::span<std::byte> into) const noexcept {
  return retry([&] {
    return is_socket() ? system_.recv(fd_, into.data(), into.size(), MSG_DONTWAIT)
                       : system_.read(fd_, into.data(), into.size());
  });
}

std::int32_t Transport::read(Buffer& into, std::uint32_t& read_size,
                             std::size_t bytes_max) const noexcept {
  std::span<std::byte> space;
  try {
    space = into.prepare(read_size);
  } catch (const std::exception&) {
    return -ENOMEM;  // Or the buffer is at its maximum size.
  }
  const std::size_t size = std::min(space.size(), bytes_max);
  const std::int32_t answer = read(space.first(size));
  const std::size_t got = answer > 0 ? static_cast<std::size_t>(answer) : 0;
  into.commit(got);
  // A read that was limited by `most` rather than by the space in the buffer does not show how much
  // was available.
  if (answer >= 0 && (got < size || size < bytes_max))
    read_size = next_read_size(read_size, size, got);
  return answer;
}

std::int32_t Transport::write(std::span<const std::byte> from) const noexcept {
  return retry([&] {
    return is_socket() ? system_.send(fd_, from.data(), from.size(), send_flags)
                       : system_.write(fd_, from.data(), from.size());
  });
}

std::int32_t Transport::write(Buffer& from) const noexcept {
  const auto front = from.front();
  std::int32_t answer;
  if (!is_socket() || front.size() == from.size()) {
    answer = write(front);
  } else {
    std::array<iovec, blocks_max> blocks;
    msghdr message{};
    message.msg_iov = blocks.data();
    message.msg_iovlen = from.pieces(blocks);
    answer = retry([&] { return system_.sendmsg(fd_, &message, send_flags); });
  }
  if (answer > 0) from.consume(static_cast<std::size_t>(answer));
  return answer;
}

std::int32_t Transport::shutdown_write() const noexcept {
  return retry([&] { return system_.shutdown(fd_, SHUT_WR); });
}

}  // namespace tambour::io
