// One message to thousands of connections.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/network.h"
#include "server/games/exchange.h"
#include "server/games/game.h"

namespace bench {
namespace {

class Fanout final : public Game {
 public:
  const char* name() const override { return "fanout"; }
  const char* about() const override { return "one message to thousands of connections"; }
  std::vector<GameOption> options() override {
    return {ask_connections(connections_),
            ask_size(size_),
            {"--messages", "messages, one after the other", &messages_}};
  }
  ServerOptions server() const override {
    return {.service = Service::spread, .buffer_bytes = 4096};
  }

  std::vector<Figure> play(ServerProcess& server) override {
    message_.assign(std::size_t(size_), 'm');
    place_.resize(std::size_t(1) << 16);
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ < 0) fail_errno("client: epoll_create1");
    for (int i = 0; i < connections_; ++i) open_one(server.port());
    server.settle();
    spread();  // The first finds caches cold, and memory to be had.
    server.settle();
    const auto begin = now_ns();
    const auto cpu = server.cpu_ns();
    for (int i = 0; i < messages_; ++i) spread();
    const double used = double(server.cpu_ns() - cpu);
    const double took = double(now_ns() - begin);
    for (const int fd : listeners_) abandon(fd);
    listeners_.clear();
    close(epoll_);
    return {{"all_us", took / messages_ / 1e3}, {"server_cpu_ns", used / messages_ / connections_}};
  }

 private:
  void open_one(std::uint16_t port) {
    const int fd = connect_to(port);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) fail_errno("client: epoll_ctl");
    listeners_.push_back(fd);
  }

  /// Says it on one connection, and reads until all have it.
  void spread() {
    send_message(listeners_.front(), message_.data(), message_.size());
    auto due = std::int64_t{size_} * connections_;
    while (due > 0) {
      std::array<epoll_event, 512> events;
      const int count = epoll_wait(epoll_, events.data(), int(events.size()), 5000);
      if (count < 0 && errno != EINTR) fail_errno("client: epoll_wait");
      if (count == 0) fail("client: some have not had the message");
      for (int i = 0; i < count; ++i) {
        const ssize_t got = recv(events[i].data.fd, place_.data(), place_.size(), 0);
        if (got == 0) fail("client: the server has closed a connection");
        if (got > 0) due -= got;
      }
    }
    if (due < 0) fail("client: more has come than was sent");
  }

  int connections_ = 0;
  int size_ = 0;
  int messages_ = 0;
  int epoll_ = -1;
  std::vector<char> message_;
  std::vector<char> place_;
  std::vector<int> listeners_;
};

}  // namespace

std::unique_ptr<Game> make_fanout() { return std::make_unique<Fanout>(); }

}  // namespace bench
