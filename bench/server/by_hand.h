// What whoever writes a server without streams of a library's own does by hand.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/network.h"
#include "common/program.h"

namespace bench {

inline int listen_at(std::uint16_t port) {
  const sockaddr_in address = loopback(port);
  const int on = 1;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd, 4096) != 0)
    fail_errno("listening");
  return fd;
}

/// -1 where nobody waits.
inline int accept_one(int listener) {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= 0) send_at_once(fd);
  return fd;
}

/// How much the kernel took. A peer that has gone is noticed by whoever reads.
inline std::size_t send_some(int fd, const char* bytes, std::size_t size) {
  const ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
  return sent < 0 ? 0 : std::size_t(sent);
}

/// A set of descriptors that is quick to walk, to add to and to remove from.
class Descriptors {
 public:
  void add(int fd) {
    if (places_.size() <= std::size_t(fd)) places_.resize(std::size_t(fd) * 2 + 1);
    places_[fd] = open_.size();
    open_.push_back(fd);
  }
  void remove(int fd) {
    open_[places_[fd]] = open_.back();
    places_[open_.back()] = places_[fd];
    open_.pop_back();
  }
  auto begin() const { return open_.begin(); }
  auto end() const { return open_.end(); }

 private:
  std::vector<int> open_;
  std::vector<std::size_t> places_;
};

}  // namespace bench
