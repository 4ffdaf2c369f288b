#include "common/network.h"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/program.h"

namespace bench {
namespace {

int open_socket() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail_errno("socket");
  return fd;
}

int connect_socket(int fd, std::uint16_t port) {
  const sockaddr_in address = loopback(port);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    fail_errno("connect to 127.0.0.1");
  set_no_delay(fd);
  return fd;
}

}  // namespace

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

std::uint16_t free_port() {
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const int fd = open_socket();
  if (bind(fd, generic, length) != 0 || getsockname(fd, generic, &length) != 0)
    fail_errno("find a free port");
  close(fd);
  return ntohs(address.sin_port);
}

int connect_to(std::uint16_t port) { return connect_socket(open_socket(), port); }

bool can_connect_to(std::uint16_t port) {
  const int fd = open_socket();
  const sockaddr_in address = loopback(port);
  const bool connected =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close_with_reset(fd);
  return connected;
}

int connect_from(int host, std::uint16_t port) {
  const int fd = open_socket();
  const int enabled = 1;
  // Defers the choice of the port to connect(2), which can reuse ports with other destinations.
  setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &enabled, sizeof enabled);
  sockaddr_in address = loopback(0);
  address.sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xFFU) | unsigned(host));
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    fail_errno("bind");
  return connect_socket(fd, port);
}

void set_no_delay(int fd) {
  const int enabled = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &enabled, sizeof enabled);
}

void close_with_reset(int fd) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(fd);
}

}  // namespace bench
