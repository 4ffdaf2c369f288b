// One message is sent to thousands of connections.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/network.h"
#include "server/workloads/exchange.h"
#include "server/workloads/workload.h"

namespace bench {
namespace {

class Fanout final : public Workload {
 public:
  const char* name() const override { return "fanout"; }
  const char* description() const override { return "one message to thousands of connections"; }
  std::vector<WorkloadOption> options() override {
    return {connections_option(connections_),
            size_option(size_),
            {"--messages", "messages, sent one after the other", &messages_}};
  }
  ServerOptions server_options() const override {
    return {.service = Service::broadcast, .buffer_bytes = 4096};
  }

  std::vector<Figure> run(ServerProcess& server) override {
    message_.assign(std::size_t(size_), 'm');
    buffer_.resize(std::size_t(1) << 16);
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ < 0) fail_errno("client: epoll_create1");
    for (int i = 0; i < connections_; ++i) open_one(server.port());
    server.wait_until_idle();
    broadcast();  // Warms up caches and memory allocation.
    server.wait_until_idle();
    const auto begin = now_ns();
    const auto cpu = server.cpu_ns();
    for (int i = 0; i < messages_; ++i) broadcast();
    const double used = double(server.cpu_ns() - cpu);
    const double took = double(now_ns() - begin);
    for (const int fd : receivers_) close_with_reset(fd);
    receivers_.clear();
    close(epoll_);
    return {{"all_us", took / messages_ / 1e3}, {"server_cpu_ns", used / messages_ / connections_}};
  }

 private:
  void open_one(std::uint16_t port) {
    const int fd = connect_to(port);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) fail_errno("client: epoll_ctl");
    receivers_.push_back(fd);
  }

  /// Sends a message on one connection and reads until all connections have received it.
  void broadcast() {
    send_message(receivers_.front(), message_.data(), message_.size());
    auto due = std::int64_t{size_} * connections_;
    while (due > 0) {
      std::array<epoll_event, 512> events;
      const int count = epoll_wait(epoll_, events.data(), int(events.size()), 5000);
      if (count < 0 && errno != EINTR) fail_errno("client: epoll_wait");
      if (count == 0) fail("client: timeout waiting for the message on all connections");
      for (int i = 0; i < count; ++i) {
        const ssize_t got = recv(events[i].data.fd, buffer_.data(), buffer_.size(), 0);
        if (got == 0) fail("client: the server closed a connection");
        if (got > 0) due -= got;
      }
    }
    if (due < 0) fail("client: received more bytes than were sent");
  }

  int connections_ = 0;
  int size_ = 0;
  int messages_ = 0;
  int epoll_ = -1;
  std::vector<char> message_;
  std::vector<char> buffer_;
  std::vector<int> receivers_;
};

}  // namespace

std::unique_ptr<Workload> make_fanout() { return std::make_unique<Fanout>(); }

}  // namespace bench
