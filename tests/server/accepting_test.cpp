// How often a server calls accept(2): no more often than necessary. Counted in the trace of a
// simulation, which has a line for each system call.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/tcp.h>
#include <tambour/sim/simulation.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>

#include "support/streams.h"

namespace tambour::accepting_test {
namespace {

using namespace std::chrono_literals;

class Accepting : public testing::Test {
 protected:
  Accepting() {
    simulation.set_tracer([this](std::string_view line) {
      if (!line.contains(" accept ")) return;
      ++calls;
      if (line.contains("EAGAIN")) ++failed_calls;
    });
  }
  void serve() {
    server.serve([this](TcpStream peer) -> Task<> {
      iterations.push_back(loop.stats().iterations);
      return test::echo(std::move(peer));
    });
  }
  /// Opens `count` connections and closes each after `stay`.
  void connect(int count, Duration stay) {
    for (int i = 0; i < count; ++i)
      spawn(far, [](Endpoint to, Duration time) -> Task<> {
        auto stream = co_await TcpStream::connect(to);
        EXPECT_TRUE(stream);
        static_cast<void>(co_await sleep_for(time));
      }(at, stay));
  }

  sim::Simulation simulation{1};
  sim::Host& host = simulation.add_host("server");
  EventLoop loop{host.loop_options()};
  EventLoop far{simulation.add_host("client").loop_options()};
  const Endpoint at = Endpoint::parse(host.ip() + ":7000").value();
  TcpServer server = TcpServer::listen(loop, at).value();
  std::size_t calls = 0;
  std::size_t failed_calls = 0;
  std::vector<std::uint64_t> iterations;  ///< The iteration in which each connection was served.
};

TEST_F(Accepting, a_single_connection_takes_one_call) {
  serve();
  for (int i = 0; i < 10; ++i) {
    connect(1, 1ms);
    simulation.run_for(1s);
  }
  EXPECT_EQ(iterations.size(), 10U);
  EXPECT_EQ(calls, 10U);
}

TEST_F(Accepting, waiting_connections_take_two_iterations_and_one_failed_call) {
  connect(50, 1h);
  simulation.run_for(1s);
  serve();
  simulation.run_for(1s);
  ASSERT_EQ(iterations.size(), 50U);
  // After the second one, the server accepts until EAGAIN.
  EXPECT_LE(iterations.back() - iterations.front(), 1U);
  EXPECT_EQ(calls, 51U);
  EXPECT_EQ(failed_calls, 1U);
}

TEST_F(Accepting, a_single_connection_after_many_takes_one_call) {
  connect(50, 1h);
  simulation.run_for(1s);
  serve();
  simulation.run_for(1s);
  connect(1, 1ms);
  simulation.run_for(1s);
  calls = 0;
  for (int i = 0; i < 10; ++i) {
    connect(1, 1ms);
    simulation.run_for(1s);
  }
  EXPECT_EQ(calls, 10U);
}

}  // namespace
}  // namespace tambour::accepting_test
