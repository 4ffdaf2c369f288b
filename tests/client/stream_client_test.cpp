// StreamClient: connecting, back-off and reconnecting, in virtual time; and once over loopback.
#include <tambour/net/stream_client.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/scale.h"
#include "support/streams.h"

namespace tambour::stream_client_test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint16_t port = 7000;

/// A client's host, and a server that can be stopped and started.
class StreamClients : public testing::Test {
 public:
  explicit StreamClients(std::uint64_t seed = 1) : simulation(seed) {}

  void listen(ConnectionCallbacks callbacks = {}) {
    server.emplace(TcpServer::listen(server_loop, Endpoint::any_v4(port)).value());
    server->serve(std::move(callbacks));
  }
  [[nodiscard]] Endpoint address() const {
    const sockaddr_in at = server_host.endpoint(port);
    return Endpoint::from(reinterpret_cast<const sockaddr*>(&at), sizeof at).value();
  }
  /// Callbacks that note what happens, in milliseconds.
  ConnectionCallbacks callbacks() {
    return {.on_connection = [this](Connection&) { note("open"); },
            .on_close = [this](Connection&, Error) { note("closed"); }};
  }
  StreamClientOptions options() {
    ConnectOptions connect;
    connect.timeout = 5s;
    return {.connect = connect,
            .retry = {.attempts_max = RetryPolicy::unlimited, .delay = 100ms, .delay_max = 400ms},
            .on_failure = [this](const ConnectFailure& failure) {
              failures.push_back({failure.error, failure.attempts, failure.retry_delay});
              note("failed");
            }};
  }
  StreamClient& make(StreamClientOptions options, std::optional<ConnectionCallbacks> with = {}) {
    client.emplace(client_loop, "server", port, with ? std::move(*with) : callbacks(),
                   std::move(options));
    client->start();
    return *client;
  }
  void note(std::string text) {
    times.push_back(simulation.now() - TimePoint{});
    events.push_back(std::move(text));
  }
  /// Runs for this time.
  void run(Duration time) {
    simulation.after(time, [this] { simulation.stop(); });
    simulation.run(time * 2);
  }
  [[nodiscard]] std::string history() const {
    std::string all;
    for (const std::string& event : events) all += (all.empty() ? "" : " ") + event;
    return all;
  }

  struct Failure {
    Error error;
    unsigned attempts;
    std::optional<Duration> retry_delay;
  };

  sim::Simulation simulation;
  sim::Host& client_host = simulation.add_host("client");
  sim::Host& server_host = simulation.add_host("server");
  EventLoop client_loop{client_host.loop_options()};
  EventLoop server_loop{server_host.loop_options()};
  std::vector<std::string> events;
  std::vector<Duration> times;
  std::vector<Failure> failures;
  std::optional<TcpServer> server;
  std::optional<StreamClient> client;
};

TEST_F(StreamClients, connects_when_it_is_started) {
  listen({.on_message = [](Connection& peer, Buffer& bytes) { peer.send(std::move(bytes)); }});
  std::string received;
  StreamClient stream_client(
      client_loop, "server", port,
      {.on_connection = [](Connection& peer) { peer.send("hello"); },
       .on_message = [&](Connection&,
                         Buffer& bytes) { received += bytes.take(bytes.size()).to_string(); }});
  run(1s);
  EXPECT_EQ(server->accepted(), 0U);
  EXPECT_FALSE(stream_client.is_started());
  EXPECT_EQ(stream_client.connection(), nullptr);
  stream_client.start();
  stream_client.start();
  run(1s);
  EXPECT_EQ(received, "hello");
  EXPECT_EQ(server->accepted(), 1U);
  EXPECT_TRUE(stream_client.is_started());
  ASSERT_NE(stream_client.connection(), nullptr);
  EXPECT_EQ(stream_client.connection()->peer_endpoint(), address());
}

TEST_F(StreamClients, accepts_every_kind_of_target) {
  listen();
  StreamClient by_text(client_loop, "server:7000", callbacks());
  StreamClient by_addresses(client_loop, {address()}, callbacks());
  StreamClient by_function(client_loop, [at = address()] { return connect({at}); }, callbacks());
  StreamClient no_port(client_loop, "server", 70'000, callbacks(), options());
  for (StreamClient* by_address : {&by_text, &by_addresses, &by_function, &no_port})
    by_address->start();
  run(50ms);
  EXPECT_EQ(server->connections(), 3U);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].error, system_error(EINVAL));
}

TEST_F(StreamClients, tries_again_with_increasing_delays) {
  make(options());
  run(5s);
  ASSERT_GE(failures.size(), 8U);
  Duration expected = 100ms;
  for (std::size_t i = 0; i < failures.size(); ++i) {
    EXPECT_EQ(failures[i].error, system_error(ECONNREFUSED));
    EXPECT_EQ(failures[i].attempts, i + 1);
    ASSERT_TRUE(failures[i].retry_delay);
    EXPECT_GE(*failures[i].retry_delay, expected / 2);
    EXPECT_LE(*failures[i].retry_delay, expected);
    if (i > 0) {
      EXPECT_GE(times[i] - times[i - 1], *failures[i - 1].retry_delay);
      EXPECT_LT(times[i] - times[i - 1], *failures[i - 1].retry_delay + 5ms);
    }
    expected = std::min<Duration>(expected * 2, 400ms);
  }
  listen();
  run(1s);
  EXPECT_EQ(events.back(), "open");
}

TEST_F(StreamClients, stops_after_attempts_max) {
  StreamClientOptions mode = options();
  mode.retry.attempts_max = 3;
  make(std::move(mode));
  run(10s);
  ASSERT_EQ(failures.size(), 3U);
  EXPECT_TRUE(failures[1].retry_delay);
  EXPECT_FALSE(failures[2].retry_delay);
  EXPECT_FALSE(client->is_started());
  // It may be started again, and then counts the attempts from one.
  client->start();
  run(10s);
  EXPECT_EQ(failures.size(), 6U);
  EXPECT_EQ(failures[3].attempts, 1U);
}

TEST_F(StreamClients, connects_again_when_the_connection_ends) {
  listen();
  make(options());
  run(1s);
  EXPECT_EQ(history(), "open");
  server.reset();
  run(1s);
  EXPECT_EQ(events.at(1), "closed");
  EXPECT_EQ(events.at(2), "failed");
  EXPECT_GE(times[2] - times[1], 50ms);
  EXPECT_EQ(failures[0].attempts, 1U);
  listen();
  run(1s);
  EXPECT_EQ(events.back(), "open");
  client->connection()->close();
  run(1s);
  EXPECT_EQ(server->accepted(), 2U);
  EXPECT_EQ(server->connections(), 1U);
}

TEST_F(StreamClients, stops_when_the_connection_ends_if_it_does_not_reconnect) {
  listen();
  StreamClientOptions mode = options();
  mode.reconnect = false;
  make(std::move(mode));
  run(1s);
  client->connection()->close();
  run(1s);
  EXPECT_EQ(history(), "open closed");
  EXPECT_FALSE(client->is_started());
  client->start();
  run(1s);
  EXPECT_EQ(history(), "open closed open");
}

TEST_F(StreamClients, a_server_that_closes_at_once_is_asked_less_and_less_often) {
  listen({.on_connection = [](Connection& peer) { peer.close(); }});
  StreamClientOptions mode = options();
  mode.stable_after = 1s;
  make(std::move(mode));
  run(10s);
  // Without back-off there would be a hundred; with 200 ms to 400 ms, 25 to 50, and a few at first.
  EXPECT_GE(server->accepted(), 25U);
  EXPECT_LE(server->accepted(), 60U);
  // A connection that lasts resets the delay.
  server.reset();
  listen();
  run(3s);
  ASSERT_EQ(events.back(), "open");
  const std::size_t before = times.size();
  client->connection()->close();
  run(1s);
  ASSERT_EQ(events.size(), before + 2);
  EXPECT_LT(times[before + 1] - times[before], 105ms);
}

TEST_F(StreamClients, is_deterministic) {
  const auto play = [](std::uint64_t seed) {
    struct Player : StreamClients {
      explicit Player(std::uint64_t own_seed) : StreamClients(own_seed) {}
      void TestBody() override {
        make(options());
        run(3s);
      }
    } player(seed);
    player.TestBody();
    return player.times;
  };
  EXPECT_EQ(play(7), play(7));
  EXPECT_NE(play(7), play(8));
}

TEST_F(StreamClients, stop_ends_attempts_and_keeps_the_connection) {
  listen();
  make(options());
  client->stop();  // During the attempt.
  run(1s);
  EXPECT_EQ(history(), "");
  EXPECT_EQ(client_host.descriptors(), 0U);
  client->start();
  run(1s);
  client->stop();  // While it is connected.
  run(1s);
  EXPECT_EQ(history(), "open");
  EXPECT_NE(client->connection(), nullptr);
  client->start();  // It has a connection already.
  run(1s);
  EXPECT_EQ(history(), "open");
  client->stop();
  server.reset();
  run(1s);
  EXPECT_EQ(history(), "open closed");
  client->start();
  run(20ms);
  EXPECT_EQ(history(), "open closed failed");
  client->stop();  // Between two attempts.
  run(1s);
  EXPECT_EQ(history(), "open closed failed");
  EXPECT_FALSE(client->is_started());
}

TEST_F(StreamClients, close_closes_the_connection) {
  listen();
  make(options());
  run(1s);
  client->close();
  EXPECT_EQ(client->connection(), nullptr);
  EXPECT_EQ(history(), "open");
  run(1s);
  EXPECT_EQ(history(), "open closed");
  EXPECT_FALSE(client->is_started());
}

TEST_F(StreamClients, may_be_started_again_before_on_close) {
  listen();
  StreamClientOptions mode = options();
  mode.reconnect = false;
  make(std::move(mode));
  run(1s);
  client->close();
  client->start();
  run(1s);
  EXPECT_EQ(history(), "open closed open");
  EXPECT_EQ(server->connections(), 1U);
  EXPECT_TRUE(client->is_started());
}

TEST_F(StreamClients, may_be_destroyed_in_every_callback) {
  listen();
  const auto destroy = [this] { client.reset(); };
  make(options(),
       ConnectionCallbacks{.on_connection = [&, big = std::string(100, 'x')](Connection&) {
         note(big);
         destroy();
         EXPECT_EQ(big.size(), 100U);
       }});
  run(1s);
  EXPECT_FALSE(client);
  make(options(), ConnectionCallbacks{.on_close = [&](Connection&, Error) { destroy(); }});
  run(1s);
  client->connection()->close();
  run(1s);
  EXPECT_FALSE(client);
  server.reset();
  StreamClientOptions mode = options();
  mode.on_failure = [&, big = std::string(100, 'x')](const ConnectFailure&) {
    destroy();
    EXPECT_EQ(big.size(), 100U);
  };
  make(std::move(mode));
  run(1s);
  EXPECT_FALSE(client);
  EXPECT_EQ(client_host.descriptors(), 0U);
  client_loop.run();  // Nothing is left.
}

TEST_F(StreamClients, destruction_invokes_no_callback) {
  listen();
  make(options());
  client.reset();  // During the attempt.
  make(options());
  run(1s);
  client.reset();
  run(1s);
  EXPECT_EQ(history(), "open");
  EXPECT_EQ(server->connections(), 0U);
}

TEST_F(StreamClients, may_be_moved) {
  listen();
  make(options());
  StreamClient moved(std::move(*client));
  client.reset();
  run(1s);
  ASSERT_NE(moved.connection(), nullptr);
  StreamClient other(client_loop, "server", port, {});
  other.start();
  other = std::move(moved);
  run(1s);
  EXPECT_NE(other.connection(), nullptr);
  EXPECT_EQ(server->connections(), 1U);
}

TEST_F(StreamClients, a_connection_that_moves_to_another_loop_leaves_the_client) {
  listen();
  EventLoop second(client_host.loop_options());
  bool moved = false;
  make(options(), ConnectionCallbacks{
                      .on_connection = [&](Connection& connection) { connection.move_to(second); },
                      .on_move = [&](Connection&) { moved = true; }});
  run(2s);
  EXPECT_TRUE(moved);
  EXPECT_EQ(client->connection(), nullptr);
  EXPECT_FALSE(client->is_started());
  EXPECT_EQ(server->accepted(), 1U);
}

TEST_F(StreamClients, an_exception_of_the_connect_function_propagates) {
  int calls = 0;
  const auto broken = [&calls]() -> Task<ConnectResult> {
    ++calls;
    throw std::runtime_error("expected");
    co_return std::unexpected(Error());
  };
  StreamClient stream_client(client_loop, broken, callbacks(), options());
  stream_client.start();
  EXPECT_THROW(run(1s), std::runtime_error);
  EXPECT_FALSE(stream_client.is_started());
  run(1s);
  EXPECT_EQ(calls, 1);
}

TEST_F(StreamClients, memory_that_runs_out_is_retried) {
  int calls = 0;
  const auto poor = [&calls]() -> Task<ConnectResult> {
    ++calls;
    throw std::bad_alloc();
    co_return std::unexpected(Error());
  };
  StreamClient retrying(client_loop, poor, callbacks(), options());
  retrying.start();
  run(1s);
  EXPECT_GT(calls, 3);
  EXPECT_EQ(failures.at(0).error, system_error(ENOMEM));
}

TEST_F(StreamClients, its_connections_do_not_pause_at_the_high_water_mark) {
  listen({.on_connection = [](Connection& peer) { peer.pause_reading(); }});
  bool reached = false;
  std::string received;
  ConnectionCallbacks with{
      .on_connection = [](Connection& connection) { connection.send(std::string(4'000'000, 'x')); },
      .on_message = [&](Connection&,
                        Buffer& bytes) { received += bytes.take(bytes.size()).to_string(); },
      .on_high_water = [&](Connection&, std::size_t) { reached = true; }};
  server.reset();
  listen({.on_connection = [](Connection& peer) {
    peer.pause_reading();
    peer.send("hello");
  }});
  make(options(), std::move(with));
  run(1s);
  EXPECT_TRUE(reached);
  EXPECT_EQ(received, "hello");
}

TEST(StreamClientContracts, misuse_aborts_with_a_message) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EventLoop loop;
  StreamClient client(loop, "127.0.0.1:1", {});
  EXPECT_DEATH(std::thread([&] { client.start(); }).join(),
               "StreamClient::start\\(\\) was called on another thread .*stream_client_test");
  StreamClient moved(std::move(client));
  EXPECT_DEATH(client.stop(),  // NOLINT(bugprone-use-after-move): that is the misuse.
               "StreamClient::stop\\(\\) was called on a client that was moved from");
  EXPECT_DEATH(
      {
        auto inner = std::make_unique<EventLoop>();
        StreamClient late(*inner, "127.0.0.1:1", {});
        inner.reset();
      },
      "StreamClient::~StreamClient\\(\\) was called after its event loop was destroyed");
}

class StreamClientsOnLoopback : public test::OnEveryBackend {};

TAMBOUR_ON_EVERY_BACKEND(StreamClientsOnLoopback);

TEST_P(StreamClientsOnLoopback, reconnects_to_a_restarted_server) {
  std::optional<TcpServer> server(TcpServer::listen(loop(), Endpoint::loopback_v4(0)).value());
  const Endpoint at = server->endpoint();
  const auto echo = [] {
    return ConnectionCallbacks{
        .on_message = [](Connection& peer, Buffer& bytes) { peer.send(std::move(bytes)); }};
  };
  server->serve(echo());
  int echoed = 0;
  int failed = 0;
  ConnectOptions connect;
  connect.family = AddressFamily::v4;
  StreamClient client(
      loop(), "localhost", at.port(),
      {.on_connection = [](Connection& connection) { connection.send("x"); },
       .on_message =
           [&](Connection&, Buffer& bytes) {
             ++echoed;
             bytes.clear();
           }},
      {.connect = connect,
       .retry = {.attempts_max = RetryPolicy::unlimited, .delay = 1ms, .delay_max = 10ms},
       .on_failure = [&](const ConnectFailure& failure) {
         EXPECT_EQ(failure.error, system_error(ECONNREFUSED));
         ++failed;
       }});
  client.start();
  ASSERT_TRUE(run_until([&] { return echoed == 1; }));
  server.reset();
  ASSERT_TRUE(run_until([&] { return failed >= 2; }));
  server.emplace(TcpServer::listen(loop(), at).value());
  server->serve(echo());
  EXPECT_TRUE(run_until([&] { return echoed == 2; }));
}

TEST(Backoff, delays_of_a_policy) {
  EventLoop loop;
  Backoff backoff(loop, {.attempts_max = 5, .delay = 1s, .delay_max = 3s, .jitter = 0});
  const auto delays = [&backoff] {
    std::vector<Duration> list;
    while (const auto delay = backoff.next()) list.push_back(*delay);
    return list;
  };
  EXPECT_EQ(delays(), (std::vector<Duration>{1s, 2s, 3s, 3s}));
  EXPECT_EQ(backoff.failures(), 5U);
  EXPECT_EQ(backoff.next(), std::nullopt);
  backoff.reset();
  EXPECT_EQ(backoff.failures(), 0U);
  EXPECT_EQ(backoff.next(), 1s);
  Backoff once(loop, {.attempts_max = 0});
  EXPECT_EQ(once.next(), std::nullopt);
  Backoff unlimited(loop, {.attempts_max = RetryPolicy::unlimited, .delay = 1s, .jitter = 0.5});
  for (int i = 0; i < 100; ++i) {
    const auto delay = unlimited.next();
    ASSERT_TRUE(delay);
    EXPECT_GE(*delay, 500ms);
    EXPECT_LE(*delay, 10s);
  }
}

}  // namespace
}  // namespace tambour::stream_client_test
