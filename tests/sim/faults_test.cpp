// Injected faults: the nth call, a share of calls, and spurious readiness.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

namespace tambour::faults_test {
namespace {

using namespace std::chrono_literals;

class SimulatedFaults : public testing::Test {
 protected:
  sim::Simulation simulation{3};
  sim::Host& host = simulation.add_host("host");
};

TEST_F(SimulatedFaults, the_descriptor_limit_is_enforced) {
  host.set_descriptors_max(3);
  int fds[2];
  EXPECT_EQ(host.pipe2(fds, 0), 0);
  EXPECT_EQ(host.pipe2(fds, 0), -1);
  EXPECT_EQ(errno, EMFILE);
  EXPECT_GE(host.eventfd(0, 0), 0);
  EXPECT_EQ(host.eventfd(0, 0), -1);
  EXPECT_EQ(host.socket(AF_INET, SOCK_STREAM, 0), -1);
  EXPECT_EQ(host.dup(fds[0]), -1);
  EXPECT_EQ(host.descriptors(), 3);
  EXPECT_EQ(host.close(fds[0]), 0);
  EXPECT_EQ(host.dup(fds[1]), fds[0]) << "the lowest free number";
}

TEST_F(SimulatedFaults, accept_without_a_descriptor_keeps_the_connection) {
  const int listener = host.socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(host.listen(listener, 5), 0);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ASSERT_EQ(host.getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int client = host.socket(AF_INET, SOCK_STREAM, 0);
  host.connect(client, reinterpret_cast<sockaddr*>(&address), size);
  host.set_descriptors_max(2);
  EXPECT_EQ(host.accept4(listener, nullptr, nullptr, 0), -1);
  EXPECT_EQ(errno, EMFILE);
  host.set_descriptors_max(3);
  EXPECT_GE(host.accept4(listener, nullptr, nullptr, 0), 0);
}

TEST_F(SimulatedFaults, the_nth_call_fails_and_does_nothing) {
  int fds[2];
  ASSERT_EQ(host.socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  host.fail_next(sim::SystemCall::send, ENOBUFS, 2, 1);
  std::vector<int> errors;
  for (int i = 0; i < 4; ++i) errors.push_back(host.send(fds[0], "x", 1, 0) < 0 ? errno : 0);
  EXPECT_EQ(errors, (std::vector<int>{0, ENOBUFS, ENOBUFS, 0}));
  char bytes[10];
  EXPECT_EQ(host.recv(fds[1], bytes, sizeof bytes, 0), 2);
}

TEST_F(SimulatedFaults, short_reads_and_writes_lose_nothing) {
  simulation.options().short_read = 0.7;
  simulation.options().short_write = 0.7;
  int fds[2];
  ASSERT_EQ(host.socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  const std::string sent(10'000, 'x');
  int calls = 0;
  for (std::size_t done = 0; done < sent.size(); ++calls) {
    const ssize_t count = host.send(fds[0], sent.data() + done, sent.size() - done, 0);
    ASSERT_GT(count, 0);
    done += std::size_t(count);
  }
  EXPECT_GT(calls, 1);
  std::string got;
  std::string part(sent.size(), '\0');
  for (calls = 0; got.size() < sent.size(); ++calls) {
    const ssize_t count = host.read(fds[1], part.data(), part.size());
    ASSERT_GT(count, 0);
    got.append(part, 0, std::size_t(count));
  }
  EXPECT_GT(calls, 1);
  EXPECT_EQ(got, sent);
}

TEST_F(SimulatedFaults, descriptors_and_memory_run_out_by_chance) {
  simulation.options().no_descriptors = 0.3;
  simulation.options().no_memory = 0.3;
  int too_many = 0;
  int no_memory = 0;
  for (int i = 0; i < 1000; ++i) {
    const int fd = host.socket(AF_INET, SOCK_DGRAM, 0);
    if (fd >= 0) {
      host.close(fd);
    } else if (errno == ENOMEM) {
      ++no_memory;
    } else {
      EXPECT_TRUE(errno == EMFILE || errno == ENFILE);
      ++too_many;
    }
  }
  EXPECT_NEAR(too_many, 300, 60);
  EXPECT_NEAR(no_memory, 210, 60);
}

TEST_F(SimulatedFaults, starting_a_watcher_may_fail_with_enomem) {
  EventLoop loop(host.loop_options());
  simulation.options().no_memory = 1;
  const int fd = [&] {
    simulation.options().no_memory = 0;
    const int count = host.eventfd(1, 0);
    simulation.options().no_memory = 1;
    return count;
  }();
  Events seen = Events::none;
  FdWatcher watcher(loop, fd, Events::read, [&](Events events) { seen |= events; });
  ASSERT_TRUE(watcher.start());
  loop.run();
  EXPECT_EQ(seen, Events::error);
  EXPECT_EQ(watcher.error(), system_error(ENOMEM));
}

// An edge-triggered reader that gets EAGAIN waits for the next edge, which must be reported.
TEST_F(SimulatedFaults, an_edge_is_reported_again_after_eagain) {
  simulation.options().would_block = 0.9;
  EventLoop loop(host.loop_options());
  int fds[2];
  ASSERT_EQ(host.socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  while (host.write(fds[1], "hello", 5) != 5) {
  }
  std::string got;
  FdWatcher watcher(
      loop, fds[0], Events::read,
      [&](Events) {
        char byte;
        while (host.read(fds[0], &byte, 1) == 1) got += byte;
        if (got.size() == 5) watcher.stop();
      },
      Trigger::edge);
  ASSERT_TRUE(watcher.start());
  EXPECT_EQ(simulation.run(), sim::End::finished);
  EXPECT_EQ(got, "hello");
}

TEST_F(SimulatedFaults, a_spurious_event_does_not_complete_a_connect) {
  sim::Host& other = simulation.add_host("other");
  EventLoop loop(host.loop_options());
  simulation.options().spurious_event = 1;
  sockaddr_in address = other.endpoint(80);
  const Endpoint to = Endpoint::from(reinterpret_cast<sockaddr*>(&address), sizeof address).value();
  const auto outcome = [&] {
    Error error;
    spawn(loop, [](Endpoint peer, Error& result) -> Task<> {
      auto stream = co_await TcpStream::connect(peer);
      if (stream)
        stream = std::unexpected(stream->peer_endpoint() ? Error() : system_error(EINVAL));
      result = stream.error();
    }(to, error));
    EXPECT_EQ(simulation.run(), sim::End::finished);
    return error;
  };
  simulation.partition(host, other);
  EXPECT_EQ(outcome(), system_error(ETIMEDOUT));
  simulation.heal();
  EXPECT_EQ(outcome(), system_error(ECONNREFUSED));
  const int listener = other.socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(other.bind(listener, to.data(), to.size()), 0);
  ASSERT_EQ(other.listen(listener, 5), 0);
  EXPECT_EQ(outcome(), Error());
}

TEST_F(SimulatedFaults, a_loop_receives_spurious_events_and_early_wakeups) {
  simulation.options().spurious_event = 0.5;
  simulation.options().spurious_wakeup = 0.5;
  EventLoop loop(host.loop_options());
  int calls = 0;
  FdWatcher watcher(loop, host.eventfd(0, 0), Events::read, [&](Events) { ++calls; });
  ASSERT_TRUE(watcher.start());
  for (int i = 0; i < 100; ++i) loop.run_ready();
  EXPECT_GT(calls, 20);
}

TEST_F(SimulatedFaults, ready_events_are_reported_in_varying_order) {
  EventLoop loop(host.loop_options());
  std::vector<std::string> orders;
  for (int round = 0; round < 20; ++round) {
    std::string order;
    std::vector<FdWatcher> watchers;
    for (char name = 'a'; name <= 'e'; ++name) {
      watchers.emplace_back(loop, host.eventfd(1, 0), Events::read,
                            [&order, name](Events) { order += name; });
      ASSERT_TRUE(watchers.back().start());
    }
    loop.run_ready();
    ASSERT_EQ(order.size(), 5);
    orders.push_back(order);
  }
  std::ranges::sort(orders);
  orders.erase(std::unique(orders.begin(), orders.end()), orders.end());
  EXPECT_GT(orders.size(), 10);
}

}  // namespace
}  // namespace tambour::faults_test
