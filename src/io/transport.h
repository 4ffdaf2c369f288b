// Reading and writing the bytes of a descriptor: the one engine below streams and connections.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include <tambour/buffer.h>
#include <tambour/detail/transport_kind.h>

#include "backend/system.h"
#include "io/shared_nonblocking.h"

namespace tambour::io {

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
/// socket, read(2) and write(2) for a pipe or a terminal. Owns nothing; created for each use.
///
/// Each function makes one transfer without blocking and returns the number of bytes, or a negated
/// errno value: EAGAIN if the descriptor is not ready.
class Transport {
 public:
  Transport(backend::System& system, int fd, TransportKind kind) noexcept
      : system_(system), fd_(fd), kind_(kind) {}

  /// 0: end of file.
  [[nodiscard]] std::int32_t read(std::span<std::byte> into) const noexcept;
  /// Appends at most `bytes_max` bytes to `into`. Allocates memory for the read, and releases it if
  /// the read fails; fails with ENOMEM. `read_size` is the estimated size of the next read.
  [[nodiscard]] std::int32_t read(Buffer& into, std::uint32_t& read_size,
                                  std::size_t bytes_max = SIZE_MAX) const noexcept;

  /// Never raises SIGPIPE.
  [[nodiscard]] std::int32_t write(std::span<const std::byte> from) const noexcept;
  /// Removes the accepted bytes from the front of `from`.
  [[nodiscard]] std::int32_t write(Buffer& from) const noexcept;

  /// Returns 0, or a negated errno value: ENOTSOCK for a pipe.
  [[nodiscard]] std::int32_t shutdown_write() const noexcept;

  /// To be called before the descriptor is closed or released: clears O_NONBLOCK on a shared file.
  void restore_mode() const noexcept {
    if (kind_ == TransportKind::shared_file) restore_blocking(fd_);
  }

 private:
  [[nodiscard]] bool is_socket() const noexcept { return kind_ == TransportKind::socket; }

  backend::System& system_;
  int fd_;
  TransportKind kind_;
};

}  // namespace tambour::io
