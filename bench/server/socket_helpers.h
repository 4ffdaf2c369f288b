// Socket functions for servers on libraries without streams of their own.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/network.h"
#include "common/program.h"

namespace bench {

inline int listen_on(std::uint16_t port) {
  const sockaddr_in address = loopback(port);
  const int enabled = 1;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &enabled, sizeof enabled);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd, 4096) != 0)
    fail_errno("listening");
  return fd;
}

/// Returns -1 if no connection is pending.
inline int accept_one(int listener) {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= 0) set_no_delay(fd);
  return fd;
}

/// Returns the number of bytes sent, 0 on error: the next recv(2) reports a lost connection.
inline std::size_t send_some(int fd, const char* bytes, std::size_t size) {
  const ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
  return sent < 0 ? 0 : std::size_t(sent);
}

/// A set of descriptors with fast iteration, insertion and removal.
class DescriptorSet {
 public:
  void add(int fd) {
    if (positions_.size() <= std::size_t(fd)) positions_.resize(std::size_t(fd) * 2 + 1);
    positions_[fd] = open_.size();
    open_.push_back(fd);
  }
  void remove(int fd) {
    open_[positions_[fd]] = open_.back();
    positions_[open_.back()] = positions_[fd];
    open_.pop_back();
  }
  auto begin() const { return open_.begin(); }
  auto end() const { return open_.end(); }

 private:
  std::vector<int> open_;
  std::vector<std::size_t> positions_;
};

}  // namespace bench
