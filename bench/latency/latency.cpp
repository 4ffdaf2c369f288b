#include "latency/latency.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "common/options.h"
#include "common/processor.h"

namespace bench {
namespace {

struct Percentiles {
  double mean, median, p99;
};

Percentiles measure_round_trips(int fd, int count) {
  std::vector<double> took;
  took.reserve(std::size_t(count));
  char byte = 'r';
  const auto begin = now_ns();
  auto sent = begin;
  for (int i = 0; i < count; ++i) {
    if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1) fail_errno("client: send");
    if (recv(fd, &byte, 1, 0) != 1) fail_errno("client: recv");
    const auto back = now_ns();
    took.push_back(double(back - sent));
    sent = back;
  }
  const double mean = double(sent - begin) / count;
  std::ranges::sort(took);
  const auto at = [&](double part) { return took[std::size_t(part * (took.size() - 1))]; };
  return {mean, at(0.5), at(0.99)};
}

}  // namespace

LatencyOptions parse_latency_options(int argc, char** argv) {
  LatencyOptions options;
  CLI::App app("Round trips of one byte on one connection.");
  app.add_option("--round-trips", options.round_trips, "round trips in an iteration")
      ->required()
      ->check(CLI::Range(1, 100'000'000));
  add_iterations(app, options.iterations);
  parse_or_exit(app, argc, argv);
  return options;
}

Connection open_connection() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (listener < 0 || bind(listener, generic, length) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, generic, &length) != 0)
    fail_errno("listening on the loopback device");
  Connection connection{-1, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (connection.client < 0 || connect(connection.client, generic, length) != 0)
    fail_errno("connecting over the loopback device");
  connection.server = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (connection.server < 0) fail_errno("accept");
  close(listener);
  const int on = 1;
  for (int fd : {connection.server, connection.client})
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return connection;
}

Client::Client(const LatencyOptions& options, const Connection& connection) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail_errno("pipe");
  child_ = fork();
  if (child_ < 0) fail_errno("fork");
  if (child_ == 0) {
    close(connection.server);
    move_to_another_processor();
    const Percentiles figures = measure_round_trips(connection.client, options.round_trips);
    if (write(ends[1], &figures, sizeof figures) != sizeof figures) fail_errno("client: write");
    _exit(0);
  }
  close(ends[1]);
  close(connection.client);
  figures_ = ends[0];
}

void Client::report_to(Report& report) {
  Percentiles figures;
  const bool whole = read(figures_, &figures, sizeof figures) == sizeof figures;
  close(figures_);
  int status = 0;
  waitpid(child_, &status, 0);
  if (!whole || status != 0) fail("the client failed");
  report.add({{{"round_trip_ns", figures.mean},
               {"round_trip_p50_ns", figures.median},
               {"round_trip_p99_ns", figures.p99}}});
}

bool echo_once(int fd) {
  char bytes[64];
  const ssize_t got = recv(fd, bytes, sizeof bytes, 0);
  if (got == 0) return false;
  if (got < 0) {
    if (errno == EAGAIN) return true;
    fail_errno("server: recv");
  }
  if (send(fd, bytes, std::size_t(got), MSG_NOSIGNAL) != got) fail_errno("server: send");
  return true;
}

}  // namespace bench
