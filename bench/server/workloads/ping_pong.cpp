#include "server/workloads/ping_pong.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "common/network.h"

namespace bench {

PingPong::PingPong(const ServerProcess& server, int connections, int size)
    : server_(server),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      message_(std::size_t(size), 'm'),
      buffer_(std::size_t(1) << 18) {
  if (epoll_ < 0) fail_errno("client: epoll_create1");
  for (int i = 0; i < connections; ++i) {
    connections_.push_back({connect_to(server.port()), 0, 0});
    fcntl(connections_.back().fd, F_SETFL, O_NONBLOCK);
    epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLET, .data = {.u32 = unsigned(i)}};
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, connections_.back().fd, &event) != 0)
      fail_errno("client: epoll_ctl");
  }
}

PingPong::~PingPong() {
  for (const Connection& connection : connections_) close_with_reset(connection.fd);
  close(epoll_);
}

Rate PingPong::measure(int milliseconds) {
  exchange_for(milliseconds / 5e3);
  const auto bytes = bytes_received_;
  const auto begin = now_ns();
  const auto cpu = server_.cpu_ns();
  exchange_for(milliseconds / 1e3);
  const double used = double(server_.cpu_ns() - cpu);
  const double seconds = double(now_ns() - begin) / 1e9;
  const double messages = double(bytes_received_ - bytes) / double(message_.size());
  if (messages == 0) fail("no message was returned during the measurement");
  return {messages / seconds, used / messages};
}

void PingPong::exchange_for(double seconds) {
  const auto end = now_ns() + std::int64_t(seconds * 1e9);
  while (now_ns() < end) exchange_ready();
}

void PingPong::exchange_count(std::int64_t messages) {
  bytes_wanted_ = bytes_received_ + messages * std::int64_t(message_.size());
  while (bytes_received_ < bytes_wanted_) exchange_ready();
  server_.wait_until_idle();
}

void PingPong::exchange_ready() {
  std::array<epoll_event, 256> events;
  const int count = epoll_wait(epoll_, events.data(), int(events.size()), 100);
  if (count < 0 && errno != EINTR) fail_errno("client: epoll_wait");
  for (int i = 0; i < count; ++i) exchange(connections_[events[i].data.u32]);
}

void PingPong::exchange(Connection& connection) {
  for (;;) {
    const bool sent = send_more(connection);
    const bool received = receive_more(connection);
    if (connection.received == message_.size()) {
      connection.sent = connection.received = 0;
      // If the server is faster than this process, it could go on without end.
      if (bytes_received_ >= bytes_wanted_) return;
    } else if (!sent && !received) {
      return;
    }
  }
}

bool PingPong::send_more(Connection& connection) {
  if (connection.sent == message_.size()) return false;
  const ssize_t taken = send(connection.fd, message_.data() + connection.sent,
                             message_.size() - connection.sent, MSG_NOSIGNAL);
  if (taken < 0 && errno != EAGAIN) fail_errno("client: send");
  connection.sent += std::size_t(std::max<ssize_t>(taken, 0));
  return taken > 0;
}

bool PingPong::receive_more(Connection& connection) {
  const ssize_t got = recv(connection.fd, buffer_.data(), buffer_.size(), 0);
  if (got == 0) fail("client: the server closed a connection");
  if (got < 0 && errno != EAGAIN) fail_errno("client: recv");
  connection.received += std::size_t(std::max<ssize_t>(got, 0));
  bytes_received_ += std::max<ssize_t>(got, 0);
  if (connection.received > connection.sent) fail("client: received more bytes than were sent");
  return got > 0;
}

}  // namespace bench
