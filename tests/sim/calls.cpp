// Recorder: makes system calls and writes down their results, for the kernel and for a simulated
// host.
#include "sim/calls.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace tambour::test {
namespace {

sockaddr_un unix_address(std::string_view name, socklen_t& size) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  size = socklen_t(offsetof(sockaddr_un, sun_path) + name.size());
  return address;
}

}  // namespace

void Recorder::result(std::string_view text, ssize_t outcome) {
  const int error = errno;
  say(std::string(text) + " = " +
      (outcome < 0 ? std::string(::strerrorname_np(error)) : std::to_string(outcome)));
}

int Recorder::socket(int domain, int type) {
  const int fd = calls_.socket(domain, type);
  if (fd < 0) result("socket", fd);
  return fd;
}

Recorder::Two Recorder::socketpair(int type) {
  std::array<int, 2> fds{-1, -1};
  result("socketpair", calls_.socketpair(AF_UNIX, type, fds.data()));
  return {fds[0], fds[1]};
}

Recorder::Two Recorder::pipe() {
  std::array<int, 2> fds{-1, -1};
  result("pipe", calls_.pipe2(fds.data()));
  return {fds[0], fds[1]};
}

int Recorder::eventfd(unsigned initial, int flags) { return calls_.eventfd(initial, flags); }

int Recorder::bound(int domain, int type) {
  const int fd = socket(domain, type);
  int outcome;
  if (domain == AF_INET6) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    outcome = calls_.bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
  } else {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    outcome = calls_.bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
  }
  result("bind", outcome);
  return fd;
}

int Recorder::tcp_listener(int backlog) {
  const int fd = bound(AF_INET, SOCK_STREAM);
  listen(fd, backlog);
  return fd;
}

Recorder::Two Recorder::tcp() {
  const int listener = tcp_listener();
  const int client = socket(AF_INET, SOCK_STREAM);
  connect(client, listener);
  ready(client);
  const int server = accept(listener);
  close(listener);
  return {client, server};
}

int Recorder::dup(int fd) { return calls_.dup(fd); }
void Recorder::close(int fd) { result("close", calls_.close(fd)); }
void Recorder::listen(int fd, int backlog) { result("listen", calls_.listen(fd, backlog)); }

int Recorder::accept(int fd) {
  const int accepted = calls_.accept(fd, nullptr, nullptr);
  result("accept", accepted < 0 ? accepted : 0);
  return accepted;
}

Recorder::Where Recorder::where(int fd) {
  Where found;
  calls_.getsockname(fd, found.get(), &found.size);
  return found;
}

void Recorder::connect(int fd, int target) {
  Where to = where(target);
  result("connect", calls_.connect(fd, to.get(), to.size));
}

void Recorder::connect_unix(int fd, std::string_view name) {
  socklen_t size;
  const sockaddr_un address = unix_address(name, size);
  result("connect", calls_.connect(fd, reinterpret_cast<const sockaddr*>(&address), size));
}

void Recorder::bad_addresses(int fd, int family) {
  Where to;
  to.address.ss_family = sa_family_t(family);
  socklen_t full = sizeof(sockaddr_in);
  if (family == AF_INET6) full = 24;  // RFC 2133: without sin6_scope_id.
  if (family == AF_UNIX) full = sizeof(sa_family_t);
  const auto try_all = [&](socklen_t size) {
    result("bind " + std::to_string(size), calls_.bind(fd, to.get(), size));
    result("connect", calls_.connect(fd, to.get(), size));
    result("sendto", calls_.sendto(fd, "x", 1, MSG_NOSIGNAL, to.get(), size));
  };
  for (socklen_t size = 1; size < full; ++size) try_all(size);
  to.address.ss_family = sa_family_t(family == AF_UNIX ? AF_INET : AF_UNIX);
  result("bind", calls_.bind(fd, to.get(), sizeof(sockaddr_in6)));
  result("connect", calls_.connect(fd, to.get(), sizeof(sockaddr_in6)));
}

void Recorder::bind_unix(int fd, std::string_view name) {
  socklen_t size;
  const sockaddr_un address = unix_address(name, size);
  result("bind", calls_.bind(fd, reinterpret_cast<const sockaddr*>(&address), size));
}

void Recorder::bind_where(int fd, int target) {
  Where to = where(target);
  result("bind", calls_.bind(fd, to.get(), to.size));
}

void Recorder::shutdown(int fd, int mode) { result("shutdown", calls_.shutdown(fd, mode)); }

void Recorder::read(int fd, std::size_t size) {
  std::string bytes(size, '\0');
  const ssize_t outcome = calls_.read(fd, bytes.data(), size);
  result("read", outcome);
  if (outcome > 0) say(bytes.substr(0, std::size_t(outcome)));
}

void Recorder::write(int fd, std::string_view bytes) {
  result("write", calls_.write(fd, bytes.data(), bytes.size()));
}

void Recorder::recv(int fd, std::size_t size, int flags) {
  std::string bytes(size, '\0');
  const ssize_t outcome = calls_.recvfrom(fd, bytes.data(), size, flags, nullptr, nullptr);
  result("recv", outcome);
  if (outcome > 0) say(bytes.substr(0, std::size_t(outcome)));
}

void Recorder::send(int fd, std::string_view bytes, int flags) {
  result("send", calls_.sendto(fd, bytes.data(), bytes.size(), flags | MSG_NOSIGNAL, nullptr, 0));
}

void Recorder::send_to(int fd, std::string_view bytes, int target) {
  Where to = where(target);
  result("sendto", calls_.sendto(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL, to.get(), to.size));
}

void Recorder::recv_from(int fd, int sender) {
  std::string bytes(100, '\0');
  Where from;
  const ssize_t outcome =
      calls_.recvfrom(fd, bytes.data(), bytes.size(), 0, from.get(), &from.size);
  result("recvfrom", outcome);
  if (outcome < 0) return;
  Where expected = where(sender);
  const bool same = from.size == expected.size &&
                    std::memcmp(from.get(), expected.get(), std::size_t(from.size)) == 0;
  say(same ? "from the sender" : "from elsewhere");
  say(bytes.substr(0, std::size_t(outcome)));
}

void Recorder::option(int fd, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  result("getsockopt", calls_.getsockopt(fd, SOL_SOCKET, option, &value, &size));
  say("value " + std::to_string(value));
}

void Recorder::error_of(int fd) {
  int value = 0;
  socklen_t size = sizeof value;
  result("SO_ERROR", calls_.getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &size));
  if (value != 0) say(::strerrorname_np(value));
}

void Recorder::linger_reset(int fd) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  result("SO_LINGER", calls_.setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
}

void Recorder::names(int fd) {
  for (const bool peer : {false, true}) {
    Where found;
    const int outcome = peer ? calls_.getpeername(fd, found.get(), &found.size)
                             : calls_.getsockname(fd, found.get(), &found.size);
    result(peer ? "getpeername" : "getsockname", outcome);
    if (outcome < 0) continue;
    say("size " + std::to_string(found.size));
    if (found.address.ss_family == AF_INET) {
      const auto* in = reinterpret_cast<const sockaddr_in*>(&found.address);
      say(::inet_ntoa(in->sin_addr) + std::string(in->sin_port != 0 ? " and a port" : ""));
    } else if (found.address.ss_family == AF_UNIX) {
      const auto* un = reinterpret_cast<const sockaddr_un*>(&found.address);
      say(std::string(un->sun_path, found.size - offsetof(sockaddr_un, sun_path)));
    }
  }
}

void Recorder::names_cut_short(int fd, unsigned size) {
  for (const bool peer : {false, true}) {
    Where found;
    found.size = size;
    const int outcome = peer ? calls_.getpeername(fd, found.get(), &found.size)
                             : calls_.getsockname(fd, found.get(), &found.size);
    result(peer ? "getpeername" : "getsockname", outcome);
    say("size " + std::to_string(found.size));
    say("family " + std::to_string(found.address.ss_family));
  }
}

void Recorder::ready(int fd) {
  Events seen = Events::none;
  FdWatcher watcher(calls_.loop(), fd, Events::read | Events::write | Events::closed,
                    [&seen](Events events) { seen |= events; });
  if (!watcher.start()) return;
  for (int iteration = 0; iteration < 3; ++iteration) calls_.loop().run_ready();
  std::string words = "ready:";
  if (has(seen, Events::read)) words += " read";
  if (has(seen, Events::write)) words += " write";
  if (has(seen, Events::error)) words += watcher.error() ? " failed" : " error";
  if (has(seen, Events::closed)) words += " closed";
  say(words);
}

void Recorder::fill(int fd) {
  const std::vector<char> bytes(4096);
  ssize_t outcome;
  while ((outcome = calls_.write(fd, bytes.data(), bytes.size())) > 0) {
  }
  result("full", outcome);
}

void Recorder::drain(int fd) {
  std::vector<char> bytes(4096);
  ssize_t outcome;
  while ((outcome = calls_.read(fd, bytes.data(), bytes.size())) > 0) {
  }
  result("empty", outcome);
}

}  // namespace tambour::test
