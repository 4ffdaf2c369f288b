// Owns a file descriptor.
#pragma once

#include <unistd.h>

#include <utility>

#include <tambour/cxx23.h>

namespace tambour {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) noexcept : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(-1); }

  void reset(int fd) noexcept {
    // close(2) is not repeated at EINTR: on Linux the descriptor is gone all the same. The same
    // number comes anew where other code has closed it, as daemons do: it is what is to be owned.
    if (fd_ >= 0 && fd_ != fd) ::close(fd_);
    fd_ = fd;
  }

  /// Gives it away.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace tambour
