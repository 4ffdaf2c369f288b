// The network between hosts: data is delayed, held back while the network is partitioned, and may
// be lost.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

namespace tambour::network_test {
namespace {

using namespace std::chrono_literals;

const sockaddr* generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

class SimulatedNetwork : public testing::Test {
 protected:
  void SetUp() override {
    simulation.options().delay_min = 10ms;
    simulation.options().delay_max = 20ms;
  }

  int listen_at(sim::Host& host, std::uint16_t port) {
    const int fd = host.socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = host.endpoint(port);
    EXPECT_EQ(host.bind(fd, generic(address), sizeof address), 0);
    EXPECT_EQ(host.listen(fd, 5), 0);
    return fd;
  }

  int connect_to(sim::Host& from, const sockaddr_in& address) {
    const int fd = from.socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(from.connect(fd, generic(address), sizeof address), -1);
    EXPECT_EQ(errno, EINPROGRESS);
    return fd;
  }

  /// Connects `a` to `b` and sets `near` and `far`.
  void establish() {
    const int listener = listen_at(b, 80);
    near = connect_to(a, b.endpoint(80));
    pass(1s);
    far = b.accept4(listener, nullptr, nullptr, 0);
    ASSERT_GE(far, 0);
    b.close(listener);
    pass(1s);
  }

  void pass(Duration time) { EXPECT_EQ(simulation.run_for(time), sim::End::timeout); }

  std::string read(sim::Host& host, int fd) {
    std::string bytes(1000, '\0');
    const ssize_t count = host.recv(fd, bytes.data(), bytes.size(), 0);
    return count < 0 ? ::strerrorname_np(errno) : bytes.substr(0, std::size_t(count));
  }

  int error_of(sim::Host& host, int fd) {
    int error = 0;
    socklen_t size = sizeof error;
    EXPECT_EQ(host.getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size), 0);
    return error;
  }

  sim::Simulation simulation{1};
  sim::Host& a = simulation.add_host("a");
  sim::Host& b = simulation.add_host("b");
  int near = -1;
  int far = -1;
};

TEST_F(SimulatedNetwork, a_message_with_infinite_latency_does_not_arrive) {
  establish();
  simulation.options().delay_min = simulation.options().delay_max = Duration::max();
  ASSERT_EQ(a.send(near, "late", 4, 0), 4);
  pass(1h);
  EXPECT_EQ(read(b, far), "EAGAIN");
}

TEST_F(SimulatedNetwork, hosts_have_names_and_addresses) {
  EXPECT_EQ(a.name(), "a");
  EXPECT_EQ(a.ip(), "10.0.0.1");
  EXPECT_EQ(b.ip(), "10.0.0.2");
}

TEST_F(SimulatedNetwork, a_message_arrives_after_the_latency) {
  establish();
  EXPECT_EQ(a.send(near, "hello", 5, 0), 5);
  EXPECT_EQ(read(b, far), "EAGAIN");
  pass(9ms);
  EXPECT_EQ(read(b, far), "EAGAIN");
  pass(12ms);
  EXPECT_EQ(read(b, far), "hello");
}

TEST_F(SimulatedNetwork, streams_keep_their_order) {
  establish();
  std::string sent;
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    EXPECT_EQ(a.send(near, &letter, 1, 0), 1);
    sent += letter;
    pass(100us);
  }
  a.close(near);
  pass(1s);
  EXPECT_EQ(read(b, far), sent);
  EXPECT_EQ(read(b, far), "");
}

TEST_F(SimulatedNetwork, a_writer_waits_for_a_slow_reader) {
  simulation.options().stream_buffer_bytes = 1000;
  establish();
  const std::string bytes(3000, 'x');
  EXPECT_EQ(a.send(near, bytes.data(), bytes.size(), 0), 1000);
  pass(1s);
  EXPECT_EQ(a.send(near, bytes.data(), bytes.size(), 0), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(read(b, far).size(), 1000);
  EXPECT_EQ(a.send(near, bytes.data(), bytes.size(), 0), -1) << "it does not know yet";
  pass(21ms);
  EXPECT_EQ(a.send(near, bytes.data(), bytes.size(), 0), 1000);
}

TEST_F(SimulatedNetwork, a_partition_holds_streams_until_it_heals) {
  establish();
  simulation.partition(a, b);
  EXPECT_EQ(a.send(near, "held", 4, 0), 4);
  EXPECT_EQ(b.send(far, "back", 4, 0), 4);
  pass(10min);
  EXPECT_EQ(read(b, far), "EAGAIN");
  simulation.heal(a, b);
  pass(21ms);
  EXPECT_EQ(read(b, far), "held");
  EXPECT_EQ(read(a, near), "back");
}

TEST_F(SimulatedNetwork, a_long_partition_times_out_connections) {
  establish();
  simulation.partition(a, b);
  EXPECT_EQ(a.send(near, "lost", 4, 0), 4);
  pass(16min);
  EXPECT_EQ(read(a, near), "ETIMEDOUT");
  simulation.heal();
  pass(1s);
  EXPECT_EQ(read(b, far), "EAGAIN") << "a host that sent nothing does not detect the failure";
  EXPECT_EQ(b.send(far, "x", 1, 0), 1);
  pass(1s);
  EXPECT_EQ(read(b, far), "ECONNRESET");
}

TEST_F(SimulatedNetwork, a_one_way_partition_holds_acknowledgements) {
  simulation.options().stream_buffer_bytes = 10;
  establish();
  simulation.cut(b, a);
  EXPECT_EQ(a.send(near, "0123456789", 10, 0), 10);
  pass(1s);
  EXPECT_EQ(read(b, far), "0123456789");
  pass(1s);
  EXPECT_EQ(a.send(near, "x", 1, 0), -1);
  simulation.heal();
  pass(1s);
  EXPECT_EQ(a.send(near, "x", 1, 0), 1);
}

TEST_F(SimulatedNetwork, a_refused_connection_is_reported_after_a_round_trip) {
  const int fd = connect_to(a, b.endpoint(81));
  pass(15ms);
  EXPECT_EQ(error_of(a, fd), 0);
  pass(30ms);
  EXPECT_EQ(error_of(a, fd), ECONNREFUSED);
}

TEST_F(SimulatedNetwork, connect_is_retried_during_a_partition) {
  const int listener = listen_at(b, 80);
  simulation.partition(a, b);
  const int fd = connect_to(a, b.endpoint(80));
  pass(10s);
  simulation.heal();
  pass(10s);
  EXPECT_GE(b.accept4(listener, nullptr, nullptr, 0), 0);
  EXPECT_EQ(a.send(fd, "x", 1, 0), 1);
}

TEST_F(SimulatedNetwork, connect_times_out_without_an_answer) {
  listen_at(b, 80);
  simulation.partition(a, b);
  const int fd = connect_to(a, b.endpoint(80));
  pass(126s);
  EXPECT_EQ(error_of(a, fd), 0);
  pass(2s);
  EXPECT_EQ(error_of(a, fd), ETIMEDOUT);
}

TEST_F(SimulatedNetwork, connections_wait_while_the_backlog_is_full) {
  const int listener = b.socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = b.endpoint(80);
  ASSERT_EQ(b.bind(listener, generic(address), sizeof address), 0);
  ASSERT_EQ(b.listen(listener, 0), 0);
  connect_to(a, address);
  connect_to(a, address);
  pass(1h);
  EXPECT_GE(b.accept4(listener, nullptr, nullptr, 0), 0);
  EXPECT_EQ(b.accept4(listener, nullptr, nullptr, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(SimulatedNetwork, a_reset_is_reported_to_both_ends) {
  establish();
  a.reset(near);
  pass(1s);
  EXPECT_EQ(read(a, near), "ECONNRESET");
  EXPECT_EQ(read(b, far), "ECONNRESET");
}

TEST_F(SimulatedNetwork, resets_occur_at_the_configured_rate) {
  establish();
  simulation.options().stream_reset = 1;
  EXPECT_EQ(a.send(near, "x", 1, 0), 1);
  pass(1s);
  EXPECT_EQ(error_of(b, far), ECONNRESET);
}

TEST_F(SimulatedNetwork, a_client_that_aborts_resets_the_accepted_connection) {
  const int listener = listen_at(b, 80);
  const int fd = connect_to(a, b.endpoint(80));
  a.close(fd);
  pass(1s);
  const int accepted = b.accept4(listener, nullptr, nullptr, 0);
  // The connection request may have arrived earlier; the accepted connection then reports the
  // reset.
  if (accepted >= 0) {
    EXPECT_EQ(read(b, accepted), "ECONNRESET");
  }
}

TEST_F(SimulatedNetwork, the_exit_of_a_process_closes_its_connections) {
  establish();
  a.close_all();
  EXPECT_EQ(a.descriptors(), 0);
  pass(1s);
  EXPECT_EQ(read(b, far), "");
}

TEST_F(SimulatedNetwork, datagrams_are_lost_duplicated_and_reordered) {
  const int from = a.socket(AF_INET, SOCK_DGRAM, 0);
  const int to = b.socket(AF_INET, SOCK_DGRAM, 0);
  const sockaddr_in address = b.endpoint(53);
  ASSERT_EQ(b.bind(to, generic(address), sizeof address), 0);
  const auto send_all = [&] {
    for (int i = 0; i < 1000; ++i) {
      EXPECT_EQ(a.sendto(from, &i, sizeof i, 0, generic(address), sizeof address), 4);
      pass(1ms);
    }
    pass(10s);
    std::vector<int> got;
    for (int i; b.recv(to, &i, sizeof i, 0) == 4;) got.push_back(i);
    return got;
  };
  simulation.options().delay_max = simulation.options().delay_min;
  std::vector<int> got = send_all();
  EXPECT_EQ(got.size(), 1000);
  EXPECT_TRUE(std::ranges::is_sorted(got));

  simulation.options().datagram_loss = 0.25;
  got = send_all();
  EXPECT_NEAR(double(got.size()), 750, 75);

  simulation.options().datagram_loss = 0;
  simulation.options().datagram_duplication = 0.25;
  got = send_all();
  EXPECT_NEAR(double(got.size()), 1250, 75);

  simulation.options().datagram_duplication = 0;
  simulation.options().datagram_reordering = 0.1;
  got = send_all();
  EXPECT_EQ(got.size(), 1000);
  EXPECT_FALSE(std::ranges::is_sorted(got));

  simulation.partition(a, b);
  EXPECT_TRUE(send_all().empty());
}

TEST_F(SimulatedNetwork, a_full_buffer_drops_datagrams) {
  simulation.options().datagram_buffer_bytes = 1000;
  const int from = a.socket(AF_INET, SOCK_DGRAM, 0);
  const int to = b.socket(AF_INET, SOCK_DGRAM, 0);
  const sockaddr_in address = b.endpoint(53);
  ASSERT_EQ(b.bind(to, generic(address), sizeof address), 0);
  const std::string bytes(300, 'x');
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(a.sendto(from, bytes.data(), bytes.size(), 0, generic(address), sizeof address), 300);
  pass(1s);
  int got = 0;
  while (read(b, to).size() == 300) ++got;
  EXPECT_EQ(got, 3);
}

TEST_F(SimulatedNetwork, ipv6_hosts_communicate) {
  const int listener = b.socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_port = b.endpoint6(80).sin6_port;
  ASSERT_EQ(b.bind(listener, reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
  ASSERT_EQ(b.listen(listener, 5), 0);
  const int six = a.socket(AF_INET6, SOCK_STREAM, 0);
  const sockaddr_in6 address = b.endpoint6(80);
  EXPECT_EQ(a.connect(six, reinterpret_cast<const sockaddr*>(&address), sizeof address), -1);
  connect_to(a, b.endpoint(80));
  pass(1s);
  std::set<bool> mapped;
  for (int i = 0; i < 2; ++i) {
    sockaddr_in6 peer{};
    socklen_t size = sizeof peer;
    EXPECT_GE(b.accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, 0), 0);
    EXPECT_EQ(size, sizeof peer);
    mapped.insert(IN6_IS_ADDR_V4MAPPED(&peer.sin6_addr));
  }
  EXPECT_EQ(mapped.size(), 2) << "one by IPv6, and one by IPv4 in disguise";
}

TEST_F(SimulatedNetwork, an_unknown_address_is_unreachable) {
  const int fd = a.socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = a.endpoint(80);
  address.sin_addr.s_addr = 0x01020304;
  EXPECT_EQ(a.connect(fd, generic(address), sizeof address), -1);
  EXPECT_EQ(errno, ENETUNREACH);
  EXPECT_EQ(a.bind(fd, generic(address), sizeof address), -1);
  EXPECT_EQ(errno, EADDRNOTAVAIL);
}

}  // namespace
}  // namespace tambour::network_test
