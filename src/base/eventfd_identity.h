// Recognizes an eventfd(2) after other code may have closed its descriptor and reused the number.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace tambour::detail::base {

/// All anonymous inodes (eventfd, epoll, timerfd) share one device and inode, so an eventfd is
/// identified by its number in /proc/self/fdinfo, which the kernel does not reuse while any process
/// holds the eventfd. Before Linux 5.2, or without /proc, only the device and inode are compared.
class EventfdIdentity {
 public:
  EventfdIdentity() noexcept = default;
  explicit EventfdIdentity(int fd) noexcept;

  /// Returns true if `fd` is open and refers to this eventfd.
  [[nodiscard]] bool is(int fd) const noexcept;

 private:
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::optional<std::uint64_t> id_;  ///< Empty if /proc could not be read.
};

}  // namespace tambour::detail::base
