// Sends and receives one message on a blocking connection.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>

#include "common/program.h"

namespace bench {

inline void send_message(int fd, const char* bytes, std::size_t size) {
  if (send(fd, bytes, size, MSG_NOSIGNAL) != ssize_t(size)) fail_errno("client: send");
}

/// `flags` are those of recv(2); with MSG_DONTWAIT, the function busy-loops.
inline void receive_message(int fd, char* bytes, std::size_t size, int flags = 0) {
  for (std::size_t received = 0; received < size;) {
    const ssize_t got = recv(fd, bytes + received, size - received, flags);
    if (got == 0) fail("client: the server closed a connection");
    if (got > 0) {
      received += std::size_t(got);
    } else if (errno != EAGAIN && errno != EINTR) {
      fail_errno("client: recv");
    }
  }
}

}  // namespace bench
