// Transport: one transfer of bytes, with or without a filter.
#include "io/transport.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <exception>

#include "bytes/buffer_memory.h"
#include "bytes/read_size.h"

namespace tambour::detail::io {
namespace {

constexpr int send_flags = MSG_DONTWAIT | MSG_NOSIGNAL;

/// The number of blocks of a buffer that one sendmsg(2) sends at most.
constexpr std::size_t blocks_max = 16;

/// The messages of a filter itself, for example tickets of TLS, that are read before its data.
constexpr int filter_messages_max = 16;

/// Of one sendfile(2).
constexpr std::uint64_t sent_bytes_max = std::uint64_t{1} << 30U;

}  // namespace

std::int32_t Transport::read(std::span<std::byte> into) const noexcept {
  switch (kind_) {
    case TransportKind::socket:
      return retry([&] { return system_.recv(fd_, into.data(), into.size(), MSG_DONTWAIT); });
    case TransportKind::file:
    case TransportKind::shared_file:
      return retry([&] { return system_.read(fd_, into.data(), into.size()); });
    case TransportKind::tls:
      return filter_->read(below(), into, true);
  }
  return -EBADF;
}

/// Reads until the filter has no more bytes, so that the next read can wait for the socket.
std::int32_t Transport::read_decoded(Buffer& into, std::uint32_t& read_size,
                                     std::size_t bytes_max) const noexcept {
  std::size_t total = 0;
  do {
    std::span<std::byte> space;
    try {
      space = into.prepare(read_size);
    } catch (const std::exception&) {
      return total > 0 ? static_cast<std::int32_t>(total) : -ENOMEM;
    }
    const std::size_t size = std::min(space.size(), bytes_max - total);
    const std::int32_t answer = filter_->read(below(), space.first(size), total == 0);
    const std::size_t got = answer > 0 ? static_cast<std::size_t>(answer) : 0;
    into.commit(got);
    if (answer >= 0 && (got < size || total + size < bytes_max))
      read_size = bytes::next_read_size(read_size, size, got);
    if (answer <= 0) return total > 0 ? static_cast<std::int32_t>(total) : answer;
    total += got;
  } while (total < bytes_max && filter_->may_read_now());
  return static_cast<std::int32_t>(total);
}

std::int32_t Transport::read(Buffer& into, std::uint32_t& read_size,
                             std::size_t bytes_max) const noexcept {
  if (filter_ != nullptr) return read_decoded(into, read_size, bytes_max);
  std::span<std::byte> space;
  try {
    // A reader that asks for few bytes needs no large block.
    space = into.prepare(std::min<std::size_t>(read_size, bytes_max));
  } catch (const std::exception&) {
    return -ENOMEM;  // Or the buffer is at its maximum size.
  }
  const std::size_t size = std::min(space.size(), bytes_max);
  const std::int32_t answer = read(space.first(size));
  const std::size_t got = answer > 0 ? static_cast<std::size_t>(answer) : 0;
  into.commit(got);
  // A read that was limited by `bytes_max` rather than by the space in the buffer does not show how
  // much was available.
  if (answer >= 0 && (got < size || size < bytes_max))
    read_size = bytes::next_read_size(read_size, size, got);
  return answer;
}

bool Transport::has_input(Buffer& decoded) const noexcept {
  std::byte byte{};
  const std::span<std::byte> into(&byte, 1);
  for (int i = 0; i < filter_messages_max; ++i) {
    if (filter_ == nullptr || !filter_->may_read_now()) {
      const std::int32_t peeked = retry(
          [&] { return system_.recv(fd_, into.data(), into.size(), MSG_PEEK | MSG_DONTWAIT); });
      if (peeked == -EAGAIN) return false;
      if (filter_ == nullptr) return true;
    }
    const std::int32_t answer = filter_->read(below(), into, true);
    if (answer == -EAGAIN) continue;
    try {
      if (answer > 0) decoded.append(std::span<const std::byte>(into));
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      // The byte is lost. The answer is the same, after which the caller closes the connection.
    }
    return true;
  }
  return true;
}

std::int32_t Transport::write(std::span<const std::byte> from) const noexcept {
  switch (kind_) {
    case TransportKind::socket:
      return retry([&] { return system_.send(fd_, from.data(), from.size(), send_flags); });
    case TransportKind::file:
    case TransportKind::shared_file:
      return retry([&] { return system_.write(fd_, from.data(), from.size()); });
    case TransportKind::tls: {
      const iovec piece{.iov_base = const_cast<std::byte*>(from.data()), .iov_len = from.size()};
      return filter_->write(below(), {&piece, from.empty() ? std::size_t{0} : std::size_t{1}});
    }
  }
  return -EBADF;
}

std::int32_t Transport::write_pieces(Buffer& from, int flags, std::size_t size) const noexcept {
  std::array<iovec, blocks_max> blocks;
  const std::size_t count = from.pieces(blocks, size);
  if (filter_ != nullptr) return filter_->write(below(), std::span(blocks).first(count));
  msghdr message{};
  message.msg_iov = blocks.data();
  message.msg_iovlen = count;
  return retry([&] { return system_.sendmsg(fd_, &message, flags); });
}

std::int32_t Transport::write(Buffer& from) const noexcept {
  const bool may_have_file_part = kind_ == TransportKind::socket && from.size() >= file_part_min;
  const std::int32_t answer =
      may_have_file_part ? write_large(from) : write_contiguous_or_pieces(from);
  if (answer > 0) from.consume(static_cast<std::size_t>(answer));
  return answer;
}

std::int32_t Transport::write_contiguous_or_pieces(Buffer& from) const noexcept {
  const auto front = from.front();
  const bool in_one_piece = is_file(kind_) || front.size() == from.size();
  return in_one_piece ? write(front) : write_pieces(from, send_flags);
}

std::int32_t Transport::write_large(Buffer& from) const noexcept {
  const auto part = BufferMemory::find_file_part(from, file_part_min, blocks_max);
  if (part.fd < 0) return write_contiguous_or_pieces(from);
  // The kernel puts the end of what precedes the part into one packet with its beginning.
  if (part.bytes_before > 0) return write_pieces(from, send_flags | MSG_MORE, part.bytes_before);
  const std::int32_t answer = send_file(part.fd, part.offset, part.size);
  // A filter of system calls may deny what the kernel supports. The bytes are also in memory.
  if (answer != -EOPNOTSUPP && answer != -EPERM && answer != 0) return answer;
  return write_contiguous_or_pieces(from);
}

std::int32_t Transport::write_before_more(Buffer& from) const noexcept {
  if (kind_ != TransportKind::socket) return write(from);
  const std::int32_t answer = write_pieces(from, send_flags | MSG_MORE);
  if (answer > 0) from.consume(static_cast<std::size_t>(answer));
  return answer;
}

std::int32_t Transport::send_file(int file, std::uint64_t offset,
                                  std::uint64_t size) const noexcept {
  if (kind_ != TransportKind::socket) return -EOPNOTSUPP;
  // sendfile(2) has no flag like MSG_DONTWAIT.
  if (!is_nonblocking_ && system_.make_nonblocking(fd_) < 0) return -errno;
  auto at = static_cast<off_t>(offset);
  const auto count = static_cast<std::size_t>(std::min(size, sent_bytes_max));
  const std::int32_t answer = retry([&] { return system_.sendfile(fd_, file, &at, count); });
  return answer == -EINVAL || answer == -ENOSYS ? -EOPNOTSUPP : answer;
}

std::int32_t Transport::shutdown_write() const noexcept {
  if (filter_ != nullptr) {
    if (const std::int32_t answer = filter_->shutdown_write(below()); answer < 0) return answer;
    return below().shutdown_write();
  }
  return retry([&] { return system_.shutdown(fd_, SHUT_WR); });
}

}  // namespace tambour::detail::io
