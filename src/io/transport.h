// Reading and writing the bytes of a descriptor: the one engine below streams and connections.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include <tambour/bytes/buffer.h>
#include <tambour/detail/transport_filter.h>
#include <tambour/detail/transport_kind.h>

#include "backend/system.h"
#include "io/shared_nonblocking.h"

namespace tambour::detail::io {

/// Repeats a system call that a signal interrupted (EINTR). Returns its result, or a negated errno
/// value.
template <class Call>
std::int32_t retry(Call&& call) noexcept {
  ssize_t answer;
  do {
    answer = call();
  } while (answer < 0 && errno == EINTR);
  return answer < 0 ? -errno : static_cast<std::int32_t>(answer);
}

/// A descriptor and the system calls that transfer its bytes: recv(2), send(2) and sendmsg(2) for a
/// socket, read(2) and write(2) for a pipe or a terminal, and for TLS those of the socket through a
/// filter. Owns nothing; created for each use.
///
/// Each function makes one transfer without blocking and returns the number of bytes, or a negated
/// errno value: EAGAIN if the descriptor is not ready. With a filter, the error may also be one of
/// the filter's protocol: see TransportFilter.
class Transport {
 public:
  /// The size of a piece of a file in a buffer from which on it is sent by sendfile(2). The copy of
  /// a smaller one takes about as long as the call. Frames of HTTP/2, which share a write, are
  /// smaller.
  static constexpr std::size_t file_part_min = std::size_t{16} * 1024 + 1;

  /// `filter` must be set if the kind is TransportKind::tls. `is_nonblocking`: the descriptor is
  /// known to be in non-blocking mode.
  Transport(backend::System& system, int fd, TransportKind kind, TransportFilter* filter = nullptr,
            bool is_nonblocking = false) noexcept
      : system_(system), filter_(filter), fd_(fd), kind_(kind), is_nonblocking_(is_nonblocking) {}

  /// 0: end of file.
  [[nodiscard]] std::int32_t read(std::span<std::byte> into) const noexcept;
  /// Reads what a filter holds and receives nothing: fails with EAGAIN if that is nothing.
  [[nodiscard]] std::int32_t read_held(std::span<std::byte> into) const noexcept {
    return filter_ != nullptr ? filter_->read(below(), into, false) : -EAGAIN;
  }
  /// Appends at most `bytes_max` bytes to `into`. Allocates memory for the read, and releases it if
  /// the read fails; fails with ENOMEM. `read_size` is the estimated size of the next read.
  [[nodiscard]] std::int32_t read(Buffer& into, std::uint32_t& read_size,
                                  std::size_t bytes_max = SIZE_MAX) const noexcept;

  /// True if bytes, the end or an error can be read now. The descriptor must be a socket. Bytes
  /// stay in the socket, except that a filter appends a decoded one to `decoded`.
  [[nodiscard]] bool has_input(Buffer& decoded) const noexcept;

  /// Never raises SIGPIPE.
  [[nodiscard]] std::int32_t write(std::span<const std::byte> from) const noexcept;
  /// Removes the accepted bytes from the front of `from`. A socket gets large parts of files by
  /// sendfile(2): see BufferMemory::make_of_file().
  [[nodiscard]] std::int32_t write(Buffer& from) const noexcept;
  /// The same for a socket that will be sent more at once: the kernel need not send the end of
  /// `from` before (MSG_MORE). With a filter like write().
  [[nodiscard]] std::int32_t write_before_more(Buffer& from) const noexcept;
  /// Sends at most `size` bytes of a file from `offset` on: sendfile(2), before which the
  /// descriptor is put in non-blocking mode. 0: the file ends there.
  /// -EOPNOTSUPP if the descriptor is no socket, uses a filter, or the file does not support it.
  [[nodiscard]] std::int32_t send_file(int file, std::uint64_t offset,
                                       std::uint64_t size) const noexcept;
  /// True if read() failed with `outcome` because the peer has ended the connection without the
  /// message by which the filter's protocol ends.
  [[nodiscard]] bool is_truncation(std::int32_t outcome) const noexcept {
    return filter_ != nullptr && filter_->is_truncation(outcome);
  }
  /// Continues the handshake of the filter: see TransportFilter::handshake().
  [[nodiscard]] std::int32_t handshake() const noexcept { return filter_->handshake(below()); }
  /// The last step of a write: returns 0 when the kernel has accepted all bytes, or an error.
  [[nodiscard]] std::int32_t flush() const noexcept {
    if (unsent() == 0) [[likely]]
      return 0;
    return filter_->flush(below());
  }
  /// The number of encoded bytes that wait for the socket: 0 without a filter.
  [[nodiscard]] std::size_t unsent() const noexcept {
    return filter_ != nullptr ? filter_->unsent() : 0;
  }

  /// Returns 0, or a negated errno value: ENOTSOCK for a pipe. EAGAIN: to be called again when the
  /// descriptor is writable.
  [[nodiscard]] std::int32_t shutdown_write() const noexcept;

  /// To be called before the descriptor is closed.
  void before_close() const noexcept {
    if (filter_ != nullptr) {
      filter_->close(below());
      below().before_close();
    }
    restore_mode();
  }
  /// To be called before the descriptor is released: clears O_NONBLOCK on a shared file.
  void restore_mode() const noexcept {
    if (kind_ == TransportKind::shared_file) restore_blocking(fd_);
  }

 private:
  /// The transport of the socket or of the next filter, for the filter.
  [[nodiscard]] Transport below() const noexcept {
    TransportFilter* const next = filter_->below();
    return Transport(system_, fd_, next != nullptr ? TransportKind::tls : TransportKind::socket,
                     next);
  }
  [[nodiscard]] std::int32_t read_decoded(Buffer& into, std::uint32_t& read_size,
                                          std::size_t bytes_max) const noexcept;
  [[nodiscard]] std::int32_t write_pieces(Buffer& from, int flags,
                                          std::size_t size = SIZE_MAX) const noexcept;
  [[nodiscard]] std::int32_t write_contiguous_or_pieces(Buffer& from) const noexcept;
  [[nodiscard]] std::int32_t write_large(Buffer& from) const noexcept;

  backend::System& system_;
  TransportFilter* filter_;
  int fd_;
  TransportKind kind_;
  bool is_nonblocking_;
};

}  // namespace tambour::detail::io
