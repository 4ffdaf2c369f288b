#include "http/client.h"

#include <strings.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "common/program.h"

namespace bench {
namespace {

constexpr std::string_view status_line = "HTTP/1.1 200 OK\r\n";

std::string request_of(const HttpWork& work) {
  std::string text = std::string(work.method) + " " + work.target +
                     " HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n";
  if (work.body_bytes > 0) text += "Content-Length: " + std::to_string(work.body_bytes) + "\r\n";
  return text + "\r\n" + std::string(std::size_t(work.body_bytes), 'u');
}

/// The value of Content-Length, or -1.
long length_in(const std::string& head) {
  constexpr std::string_view name = "\r\ncontent-length:";
  for (std::size_t at = 0; at + name.size() < head.size(); ++at)
    if (strncasecmp(head.c_str() + at, name.data(), name.size()) == 0)
      return std::atol(head.c_str() + at + name.size());
  return -1;
}

}  // namespace

HttpClients::HttpClients(std::uint16_t port, int connections, int pipelined, const HttpWork& work)
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      pipelined_(pipelined),
      request_(request_of(work)),
      connections_(std::size_t(connections)),
      buffer_(256 * 1024) {
  if (epoll_ < 0) fail_errno("client: epoll_create1");
  for (int i = 0; i < pipelined; ++i) requests_ += request_;
  for (Connection& entry : connections_) entry.channel = std::make_unique<Channel>(port, work.tls);
  learn_size(work.response_bytes);
  for (Connection& connection : connections_) {
    connection.channel->set_non_blocking();
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &connection}};
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.channel->fd(), &event) != 0)
      fail_errno("client: epoll_ctl");
    unused_.push_back(&connection);
  }
}

HttpClients::~HttpClients() { close(epoll_); }

void HttpClients::learn_size(int body_bytes) {
  const Channel& channel = *connections_.front().channel;
  for (std::size_t sent = 0; sent < request_.size();) {
    const ssize_t done = channel.send(request_.data() + sent, request_.size() - sent);
    if (done <= 0) fail_errno("client: send");
    sent += std::size_t(done);
  }
  std::string response;
  while (response_bytes_ == 0 || response.size() < response_bytes_) {
    const ssize_t got = channel.receive(buffer_.data(), buffer_.size());
    if (got <= 0) fail("client: the server closed the connection after: " + response);
    response.append(buffer_.data(), std::size_t(got));
    const std::size_t end = response.find("\r\n\r\n");
    if (response_bytes_ != 0 || end == std::string::npos) continue;
    const long length = length_in(response.substr(0, end + 2));
    if (!response.starts_with(status_line) || length < 0 ||
        (body_bytes > 0 && length != body_bytes))
      fail("client: unexpected response: " + response.substr(0, end));
    response_bytes_ = end + 4 + std::size_t(length);
  }
  if (response.size() != response_bytes_) fail("client: bytes after the response");
}

void HttpClients::request(Connection& connection) {
  connection.unsent = requests_.size();
  connection.missing = response_bytes_ * std::size_t(pipelined_);
  connection.at_start = true;
  send(connection);
}

void HttpClients::send(Connection& connection) {
  while (connection.unsent > 0) {
    const ssize_t done = connection.channel->send(
        requests_.data() + requests_.size() - connection.unsent, connection.unsent);
    if (done < 0 && errno == EAGAIN) return watch(connection, true);
    if (done <= 0) fail_errno("client: send");
    connection.unsent -= std::size_t(done);
  }
  watch(connection, false);
}

void HttpClients::watch(Connection& connection, bool waits_to_send) {
  if (std::exchange(connection.waits_to_send, waits_to_send) == waits_to_send) return;
  epoll_event event{.events = waits_to_send ? EPOLLIN | EPOLLOUT : EPOLLIN,
                    .data = {.ptr = &connection}};
  if (epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.channel->fd(), &event) != 0)
    fail_errno("client: epoll_ctl");
}

void HttpClients::receive(Connection& connection) {
  const ssize_t got = connection.channel->receive(buffer_.data(), buffer_.size());
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) fail("client: the server closed a connection");
  if (std::size_t(got) > connection.missing) fail("client: the size of a response has changed");
  if (connection.at_start && std::size_t(got) >= status_line.size() &&
      !std::string_view(buffer_.data(), std::size_t(got)).starts_with(status_line))
    fail("client: unexpected response");
  connection.at_start = false;
  connection.missing -= std::size_t(got);
  if (connection.missing == 0) complete(connection);
}

void HttpClients::complete(Connection& connection) {
  responses_ += pipelined_;
  if (at_once_) return request(connection);
  latencies_.push_back(now_ns() - connection.due_ns);
  unused_.push_back(&connection);
}

void HttpClients::run_once(int timeout_ms) {
  std::array<epoll_event, 256> events;
  const int count = epoll_wait(epoll_, events.data(), int(events.size()), timeout_ms);
  if (count < 0 && errno != EINTR) fail_errno("client: epoll_wait");
  for (int i = 0; i < count; ++i) {
    Connection& connection = *static_cast<Connection*>(events[std::size_t(i)].data.ptr);
    if ((events[std::size_t(i)].events & EPOLLOUT) != 0) send(connection);
    if ((events[std::size_t(i)].events & ~EPOLLOUT) != 0) receive(connection);
  }
}

void HttpClients::begin() {
  at_once_ = true;
  for (Connection* connection : std::exchange(unused_, {})) request(*connection);
}

std::int64_t HttpClients::run(double seconds) {
  const auto before = responses_;
  begin();
  const auto end = now_ns() + std::int64_t(seconds * 1e9);
  while (now_ns() < end) run_once(100);
  return responses_ - before;
}

void HttpClients::run_count(std::int64_t responses) {
  const auto end = responses_ + responses;
  begin();
  while (responses_ < end) run_once(100);
}

std::vector<std::int64_t> HttpClients::run_at_rate(double per_second, double seconds) {
  at_once_ = false;
  latencies_.clear();
  const auto begin = now_ns();
  const auto end = begin + std::int64_t(seconds * 1e9);
  double due = double(begin);
  for (auto now = begin; now < end; now = now_ns()) {
    while (due <= double(now) && !unused_.empty()) {
      Connection& connection = *unused_.back();
      unused_.pop_back();
      connection.due_ns = std::int64_t(due);
      due += 1e9 / per_second;
      request(connection);
    }
    run_once(0);  // Spins, so that no request is late.
  }
  return std::exchange(latencies_, {});
}

}  // namespace bench
