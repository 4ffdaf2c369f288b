#include "memcached/memcached.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "common/network.h"
#include "common/options.h"
#include "common/program.h"
#include "memcached/memcached_process.h"

namespace bench {
namespace {

constexpr int keys = 10'000;
constexpr int value_bytes = 100;
constexpr std::string_view stored = "STORED\r\n";

/// All keys have the same length, and so have all answers.
std::string key(int i) {
  char text[16];
  std::snprintf(text, sizeof text, "key:%08d", i);
  return text;
}

std::string value(int i) { return std::string(value_bytes, char('a' + i % 26)); }

std::string set_request(int i, const char* suffix) {
  return "set " + key(i) + " 0 0 " + std::to_string(value_bytes) + suffix + "\r\n" + value(i) +
         "\r\n";
}

struct Exchange {
  std::string request;
  std::string answer;
};

std::vector<Exchange> make_exchanges(bool sets) {
  std::vector<Exchange> all;
  for (int i = 0; i < keys; ++i) {
    if (sets) {
      all.push_back({set_request(i, ""), std::string(stored)});
    } else {
      all.push_back({"get " + key(i) + "\r\n", "VALUE " + key(i) + " 0 " +
                                                   std::to_string(value_bytes) + "\r\n" + value(i) +
                                                   "\r\nEND\r\n"});
    }
  }
  return all;
}

void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t taken = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (taken < 0) fail_errno("client: send");
    bytes.remove_prefix(std::size_t(taken));
  }
}

/// Stores every key, so that no get misses.
void store_all(std::uint16_t port) {
  const int fd = connect_to(port);
  std::string requests;
  for (int i = 0; i < keys; ++i) requests += set_request(i, " noreply");
  send_all(fd, requests + "mn\r\n");
  std::array<char, 16> answer;
  const ssize_t size = recv(fd, answer.data(), answer.size(), 0);
  if (size < 0 || std::string_view(answer.data(), std::size_t(size)) != "MN\r\n")
    fail("client: memcached did not store the values");
  close_with_reset(fd);
}

class Clients {
 public:
  Clients(const MemcachedProcess& server, int connections, bool sets)
      : server_(server), exchanges_(make_exchanges(sets)) {
    if (epoll_ < 0) fail_errno("client: epoll_create1");
    for (int i = 0; i < connections; ++i) {
      connections_.push_back({connect_to(server.port()), i * 7 % keys, 0});
      fcntl(connections_.back().fd, F_SETFL, O_NONBLOCK);
      epoll_event event{.events = EPOLLIN, .data = {.u32 = unsigned(i)}};
      if (epoll_ctl(epoll_, EPOLL_CTL_ADD, connections_.back().fd, &event) != 0)
        fail_errno("client: epoll_ctl");
    }
    for (Connection& connection : connections_) ask(connection);
  }
  ~Clients() {
    for (const Connection& connection : connections_) close_with_reset(connection.fd);
    close(epoll_);
  }
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  std::vector<Figure> measure(int milliseconds) {
    exchange_for(milliseconds / 5e3);
    const auto before = answers_;
    const auto begin = now_ns();
    const auto cpu = server_.cpu_ns();
    exchange_for(milliseconds / 1e3);
    const double used = double(server_.cpu_ns() - cpu);
    const double seconds = double(now_ns() - begin) / 1e9;
    const double count = double(answers_ - before);
    if (count == 0) fail("no request was answered during the measurement");
    return {{"operations_per_s", count / seconds}, {"server_cpu_ns", used / count}};
  }

 private:
  struct Connection {
    int fd;
    int current;           ///< The exchange that was begun.
    std::size_t received;  ///< Of its answer.
  };

  void exchange_for(double seconds) {
    const auto end = now_ns() + std::int64_t(seconds * 1e9);
    while (now_ns() < end) {
      std::array<epoll_event, 256> events;
      const int count = epoll_wait(epoll_, events.data(), int(events.size()), 100);
      if (count < 0 && errno != EINTR) fail_errno("client: epoll_wait");
      for (int i = 0; i < count; ++i) receive(connections_[events[std::size_t(i)].data.u32]);
    }
  }

  /// The request always fits into the empty buffer of the socket.
  void ask(Connection& connection) {
    // Neighbours in the order of keys would be in the processor's caches.
    connection.current = (connection.current + 7919) % keys;
    connection.received = 0;
    send_all(connection.fd, exchanges_[std::size_t(connection.current)].request);
  }

  void receive(Connection& connection) {
    std::array<char, 4096> bytes;
    const ssize_t size = recv(connection.fd, bytes.data(), bytes.size(), 0);
    if (size == 0) fail("client: memcached closed a connection");
    if (size < 0 && errno != EAGAIN) fail_errno("client: recv");
    if (size < 0) return;
    const std::string& expected = exchanges_[std::size_t(connection.current)].answer;
    if (expected.compare(connection.received, std::size_t(size), bytes.data(), std::size_t(size)) !=
        0)
      fail("client: wrong answer: " + std::string(bytes.data(), std::size_t(size)));
    connection.received += std::size_t(size);
    if (connection.received < expected.size()) return;
    ++answers_;
    ask(connection);
  }

  const MemcachedProcess& server_;
  int epoll_ = epoll_create1(EPOLL_CLOEXEC);
  std::vector<Exchange> exchanges_;
  std::vector<Connection> connections_;
  std::int64_t answers_ = 0;
};

}  // namespace

int run_memcached(int argc, char** argv, const MemcachedOptions& options) {
  pinned_processor();
  int iterations = 1, connections = 0, threads = 0, sets = 0, milliseconds = 0;
  CommandLine line("Runs memcached and clients.", iterations);
  line.add("--operation", sets, "what the clients do", {{"get", 0}, {"set", 1}});
  line.add("--connections", connections, "connections", 1, 100'000);
  line.add("--threads", threads, "threads of memcached", 1, 64);
  line.add("--milliseconds", milliseconds, "length of a measurement", 10, 20'000);
  line.parse_or_exit(argc, argv);

  Report report;
  std::string version;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    feed_watchdog();
    const MemcachedProcess server(options, threads, connections);
    store_all(server.port());
    report.add(Clients(server, connections, sets != 0).measure(milliseconds));
    version = server.version();
  }
  report.print({options.subject, version, "epoll"});
  return 0;
}

}  // namespace bench
