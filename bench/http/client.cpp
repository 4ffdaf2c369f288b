#include "http/client.h"

#include <poll.h>
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
/// The addresses of connections that are closed: 127.0.0.2 to 127.0.0.250.
constexpr int first_host = 2;
constexpr int last_host = 250;

std::string request_of(const HttpWork& work) {
  std::string text = work.method + " " + work.target +
                     " HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n" +
                     work.fields;
  if (!work.body.empty() && !work.fields.contains("Transfer-Encoding"))
    text += "Content-Length: " + std::to_string(work.body.size()) + "\r\n";
  return text + "\r\n" + work.body;
}

/// The value of a field, or an empty string. `name` is in lower case, between CRLF and colon.
std::string value_in(const std::string& head, std::string_view name) {
  for (std::size_t at = 0; at + name.size() < head.size(); ++at) {
    if (strncasecmp(head.c_str() + at, name.data(), name.size()) != 0) continue;
    const std::size_t begin = head.find_first_not_of(' ', at + name.size());
    return head.substr(begin, head.find('\r', begin) - begin);
  }
  return {};
}

/// The size of a response, or 0 if it is not known yet. Fails if it is not the expected one.
std::size_t size_of(const std::string& received, int body_bytes) {
  const std::size_t end = received.find("\r\n\r\n");
  if (end == std::string::npos) return 0;
  const std::string head = received.substr(0, end + 2);
  const std::string length = value_in(head, "\r\ncontent-length:");
  if (!received.starts_with(status_line)) fail("client: unexpected response: " + head);
  if (length.empty()) {
    // The content of the responses has no line with a zero.
    if (value_in(head, "\r\ntransfer-encoding:") != "chunked" || body_bytes > 0)
      fail("client: unexpected response: " + head);
    return received.ends_with("\r\n0\r\n\r\n") ? received.size() : 0;
  }
  if (body_bytes > 0 && length != std::to_string(body_bytes))
    fail("client: unexpected response: " + head);
  return end + 4 + std::size_t(std::atol(length.c_str()));
}

}  // namespace

HttpClients::HttpClients(std::uint16_t port, const HttpClientOptions& options,
                         const std::vector<HttpWork>& works)
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      port_(port),
      options_(options),
      connections_(std::size_t(options.connections)),
      buffer_(256 * 1024) {
  if (epoll_ < 0) fail_errno("client: epoll_create1");
  {
    const Channel channel(port, options.tls);
    for (const HttpWork& work : works) batches_.push_back(learn(channel, work));
  }
  for (Connection& connection : connections_) {
    connection.batch = unused_.size() % batches_.size();
    open(connection);
    unused_.push_back(&connection);
  }
}

HttpClients::~HttpClients() { close(epoll_); }

void HttpClients::open(Connection& connection) {
  if (options_.requests_per_connection > 0) {
    host_ = host_ < first_host || host_ == last_host ? first_host : host_ + 1;
    if (connection.channel != nullptr) connection.channel->close_in_order();
  }
  connection.channel = std::make_unique<Channel>(port_, options_.tls, nullptr, host_);
  connection.requests_left = options_.requests_per_connection;
  connection.waits_to_send = false;
  connection.channel->set_non_blocking();
  epoll_event event{.events = EPOLLIN, .data = {.ptr = &connection}};
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.channel->fd(), &event) != 0)
    fail_errno("client: epoll_ctl");
}

HttpClients::Batch HttpClients::learn(const Channel& channel, const HttpWork& work) {
  const std::string text = request_of(work);
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t done = channel.send(text.data() + sent, text.size() - sent);
    if (done <= 0) fail_errno("client: send");
    sent += std::size_t(done);
  }
  std::string response;
  std::size_t size = 0;
  while (size == 0 || response.size() < size) {
    const ssize_t got = channel.receive(buffer_.data(), buffer_.size());
    if (got <= 0) fail("client: the server closed the connection after: " + response);
    response.append(buffer_.data(), std::size_t(got));
    if (size == 0) size = size_of(response, work.response_bytes);
  }
  if (response.size() != size) fail("client: bytes after the response");
  Batch batch;
  for (int i = 0; i < options_.pipelined; ++i) batch.requests += text;
  batch.response_bytes = size * std::size_t(options_.pipelined);
  return batch;
}

void HttpClients::request(Connection& connection) {
  const Batch& batch = batches_[connection.batch];
  connection.unsent = batch.requests.size();
  connection.missing = batch.response_bytes;
  connection.at_start = true;
  send(connection);
}

void HttpClients::send(Connection& connection) {
  const std::string& requests = batches_[connection.batch].requests;
  while (connection.unsent > 0) {
    const ssize_t done = connection.channel->send(
        requests.data() + requests.size() - connection.unsent, connection.unsent);
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
  if (got <= 0 && connection.missing == 0) return open(connection);
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
  responses_ += options_.pipelined;
  if (++connection.batch == batches_.size()) connection.batch = 0;
  if (options_.requests_per_connection > 0 && --connection.requests_left == 0) open(connection);
  if (at_once_) return request(connection);
  latencies_.push_back({connection.due_ns, now_ns() - connection.due_ns});
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
  while (now_ns() < end) {
    run_once(100);
    if (between_) between_();
  }
  return responses_ - before;
}

void HttpClients::run_count(std::int64_t responses) {
  const auto end = responses_ + responses;
  begin();
  while (responses_ < end) run_once(100);
}

void HttpClients::request_each(int in_flight_max) {
  at_once_ = false;
  const std::deque<Connection*> all = std::exchange(unused_, {});
  std::size_t begun = 0;
  while (unused_.size() < all.size()) {
    while (begun < all.size() && begun < unused_.size() + std::size_t(in_flight_max))
      request(*all[begun++]);
    run_once(100);
  }
}

void HttpClients::wait_until(std::int64_t ns) const {
  const std::int64_t left_ns = ns - now_ns();
  // If a request is late because no connection is free, until one is.
  const timespec limit = left_ns > 0 ? timespec{left_ns / 1'000'000'000, left_ns % 1'000'000'000}
                                     : timespec{0, 1'000'000};
  pollfd readable{.fd = epoll_, .events = POLLIN, .revents = 0};
  if (ppoll(&readable, 1, &limit, nullptr) < 0 && errno != EINTR) fail_errno("client: ppoll");
}

std::vector<HttpLatency> HttpClients::run_at_rate(double per_second, double seconds) {
  at_once_ = false;
  latencies_.clear();
  const auto begin = now_ns();
  const auto end = begin + std::int64_t(seconds * 1e9);
  double due = double(begin);
  for (auto now = begin; now < end; now = now_ns()) {
    while (due <= double(now) && !unused_.empty()) {
      Connection& connection = *unused_.front();
      unused_.pop_front();
      connection.due_ns = std::int64_t(due);
      due += 1e9 / per_second;
      request(connection);
    }
    if (!options_.spins) wait_until(std::int64_t(std::min(due, double(end))));
    run_once(0);
    if (between_) between_();
  }
  return std::exchange(latencies_, {});
}

}  // namespace bench
