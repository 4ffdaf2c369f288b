#include "throughput/throughput.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "common/options.h"
#include "common/processor.h"

namespace bench {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

struct Figures {
  std::int64_t messages;
  std::int64_t messages_in_all;  ///< With those before the measurement, as the server saw them.
  double seconds;
};

int connect_to(std::uint16_t port) {
  const sockaddr_in address = loopback(port);
  // The server may not listen yet.
  for (int attempt = 0; attempt < 5000; ++attempt) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) fail_errno("client: socket");
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      fcntl(fd, F_SETFL, O_NONBLOCK);
      return fd;
    }
    if (errno != ECONNREFUSED) fail_errno("client: connect");
    close(fd);
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
  fail("client: nobody listens");
}

/// Connections that send a message, and the next when all of it has come back.
class PingPong {
 public:
  PingPong(const ThroughputOptions& options, std::uint16_t port)
      : message_(std::size_t(options.size), 'm'), place_(std::size_t(1) << 18) {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ < 0) fail_errno("client: epoll_create1");
    for (int i = 0; i < options.connections; ++i) {
      connections_.push_back({connect_to(port), 0, 0});
      epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLET, .data = {.u32 = unsigned(i)}};
      epoll_ctl(epoll_, EPOLL_CTL_ADD, connections_.back().fd, &event);
    }
  }

  void run(double seconds) {
    const auto end = now_ns() + std::int64_t(seconds * 1e9);
    while (now_ns() < end) {
      std::array<epoll_event, 256> events;
      const int count = epoll_wait(epoll_, events.data(), int(events.size()), 100);
      if (count < 0 && errno != EINTR) fail_errno("client: epoll_wait");
      for (int i = 0; i < count; ++i) exchange(connections_[events[i].data.u32]);
    }
  }

  std::int64_t messages() const { return messages_; }

 private:
  struct Connection {
    int fd;
    std::size_t sent, received;
  };

  void exchange(Connection& connection) {
    for (;;) {
      const bool sent = send_more(connection);
      const bool received = receive_more(connection);
      if (connection.received == message_.size()) {
        connection.sent = connection.received = 0;
        ++messages_;
      } else if (!sent && !received) {
        return;
      }
    }
  }

  bool send_more(Connection& connection) {
    if (connection.sent == message_.size()) return false;
    const ssize_t taken = send(connection.fd, message_.data() + connection.sent,
                               message_.size() - connection.sent, MSG_NOSIGNAL);
    if (taken < 0 && errno != EAGAIN) fail_errno("client: send");
    connection.sent += std::size_t(std::max<ssize_t>(taken, 0));
    return taken > 0;
  }

  bool receive_more(Connection& connection) {
    const ssize_t got = recv(connection.fd, place_.data(), place_.size(), 0);
    if (got == 0) fail("client: the server has closed a connection");
    if (got < 0 && errno != EAGAIN) fail_errno("client: recv");
    connection.received += std::size_t(std::max<ssize_t>(got, 0));
    if (connection.received > connection.sent) fail("client: more has come back than was sent");
    return got > 0;
  }

  int epoll_;
  std::vector<char> message_;
  std::vector<char> place_;
  std::vector<Connection> connections_;
  std::int64_t messages_ = 0;
};

Figures play(const ThroughputOptions& options, std::uint16_t port) {
  PingPong game(options, port);
  const double length = options.milliseconds / 1e3;
  game.run(length / 5);
  const auto before = game.messages();
  const auto begin = now_ns();
  game.run(length);
  const double seconds = double(now_ns() - begin) / 1e9;
  return {game.messages() - before, game.messages(), seconds};
}

}  // namespace

ThroughputOptions parse_throughput_options(int argc, char** argv) {
  ThroughputOptions options;
  CLI::App app("Echo over TCP, ping-pong.");
  app.add_option("--connections", options.connections, "connections")
      ->required()
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--size", options.size, "bytes of a message")
      ->required()
      ->check(CLI::Range(1, 1 << 28));
  app.add_option("--milliseconds", options.milliseconds, "length of a measurement")
      ->required()
      ->check(CLI::Range(10, 50'000));
  add_iterations(app, options.iterations);
  parse_or_exit(app, argc, argv);
  return options;
}

std::uint16_t free_port() {
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, generic, length) != 0 || getsockname(fd, generic, &length) != 0)
    fail_errno("looking for a free port");
  close(fd);
  return ntohs(address.sin_port);
}

std::int64_t own_cpu_ns() {
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

Clients::Clients(const ThroughputOptions& options, std::uint16_t port) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail_errno("pipe");
  child_ = fork();
  if (child_ < 0) fail_errno("fork");
  if (child_ == 0) {
    move_to_another_processor();
    const Figures figures = play(options, port);
    if (write(ends[1], &figures, sizeof figures) != sizeof figures) fail_errno("client: write");
    _exit(0);
  }
  close(ends[1]);
  figures_ = ends[0];
}

void Clients::report_to(Report& report, std::int64_t server_cpu_ns) {
  Figures figures;
  const bool whole = read(figures_, &figures, sizeof figures) == sizeof figures;
  close(figures_);
  int status = 0;
  waitpid(child_, &status, 0);
  if (!whole || status != 0) fail("the clients failed");
  if (figures.messages == 0) fail("not one message in the time of a measurement");
  const double per_second = double(figures.messages) / figures.seconds;
  report.add({{{"messages_per_s", per_second},
               {"server_cpu_ns", double(server_cpu_ns) / double(figures.messages_in_all)}}});
}

}  // namespace bench
