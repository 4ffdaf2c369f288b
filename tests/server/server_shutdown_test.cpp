// The notice that a server shuts down, and the list of its connections, over every
// transport.
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/codec.h>
#include <tambour/net/tcp.h>
#include <tambour/task/combinators.h>
#include <tambour/task/sleep.h>

#include "support/streams.h"
#include "transports/every_transport.h"

namespace tambour::server_shutdown_test {
namespace {

using namespace std::chrono_literals;

class ServerShutdown : public test::OnEveryBackend {
 protected:
  void TearDown() override {
    server.reset();
    OnEveryBackend::TearDown();
  }
  void SetUp() override {
    OnEveryBackend::SetUp();
    server = std::make_unique<TcpServer>(test::listen(loop()).value());
  }
  /// Opens `count` connections that the server has accepted.
  std::vector<TcpStream> connect(int count) {
    std::vector<TcpStream> streams;
    run(test::connect_all(server->endpoint(), count, streams));
    EXPECT_TRUE(run_until([&] { return server->connections() == std::size_t(count); }));
    return streams;
  }
  /// The same for a server with callbacks. Over TLS, a client is ready before the server is.
  std::vector<TcpStream> connect_to_callbacks(int count) {
    std::vector<TcpStream> streams = connect(count);
    EXPECT_TRUE(run_until([&] { return count_connections() == count; }));
    return streams;
  }
  [[nodiscard]] int count_connections() {
    int count = 0;
    server->for_each_connection([&count](Connection&) { ++count; });
    return count;
  }

  std::unique_ptr<TcpServer> server;
};

TAMBOUR_ON_EVERY_TRANSPORT(ServerShutdown);

/// Answers each line, as a server with keep-alive does: when a shutdown begins, it finishes the
/// request in progress, and closes.
Task<> answer_lines(TcpStream peer, std::stop_token shutdown, int& waiting) {
  Buffer buffer;
  bool is_idle = true;
  const std::stop_callback notice(shutdown, [&] {
    if (is_idle) peer.close();
  });
  while (!shutdown.stop_requested()) {
    is_idle = true;
    ++waiting;
    const auto line = co_await read_line(peer, buffer);
    --waiting;
    if (!line) co_return;
    is_idle = false;
    static_cast<void>(co_await sleep_for(20ms));
    const std::string answer = line->to_string() + "\n";
    if (!co_await peer.write(answer)) co_return;
  }
}

TEST_P(ServerShutdown, handlers_finish_the_current_request) {
  int waiting = 0;
  server->serve([&, token = server->shutdown_token()](TcpStream peer) {
    return answer_lines(std::move(peer), token, waiting);
  });
  std::vector<TcpStream> streams = connect(2);
  ASSERT_TRUE(run_until([&] { return waiting == 2; }));
  run([](TcpStream& busy, TcpStream& idle, TcpServer& local, int& count) -> Task<> {
    EXPECT_TRUE(co_await busy.write("question\n"));
    while (count != 1) static_cast<void>(co_await sleep_for(1ms));
    EXPECT_FALSE(local.shutdown_token().stop_requested());
    // Without the notice, it would wait for an hour.
    co_await local.shut_down(1h);
    EXPECT_TRUE(local.shutdown_token().stop_requested());
    Buffer answer;
    const auto line = co_await read_line(busy, answer);
    EXPECT_TRUE(line && *line == "question");
    co_await test::expect_closed(busy);
    co_await test::expect_closed(idle);
  }(streams[0], streams[1], *server, waiting));
}

TEST_P(ServerShutdown, connections_may_be_closed_after_their_answers) {
  server->serve({});
  std::vector<TcpStream> streams = connect_to_callbacks(3);
  const std::stop_callback notice(server->shutdown_token(), [&] {
    EXPECT_EQ(server->fd(), -1);
    server->for_each_connection([](Connection& connection) {
      connection.send("bye");
      connection.close_after_write();
    });
  });
  TaskScope clients(loop());
  for (TcpStream& stream : streams)
    clients.spawn([](TcpStream& own_stream) -> Task<> {
      Buffer received;
      while ((co_await own_stream.read(received)).value_or(0) != 0) {
      }
      EXPECT_EQ(received, "bye");
      own_stream.close();
    }(stream));
  run([](TcpServer& local) -> Task<> { co_await local.shut_down(1h); }(*server));
  EXPECT_TRUE(run_until([&] { return clients.empty(); }));
}

/// One connection closes before the shutdown begins, the other one because it begins.
TEST_P(ServerShutdown, a_peer_that_keeps_its_socket_open_does_not_hold_the_server) {
  server->serve({.limits = {.linger = 1h}});
  std::vector<TcpStream> streams = connect_to_callbacks(2);
  const auto say_goodbye = [](Connection& connection) {
    connection.send("bye");
    connection.close_after_write();
  };
  bool is_first = true;
  server->for_each_connection([&](Connection& connection) {
    if (std::exchange(is_first, false)) say_goodbye(connection);
  });
  const std::stop_callback notice(server->shutdown_token(),
                                  [&] { server->for_each_connection(say_goodbye); });
  TaskScope clients(loop());
  for (TcpStream& stream : streams)
    clients.spawn([](TcpStream& own_stream) -> Task<> {
      Buffer received;
      while (received.size() < 3) {
        const auto got = co_await own_stream.read(received);
        if (got.value_or(0) == 0) break;
      }
      EXPECT_EQ(received, "bye");
    }(stream));
  const TimePoint begin = loop().now();
  run([](TcpServer& local) -> Task<> { co_await local.shut_down(1h); }(*server));
  EXPECT_GE(loop().now() - begin, 900ms);
  EXPECT_TRUE(clients.empty());
}

TEST_P(ServerShutdown, stop_is_no_shutdown_and_the_token_outlives_the_server) {
  const std::stop_token token = server->shutdown_token();
  server->serve(test::echo<TcpStream>);
  server->stop();
  EXPECT_FALSE(token.stop_requested());
  run([](TcpServer& local) -> Task<> { co_await local.shut_down(0s); }(*server));
  server.reset();
  EXPECT_TRUE(token.stop_requested());
}

TEST_P(ServerShutdown, each_open_connection_is_listed_once) {
  int closed = 0;
  server->serve({.on_close = [&closed](Connection&, Error) { ++closed; }});
  EXPECT_EQ(count_connections(), 0);
  const std::vector<TcpStream> streams = connect_to_callbacks(4);
  Connection* first = nullptr;
  int calls = 0;
  server->for_each_connection([&](Connection& connection) {
    if (++calls == 1) first = &connection;
    connection.send("x");
    if (calls != 2) connection.close();
    EXPECT_EQ(count_connections(), 4 - (calls < 2 ? 1 : calls - 1));
  });
  EXPECT_EQ(calls, 4);
  EXPECT_FALSE(first->is_open());
  // They are still there, because on_close has not been invoked.
  EXPECT_EQ(closed, 0);
  EXPECT_EQ(server->connections(), 4U);
  EXPECT_EQ(count_connections(), 1);
  EXPECT_TRUE(run_until([&] { return closed == 3; }));
  EXPECT_EQ(count_connections(), 1);
  calls = 0;
  server->for_each_connection([&](Connection&) {
    ++calls;
    server->for_each_connection([](Connection& every) { every.close(); });
  });
  EXPECT_EQ(calls, 1);
}

TEST_P(ServerShutdown, listing_may_destroy_the_server_and_throw) {
  server->serve({.on_close = [](Connection&, Error) { ADD_FAILURE(); }});
  const std::vector<TcpStream> streams = connect_to_callbacks(3);
  EXPECT_THROW(
      server->for_each_connection([](Connection&) { throw std::runtime_error("by the callable"); }),
      std::runtime_error);
  int calls = 0;
  server->for_each_connection([&](Connection& connection) {
    ++calls;
    server.reset();
    EXPECT_FALSE(connection.is_open());
  });
  EXPECT_EQ(calls, 1);
  loop().run();
}

}  // namespace
}  // namespace tambour::server_shutdown_test
