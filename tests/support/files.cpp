// Makes descriptors of each kind of file, and fills, drains and awaits them.
#include "support/files.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace tambour::test {
namespace {

int check(int result, const char* call) {
  if (result < 0) {
    std::perror(call);
    std::abort();
  }
  return result;
}

UniqueFd tcp_socket() {
  return UniqueFd(check(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
}

sockaddr_in bind_to_any_port(const UniqueFd& socket) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  check(::bind(socket.get(), generic, size), "bind");
  check(::getsockname(socket.get(), generic, &size), "getsockname");
  return address;
}

int connect_to(const UniqueFd& socket, const sockaddr_in& address) {
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

void make_non_blocking(const UniqueFd& fd) {
  check(::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK), "fcntl");
}

}  // namespace

Ends open_pipe() {
  std::array<int, 2> fds{};
  check(::pipe2(fds.data(), O_NONBLOCK | O_CLOEXEC), "pipe2");
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Ends open_socketpair() {
  std::array<int, 2> fds{};
  check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()),
        "socketpair");
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Ends open_tcp() {
  const UniqueFd listener = tcp_socket();
  const sockaddr_in address = bind_to_any_port(listener);
  check(::listen(listener.get(), 1), "listen");
  Ends ends{tcp_socket(), {}};
  check(connect_to(ends.near, address), "connect");
  ends.far = UniqueFd(check(::accept(listener.get(), nullptr, nullptr), "accept"));
  make_non_blocking(ends.near);
  make_non_blocking(ends.far);
  return ends;
}

UniqueFd open_eventfd() {
  return UniqueFd(check(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd"));
}

UniqueFd open_regular_file() {
  char path[] = "/tmp/tambour-test-XXXXXX";
  UniqueFd file(check(::mkstemp(path), "mkstemp"));
  ::unlink(path);
  return file;
}

UniqueFd open_refused() {
  // Bound but not listening, so that no other process can listen on the port.
  const UniqueFd reserved = tcp_socket();
  const sockaddr_in address = bind_to_any_port(reserved);
  UniqueFd socket = tcp_socket();
  make_non_blocking(socket);
  if (connect_to(socket, address) == 0 || (errno != EINPROGRESS && errno != ECONNREFUSED))
    std::abort();
  return socket;
}

UniqueFd duplicate_above(const UniqueFd& fd, int number) {
  return UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, number));
}

void write_to(const UniqueFd& fd, std::string_view text) {
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    check(-1, "write");
}

void drain(const UniqueFd& fd) {
  std::array<char, 4096> buffer;
  while (::read(fd.get(), buffer.data(), buffer.size()) > 0) {
  }
}

void await(const UniqueFd& fd, Events events) {
  pollfd polled{.fd = fd.get(), .events = static_cast<short>(events), .revents = 0};
  constexpr int timeout_ms = 60'000;
  if (::poll(&polled, 1, timeout_ms) != 1) std::abort();
}

void fill(const UniqueFd& fd) {
  const std::array<char, 4096> buffer{};
  while (::write(fd.get(), buffer.data(), buffer.size()) > 0) {
  }
}

}  // namespace tambour::test
