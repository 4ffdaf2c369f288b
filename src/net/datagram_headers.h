// What recvmmsg(2) and sendmmsg(2) need for a batch of Unix datagrams.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <vector>

namespace tambour::detail::net {

class DatagramHeaders {
 public:
  explicit DatagramHeaders(std::size_t count) : messages(count), pieces(count), names(count) {}

  std::vector<mmsghdr> messages;   // NOLINT(readability-identifier-naming)
  std::vector<iovec> pieces;       // NOLINT(readability-identifier-naming)
  std::vector<sockaddr_un> names;  // NOLINT(readability-identifier-naming): received.
};

}  // namespace tambour::detail::net
