// Owns a file descriptor.
#pragma once

#include <unistd.h>

#include <utility>

#include <tambour/base/cxx23.h>

#pragma GCC visibility push(default)

namespace tambour {

/// A move-only owner of a file descriptor, which it closes on destruction.
class UniqueFd {
 public:
  UniqueFd() = default;
  /// Takes ownership of `fd`. A negative number means none.
  explicit UniqueFd(int fd) noexcept : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  /// Closes the owned file descriptor, if any, and takes ownership of `fd`.
  void reset(int fd = -1) noexcept {
    // close(2) is not repeated after EINTR: on Linux the file descriptor is closed nevertheless. If
    // `fd` equals fd_, other code has closed the file descriptor and its number was reused, as
    // daemons do; closing it here would close the new file.
    if (fd_ >= 0 && fd_ != fd) ::close(fd_);
    fd_ = fd;
  }

  /// Returns the file descriptor and transfers its ownership to the caller.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

  /// The file descriptor, which the object still owns; -1 if there is none.
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace tambour

#pragma GCC visibility pop
