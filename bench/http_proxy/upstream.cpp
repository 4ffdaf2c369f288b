// Upstream: one thread, one epoll. Requests have no bodies.
#include "http_proxy/upstream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <string_view>

#include "common/program.h"

namespace bench {
namespace {

struct Peer {
  std::string unsent{};
  int matched = 0;  ///< Bytes of the empty line that have arrived.
};

/// The number of heads that end within the bytes.
int count_requests(Peer& peer, std::string_view bytes) {
  constexpr std::string_view end = "\r\n\r\n";
  int requests = 0;
  for (const char c : bytes) {
    if (c == end[std::size_t(peer.matched)]) {
      ++peer.matched;
    } else {
      peer.matched = c == '\r' ? 1 : 0;
    }
    if (peer.matched < int(end.size())) continue;
    peer.matched = 0;
    ++requests;
  }
  return requests;
}

void watch(int epoll, int operation, int fd, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  if (epoll_ctl(epoll, operation, fd, &event) != 0) fail_errno("epoll_ctl");
}

/// Returns false if the connection has ended.
bool send_rest(int epoll, int fd, Peer& peer) {
  const ssize_t sent = send(fd, peer.unsent.data(), peer.unsent.size(), MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN) return false;
  peer.unsent.erase(0, std::size_t(sent < 0 ? 0 : sent));
  watch(epoll, EPOLL_CTL_MOD, fd, peer.unsent.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
  return true;
}

}  // namespace

Upstream::Upstream(int body_bytes)
    : listener_(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
      stop_(eventfd(0, EFD_CLOEXEC)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener_, any, size) != 0 || listen(listener_, 4096) != 0 ||
      getsockname(listener_, any, &size) != 0)
    fail_errno("listen");
  port_ = ntohs(address.sin_port);
  response_ =
      "HTTP/1.1 200 OK\r\nServer: upstream\r\nContent-Type: text/plain\r\nDate: Thu, 01 Jan "
      "1970 00:00:00 GMT\r\nContent-Length: " +
      std::to_string(body_bytes) + "\r\n\r\n" + std::string(std::size_t(body_bytes), 'b');
}

Upstream::~Upstream() {
  const std::uint64_t one = 1;
  static_cast<void>(!write(stop_, &one, sizeof one));
  if (thread_.joinable()) thread_.join();
  close(stop_);
  close(listener_);
}

void Upstream::start() {
  thread_ = std::thread([this] { serve(); });
}

void Upstream::serve() {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  watch(epoll, EPOLL_CTL_ADD, listener_, EPOLLIN);
  watch(epoll, EPOLL_CTL_ADD, stop_, EPOLLIN);
  std::map<int, Peer> peers;
  std::array<epoll_event, 256> events;
  std::array<char, 65536> bytes;
  const auto drop = [&](int fd) {
    close(fd);
    peers.erase(fd);
  };
  while (true) {
    const int ready = epoll_wait(epoll, events.data(), int(events.size()), -1);
    for (int i = 0; i < ready; ++i) {
      const int fd = events[std::size_t(i)].data.fd;
      if (fd == stop_) {
        for (const auto& [peer, unused] : peers) close(peer);
        close(epoll);
        return;
      }
      if (fd == listener_) {
        const int peer = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (peer < 0) continue;
        const int on = 1;
        setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        peers[peer];
        watch(epoll, EPOLL_CTL_ADD, peer, EPOLLIN);
        continue;
      }
      Peer& peer = peers[fd];
      if (!peer.unsent.empty()) {
        if (!send_rest(epoll, fd, peer)) drop(fd);
        continue;
      }
      const ssize_t got = recv(fd, bytes.data(), bytes.size(), 0);
      if (got < 0 && errno == EAGAIN) continue;
      if (got <= 0) {
        drop(fd);
        continue;
      }
      for (int left = count_requests(peer, {bytes.data(), std::size_t(got)}); left > 0; --left) {
        std::size_t sent = 0;
        if (peer.unsent.empty()) {
          const ssize_t now = send(fd, response_.data(), response_.size(), MSG_NOSIGNAL);
          sent = std::size_t(now < 0 ? 0 : now);
        }
        peer.unsent.append(response_, sent);
      }
      if (!peer.unsent.empty() && !send_rest(epoll, fd, peer)) drop(fd);
    }
  }
}

}  // namespace bench
