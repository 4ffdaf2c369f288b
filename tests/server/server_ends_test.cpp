// Servers that are destroyed, stopped and moved inside their own callbacks, over every transport.
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/proxy_protocol.h>
#include <tambour/net/tcp.h>
#include <tambour/net/unix.h>
#include <tambour/sim/simulation.h>
#include <tambour/task/sleep.h>

#include "support/process.h"
#include "support/streams.h"
#include "support/temporary_folder.h"
#include "transports/every_transport.h"

namespace tambour::server_ends_test {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view header = "PROXY TCP4 192.0.2.1 192.0.2.2 1234 80\r\n";

/// Sends, and reads until the server has closed the connection, or reset one that it never
/// accepted. Connecting may fail if the server is already destroyed. A PROXY header precedes TLS.
template <class S = TcpStream>
Task<> say_and_read_to_the_end(Endpoint to, std::string text, int& ended) {
  auto stream = co_await S::connect(to);
  if (stream && text == header) static_cast<void>(co_await stream->write(std::exchange(text, {})));
  if (stream && !co_await test::secure(*stream)) stream->close();
  if (stream && !text.empty()) static_cast<void>(co_await stream->write(text));
  Buffer back;
  while (stream) {
    const auto got = co_await stream->read(back);
    if (!got || *got == 0) break;
  }
  ++ended;
}

class ServerEnds : public test::OnEveryBackend {
 protected:
  void TearDown() override {
    server.reset();
    OnEveryBackend::TearDown();
  }
  void listen(ListenOptions options = {}) {
    server = std::make_unique<TcpServer>(
        test::listen(loop(), Endpoint::loopback_v4(0), std::move(options)).value());
  }
  void listen_behind_a_proxy(std::function<void(SocketStream&, Error)> on_rejected = {}) {
    listen({.proxy_protocol = ProxyProtocol::required, .on_rejected = std::move(on_rejected)});
  }
  /// Connects clients that send `text` and wait for EOF, before the server accepts any of them.
  void connect(int count, const std::string& text = {}) {
    for (int i = 0; i < count; ++i)
      spawn(loop(), say_and_read_to_the_end(server->endpoint(), text, ended));
  }
  [[nodiscard]] bool run_until_ended(int count) {
    return run_until([&] { return ended == count; });
  }
  std::function<void(Connection&)> destroy() {
    return [this](Connection&) {
      ++called;
      server.reset();
    };
  }
  std::function<void(Connection&, Error)> never() {
    return [](Connection&, Error) { FAIL() << "a connection of a destroyed server called back"; };
  }

  std::unique_ptr<TcpServer> server;
  int called = 0;
  int ended = 0;
};

TAMBOUR_ON_EVERY_TRANSPORT(ServerEnds);

TEST_P(ServerEnds, two_tasks_may_shut_down_a_server) {
  listen();
  server->serve(
      {.on_message = [](Connection& connection, Buffer&) { connection.close_after_write(); }});
  connect(3, "x");
  EXPECT_TRUE(run_until([&] { return server->accepted() == 3; }));
  int returned = 0;
  auto shut = [](TcpServer& local, int& count) -> Task<> {
    co_await local.shut_down(20ms);
    ++count;
  };
  for (int i = 0; i < 2; ++i) spawn(loop(), shut(*server, returned));
  EXPECT_TRUE(run_until([&] { return returned == 2; }));
  EXPECT_TRUE(run_until_ended(3));
}

TEST_P(ServerEnds, a_task_that_shuts_down_a_server_may_be_destroyed) {
  listen();
  server->serve([](TcpStream) -> Task<> { static_cast<void>(co_await sleep_for(20ms)); });
  connect(1);
  EXPECT_TRUE(run_until([&] { return server->connections() == 1; }));
  {
    TaskScope waiting(loop());
    waiting.spawn(server->shut_down(1h));
  }
  EXPECT_TRUE(run_until_ended(1));
  EXPECT_EQ(server->connections(), 0U);
}

/// With system calls on descriptors.
class ServerEndsOfSockets : public ServerEnds {};

TAMBOUR_ON_EVERY_BACKEND(ServerEndsOfSockets);

TEST_P(ServerEndsOfSockets, a_server_that_can_no_longer_accept_reports_the_error) {
  listen();
  server->serve({});
  // Another process that shares the open file description shuts it down, as can happen to inherited
  // listeners.
  ASSERT_EQ(::shutdown(server->fd(), SHUT_RDWR), 0);
  Error error;
  try {
    run_for(50ms);
  } catch (const std::system_error& thrown) {
    error = thrown.code();
  }
  EXPECT_EQ(error, system_error(EINVAL));
}

TEST_P(ServerEnds, a_server_may_be_destroyed_in_on_connection) {
  const std::size_t before = test::open_descriptors();
  listen();
  const auto kept = std::make_shared<int>(0);
  server->serve({.on_connection =
                     [this, kept](Connection& connection) {
                       ++called;
                       server.reset();
                       EXPECT_EQ(connection.fd(), -1);
                       connection.send("too late");
                       connection.close();
                     },
                 .on_close = never()});
  connect(3);
  EXPECT_TRUE(run_until_ended(3));
  EXPECT_EQ(called, 1);
  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_EQ(test::open_descriptors(), before);
  loop().run();
}

TEST_P(ServerEnds, on_connection_may_destroy_the_server_and_then_run_the_loop) {
  listen();
  server->serve({.on_connection =
                     [this](Connection& connection) {
                       ++called;
                       server.reset();
                       loop().run_ready();
                       EXPECT_EQ(&connection.loop(), &loop());
                     },
                 .on_close = never()});
  connect(3);
  EXPECT_TRUE(run_until_ended(3));
  EXPECT_EQ(called, 1);
}

TEST_P(ServerEnds, on_connection_may_destroy_the_server_and_then_throw) {
  listen();
  server->serve({.on_connection = [this](Connection&) {
    ++called;
    server.reset();
    throw std::runtime_error("after the end");
  }});
  connect(2);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(run_until_ended(2));
  static_cast<void>(testing::internal::GetCapturedStderr());
  EXPECT_EQ(called, 1);
  loop().run();
}

TEST_P(ServerEnds, a_server_may_be_destroyed_in_on_connection_of_a_later_connection) {
  listen();
  int messages = 0;
  server->serve({.on_connection =
                     [this](Connection&) {
                       if (++called == 3) server.reset();
                     },
                 .on_message = [&](Connection&, Buffer& bytes) { messages += int(bytes.size()); },
                 .on_close = never()});
  connect(2);
  EXPECT_TRUE(run_until([this] { return called == 2; }));
  connect(1, "x");
  EXPECT_TRUE(run_until_ended(3));
  EXPECT_EQ(called, 3);
  EXPECT_EQ(messages, 0);
}

TEST_P(ServerEnds, a_server_may_be_destroyed_in_any_callback_of_a_connection) {
  const std::string much(8'000'000, 'x');
  // Bytes that are left would be offered again after each pause for backpressure.
  const auto answer = [&](Connection& own_object, Buffer& question) {
    question.clear();
    own_object.send(much);
  };
  std::vector<ConnectionCallbacks> ways(4);
  ways[0] = {.on_message = [this](Connection& own_entry, Buffer&) { destroy()(own_entry); },
             .on_close = never()};
  // While the server waits for it, this peer reads everything.
  ways[1] = {.on_message = answer, .on_write_complete = destroy(), .on_close = never()};
  ways[2] = {.on_message = answer,
             .on_high_water = [this](Connection& own_connection,
                                     std::size_t) { destroy()(own_connection); },
             .high_water_bytes = 1,
             .on_close = never()};
  ways[3] = {.on_message = [](Connection& local, Buffer&) { local.close(); },
             .on_close = [this](Connection& connection, Error) { destroy()(connection); }};
  for (ConnectionCallbacks& way : ways) {
    listen();
    server->serve(std::move(way));
    connect(2, "x");
    EXPECT_TRUE(run_until_ended(2));
    EXPECT_EQ(std::exchange(called, 0), 1);
    ended = 0;
    loop().run();
  }
}

TEST_P(ServerEndsOfSockets, a_server_behind_a_proxy_may_be_destroyed_in_on_connection) {
  listen_behind_a_proxy();
  server->serve({.on_connection = destroy(), .on_close = never()});
  std::vector<TcpStream> streams;
  run(test::connect_all(server->endpoint(), 3, streams));
  EXPECT_TRUE(run_until([this] { return server->accepted() == 3; }));
  // All in one iteration, so that callbacks of the other connections are pending.
  for (TcpStream& stream : streams)
    ASSERT_EQ(::send(stream.fd(), header.data(), header.size(), 0), ssize_t(header.size()));
  EXPECT_TRUE(run_until([this] { return called > 0; }));
  run([](std::vector<TcpStream>& all) -> Task<> {
    Buffer nothing;
    for (TcpStream& stream : all) EXPECT_EQ((co_await stream.read(nothing)).value_or(0), 0U);
  }(streams));
  EXPECT_EQ(called, 1);
  streams.clear();
  loop().run();
}

TEST_P(ServerEnds, on_refused_may_destroy_the_server_and_its_handlers) {
  const auto held = std::make_shared<int>(0);
  listen_behind_a_proxy([&](Stream& stream, Error error) {
    EXPECT_TRUE(error);
    EXPECT_TRUE(stream.is_open());
    ++called;
    EXPECT_EQ(held.use_count(), 3);
    server.reset();
    // The handler function may be running, so it is kept for now.
    EXPECT_EQ(held.use_count(), 2);
  });
  server->serve([held](TcpStream peer) -> Task<> {
    const std::shared_ptr<int> local = held;
    Buffer nothing;
    static_cast<void>(co_await peer.read(nothing));
    ADD_FAILURE() << "a handler of a destroyed server was resumed";
  });
  connect(1, std::string(header));
  EXPECT_TRUE(run_until([&] { return held.use_count() == 3; }));
  connect(2, "no header\r\n");
  EXPECT_TRUE(run_until_ended(3));
  EXPECT_EQ(called, 1);
  EXPECT_EQ(held.use_count(), 1);
  loop().run();
}

TEST_P(ServerEnds, a_server_moved_in_on_connection_keeps_serving) {
  listen();
  TcpServer* place = nullptr;
  std::unique_ptr<TcpServer> other;
  server->serve({.on_connection =
                     [&](Connection&) {
                       if (++called == 1) other = std::make_unique<TcpServer>(std::move(*server));
                       place = other.get();
                     },
                 .on_message = [](Connection& connection,
                                  Buffer& bytes) { connection.send(std::move(bytes)); }});
  const Endpoint at = server->endpoint();
  run(test::expect_echo_from(at));
  run(test::expect_echo_from(at));
  EXPECT_EQ(called, 2);
  EXPECT_EQ(place->accepted(), 2U);
  // A moved-from server may be destroyed or assigned to.
  server = std::move(other);
  run(test::expect_echo_from(at));
}

TEST_P(ServerEnds, a_server_may_be_replaced_in_on_connection) {
  listen();
  Endpoint next;
  server->serve({.on_connection =
                     [&](Connection&) {
                       ++called;
                       auto second = test::listen(loop()).value();
                       second.serve(test::echo<TcpStream>);
                       next = second.endpoint();
                       *server = std::move(second);
                     },
                 .on_close = never()});
  connect(2);
  EXPECT_TRUE(run_until_ended(2));
  EXPECT_EQ(called, 1);
  run(test::expect_echo_from(next));
}

TEST_P(ServerEnds, stop_in_on_connection_keeps_the_connection) {
  listen();
  server->serve({.on_connection =
                     [this](Connection&) {
                       ++called;
                       server->stop();
                     },
                 .on_message = [](Connection& connection,
                                  Buffer& bytes) { connection.send(std::move(bytes)); }});
  const Endpoint at = server->endpoint();
  run(test::expect_echo_from(at));
  run([](Endpoint to) -> Task<> { EXPECT_FALSE(co_await TcpStream::connect(to)); }(at));
  EXPECT_EQ(called, 1);
}

TEST_P(ServerEnds, a_handler_may_post_a_task_that_destroys_the_server) {
  listen();
  server->serve([this](TcpStream peer) -> Task<> {
    ++called;
    TcpServer moved = std::move(*server);
    *server = std::move(moved);
    server->stop();
    // A task must not destroy its own frame: the loop does it while the task waits.
    loop().post([this] { server.reset(); });
    Buffer nothing;
    static_cast<void>(co_await peer.read(nothing));
    ADD_FAILURE() << "a handler of a destroyed server was resumed";
  });
  connect(1);
  EXPECT_TRUE(run_until_ended(1));
  EXPECT_EQ(called, 1);
  EXPECT_EQ(server, nullptr);
  loop().run();
}

TEST_P(ServerEnds, a_server_destroyed_in_on_connection_releases_its_name) {
  const test::TemporaryFolder folder;
  const auto at = Endpoint::unix_name(folder.path() + "/socket").value();
  auto unix_server = std::make_unique<UnixServer>(test::listen<UnixServer>(loop(), at).value());
  unix_server->serve({.on_connection = [&](Connection&) {
    unix_server.reset();
    // The path is free at once.
    unix_server = std::make_unique<UnixServer>(test::listen<UnixServer>(loop(), at).value());
    unix_server->serve(test::echo<UnixStream>);
  }});
  spawn(loop(), say_and_read_to_the_end<UnixStream>(at, "", ended));
  EXPECT_TRUE(run_until_ended(1));
  run(test::expect_echo_from<UnixStream>(at));
}

TEST(SimulatedServerEnds, a_server_may_be_destroyed_in_on_connection) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    sim::Simulation simulation(seed);
    sim::Host& host = simulation.add_host("server");
    EventLoop loop(host.loop_options());
    EventLoop far(simulation.add_host("client").loop_options());
    const Endpoint at = Endpoint::parse(host.ip() + ":7000").value();
    auto server = std::make_unique<TcpServer>(TcpServer::listen(loop, at).value());
    int called = 0;
    server->serve({.on_connection =
                       [&](Connection&) {
                         ++called;
                         server.reset();
                       },
                   .on_close = [](Connection&, Error) { FAIL(); }});
    int ended = 0;
    for (int i = 0; i < 3; ++i) spawn(far, say_and_read_to_the_end(at, "", ended));
    simulation.run();
    EXPECT_EQ(called, 1) << seed;
    EXPECT_EQ(ended, 3) << seed;
    EXPECT_TRUE(simulation.failure().empty()) << simulation.failure();
  }
}

}  // namespace
}  // namespace tambour::server_ends_test
