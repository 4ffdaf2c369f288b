#include "http/client.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "common/network.h"
#include "common/program.h"
#include "http/http.h"

namespace bench {
namespace {

constexpr std::string_view status_line = "HTTP/1.1 200 OK\r\n";

}  // namespace

HttpClients::HttpClients(std::uint16_t port, int connections, int pipelined, int body_bytes)
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      pipelined_(pipelined),
      request_(std::string("GET ") + http_target +
               " HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n"),
      connections_(std::size_t(connections)),
      buffer_(256 * 1024) {
  if (epoll_ < 0) fail_errno("client: epoll_create1");
  for (int i = 0; i < pipelined; ++i) requests_ += request_;
  for (Connection& each : connections_) each.fd = connect_to(port);
  learn_size(body_bytes);
  for (Connection& each : connections_) {
    fcntl(each.fd, F_SETFL, O_NONBLOCK);
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &each}};
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, each.fd, &event) != 0) fail_errno("client: epoll_ctl");
    request(each);
  }
}

HttpClients::~HttpClients() {
  for (const Connection& each : connections_) close_with_reset(each.fd);
  close(epoll_);
}

void HttpClients::learn_size(int body_bytes) {
  const int fd = connections_.front().fd;
  if (send(fd, request_.data(), request_.size(), MSG_NOSIGNAL) != ssize_t(request_.size()))
    fail_errno("client: send");
  std::string response;
  std::size_t end = std::string::npos;
  while (response_bytes_ == 0 || response.size() < response_bytes_) {
    const ssize_t got = recv(fd, buffer_.data(), buffer_.size(), 0);
    if (got <= 0) fail("client: the server closed the connection after: " + response);
    response.append(buffer_.data(), std::size_t(got));
    if (response_bytes_ == 0) end = response.find("\r\n\r\n");
    if (end != std::string::npos) response_bytes_ = end + 4 + std::size_t(body_bytes);
  }
  const std::string length = "Content-Length: " + std::to_string(body_bytes) + "\r\n";
  if (!response.starts_with(status_line) || response.size() != response_bytes_ ||
      response.find(length) > end)
    fail("client: unexpected response: " + response.substr(0, end));
}

void HttpClients::request(Connection& connection) {
  // Always fits into the buffer of the socket.
  if (send(connection.fd, requests_.data(), requests_.size(), MSG_NOSIGNAL) !=
      ssize_t(requests_.size()))
    fail_errno("client: send");
  connection.missing = response_bytes_ * std::size_t(pipelined_);
  connection.at_start = true;
}

void HttpClients::receive(Connection& connection) {
  const ssize_t got = recv(connection.fd, buffer_.data(), buffer_.size(), 0);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) fail("client: the server closed a connection");
  if (std::size_t(got) > connection.missing) fail("client: the size of a response has changed");
  if (connection.at_start && std::size_t(got) >= status_line.size() &&
      !std::string_view(buffer_.data(), std::size_t(got)).starts_with(status_line))
    fail("client: unexpected response");
  connection.at_start = false;
  connection.missing -= std::size_t(got);
  if (connection.missing > 0) return;
  responses_ += pipelined_;
  request(connection);
}

std::int64_t HttpClients::run(double seconds) {
  const auto before = responses_;
  const auto end = now_ns() + std::int64_t(seconds * 1e9);
  while (now_ns() < end) {
    std::array<epoll_event, 256> events;
    const int count = epoll_wait(epoll_, events.data(), int(events.size()), 100);
    if (count < 0 && errno != EINTR) fail_errno("client: epoll_wait");
    for (int i = 0; i < count; ++i)
      receive(*static_cast<Connection*>(events[std::size_t(i)].data.ptr));
  }
  return responses_ - before;
}

}  // namespace bench
