// Streams and servers in tasks, over every transport.
#include "support/streams.h"

#include <chrono>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/tcp.h>

#include "support/peer.h"
#include "support/scale.h"
#include "transports/every_transport.h"

namespace tambour::streams_test {
namespace {

using namespace std::chrono_literals;

/// Reads until EOF.
Task<Result<Buffer>> read_all(Stream& stream) {
  Buffer all;
  for (;;) {
    const auto got = co_await stream.read(all);
    if (!got) co_return std::unexpected(got.error());
    if (*got == 0) co_return all;
  }
}

class Streams : public test::OnEveryBackend {
 public:
  using OnEveryBackend::loop;

  TcpServer listen(const Endpoint& at = Endpoint::loopback_v4(0),
                   const ListenOptions& options = {}) {
    return or_throw(test::listen(loop(), at, options));
  }
};

TAMBOUR_ON_EVERY_TRANSPORT(Streams);

TEST_P(Streams, echo_over_tcp_4_and_tcp_6) {
  for (const Endpoint& at : {Endpoint::loopback_v4(0), Endpoint::loopback_v6(0)}) {
    TcpServer server = listen(at);
    server.serve(test::echo<TcpStream>);
    EXPECT_EQ(server.endpoint().family(), at.family());
    run(test::expect_echo_from(server.endpoint()));
    EXPECT_EQ(server.accepted(), 1U);
    EXPECT_TRUE(run_until([&] { return server.connections() == 0; }));
  }
}

TEST_P(Streams, large_messages_arrive_unchanged) {
  test::StreamEnds ends = test::open_stream_ends(loop());
  std::string sent(test::scaled(8'000'000), '\0');
  std::minstd_rand random(1);
  for (char& byte : sent) byte = char(random());
  TaskScope scope(loop());
  scope.spawn([](Stream stream, const std::string& text) -> Task<> {
    Buffer first(text.substr(0, text.size() / 2));
    EXPECT_TRUE(co_await stream.write(first));
    EXPECT_TRUE(first.empty());
    EXPECT_TRUE(co_await stream.write(std::string_view(text).substr(text.size() / 2)));
    EXPECT_TRUE(co_await stream.shutdown_write());
  }(std::move(ends.near), sent));
  Buffer received;
  run([](Stream& stream, Buffer& into) -> Task<> {
    auto all = co_await read_all(stream);
    EXPECT_TRUE(all);
    if (all) into = std::move(*all);
  }(ends.far, received));
  EXPECT_EQ(received.size(), sent.size());
  EXPECT_TRUE(received == sent);
}

TEST_P(Streams, a_waiting_stream_allocates_only_its_coroutine_frame) {
  test::StreamEnds ends = test::open_stream_ends(loop());
  Buffer buffer;
  TaskScope scope(loop());
  scope.spawn([](Stream& stream, Buffer& into) -> Task<> {
    EXPECT_EQ(co_await stream.read(into), 1U);
  }(ends.near, buffer));
  run_iterations();
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(scope.size(), 1U);
  run([](Stream& stream) -> Task<> { EXPECT_TRUE(co_await stream.write("x")); }(ends.far));
  EXPECT_TRUE(run_until([&] { return scope.empty(); }));
  EXPECT_EQ(buffer, "x");
}

TEST_P(Streams, a_wait_fails_when_the_stream_is_closed_moved_or_stopped) {
  std::vector<Error> errors;
  auto reader = [](Stream& stream, std::vector<Error>& results) -> Task<> {
    std::array<std::byte, 16> place;
    const auto got = co_await stream.read(place);
    results.push_back(got ? Error() : got.error());
  };
  test::StreamEnds ends = test::open_stream_ends(loop());
  TaskScope scope(loop());
  scope.spawn(reader(ends.near, errors));
  run_iterations();
  Stream moved = std::move(ends.near);
  run_iterations();
  EXPECT_TRUE(errors.empty());
  moved.close();
  // Not from inside the call.
  EXPECT_TRUE(errors.empty());
  run_iterations();
  EXPECT_EQ(errors, std::vector<Error>{system_error(ECANCELED)});
  scope.spawn(reader(moved, errors));
  EXPECT_EQ(errors.back(), system_error(EBADF));

  ends = test::open_stream_ends(loop());
  scope.spawn(reader(ends.near, errors));
  run_iterations();
  scope.request_stop();
  run_iterations();
  EXPECT_EQ(errors.size(), 3U);
  EXPECT_EQ(errors.back(), system_error(ECANCELED));
  EXPECT_TRUE(ends.near.is_open());
}

TEST_P(Streams, destroying_the_loop_ends_all_waits) {
  auto other = std::make_unique<EventLoop>(options());
  auto [outlives, destroyed] = test::open_stream_ends(*other);
  spawn(*other, [](Stream stream) -> Task<> {
    std::array<std::byte, 16> place;
    static_cast<void>(co_await stream.read(place));
    ADD_FAILURE() << "nothing was sent";
  }(std::move(destroyed)));
  other->run_ready();
  other.reset();
  EXPECT_TRUE(outlives.is_open());
  EXPECT_TRUE(test::has_ended(outlives));
}

TEST_P(Streams, writing_to_a_closed_peer_fails_and_raises_no_signal) {
  test::StreamEnds ends = test::open_stream_ends(loop());
  ends.far.close();
  run([](Stream& stream) -> Task<> {
    EXPECT_EQ((co_await stream.write("x")).error(), system_error(EPIPE));
    co_await test::expect_closed(stream);
  }(ends.near));
}

TEST_P(Streams, each_direction_is_shut_down_independently) {
  test::StreamEnds ends = test::open_stream_ends(loop());
  TaskScope scope(loop());
  scope.spawn([](Stream& stream) -> Task<> {
    auto question = co_await read_all(stream);
    EXPECT_TRUE(question && *question == "question");
    EXPECT_TRUE(co_await stream.write("answer"));
    EXPECT_TRUE(co_await stream.shutdown_write());
  }(ends.far));
  run([](Stream& stream) -> Task<> {
    EXPECT_TRUE(co_await stream.write("question"));
    EXPECT_TRUE(co_await stream.shutdown_write());
    auto answer = co_await read_all(stream);
    EXPECT_TRUE(answer && *answer == "answer");
  }(ends.near));
}

TEST_P(Streams, reports_why_connect_or_listen_failed) {
  TcpServer server = listen();
  EXPECT_EQ(TcpServer::listen(loop(), server.endpoint()).error(), system_error(EADDRINUSE));
  const Endpoint closed = server.endpoint();
  server.stop();
  run([](Endpoint to) -> Task<> {
    EXPECT_EQ((co_await TcpStream::connect(to)).error(), system_error(ECONNREFUSED));
    const Endpoint name = Endpoint::unix_name("@name").value();
    EXPECT_EQ((co_await TcpStream::connect(name)).error(), system_error(EAFNOSUPPORT));
  }(closed));
  EXPECT_EQ(TcpServer::listen(loop(), Endpoint::parse("192.0.2.1:80").value()).error(),
            system_error(EADDRNOTAVAIL));
  EXPECT_EQ(TcpServer::listen(loop(), Endpoint::unix_name("@name").value()).error(),
            system_error(EAFNOSUPPORT));
}

TEST_P(Streams, serves_at_most_connections_max_at_a_time) {
  TcpServer server = listen(Endpoint::loopback_v4(0), {.connections_max = 2});
  int served = 0;
  int limit = 0;
  server.serve([&](TcpStream stream) -> Task<> {
    limit = std::max(limit, ++served);
    auto all = co_await read_all(stream);
    EXPECT_TRUE(all);
    co_await sleep_for(1ms);
    --served;
  });
  TaskScope clients(loop());
  for (int i = 0; i < 7; ++i) {
    clients.spawn([](Endpoint to) -> Task<> {
      auto stream = co_await test::connect_to(to);
      EXPECT_TRUE(stream && co_await stream->write("x"));
      if (stream) co_await test::finish(*stream);
    }(server.endpoint()));
  }
  EXPECT_TRUE(run_until([&] { return server.accepted() == 7 && server.connections() == 0; }));
  EXPECT_EQ(limit, 2);
}

TEST_P(Streams, a_server_shuts_down_when_its_handlers_have_ended) {
  TcpServer server = listen();
  server.serve(test::echo<TcpStream>);
  Stream client;
  run([](TcpServer& from, Stream& into) -> Task<> {
    auto stream = co_await test::connect_to(from.endpoint());
    EXPECT_TRUE(stream);
    into = std::move(*stream);
    EXPECT_TRUE(co_await into.write("x"));
    Buffer back;
    EXPECT_EQ(co_await into.read(back), 1U);
  }(server, client));
  TaskScope scope(loop());
  scope.spawn([](TcpServer& ending) -> Task<> { co_await ending.shut_down(1h); }(server));
  run_iterations();
  EXPECT_EQ(scope.size(), 1U);
  client.close();
  EXPECT_TRUE(run_until([&] { return scope.empty(); }));
  loop().run();
}

TEST_P(Streams, a_server_that_shuts_down_does_not_wait_forever) {
  TcpServer server = listen();
  server.serve(test::echo<TcpStream>);
  run([](TcpServer& from) -> Task<> {
    auto stream = co_await test::connect_to(from.endpoint());
    EXPECT_TRUE(stream && co_await stream->write("x"));
    Buffer back;
    EXPECT_EQ(co_await stream->read(back), 1U);
    co_await from.shut_down(1ms);
    EXPECT_EQ(from.connections(), 0U);
    co_await test::expect_closed(*stream);
  }(server));
  loop().run();
}

TEST_P(Streams, an_exception_of_a_handler_is_counted_and_the_server_keeps_serving) {
  TcpServer server = listen();
  int served = 0;
  server.serve([&served](TcpStream) -> Task<> {
    if (++served == 1) throw std::runtime_error("of the first");
    co_return;
  });
  TaskScope clients(loop());
  auto connect = [](Endpoint to) -> Task<> {
    auto stream = co_await test::connect_to(to);
    EXPECT_TRUE(stream);
    if (stream) co_await test::expect_closed(*stream);
  };
  testing::internal::CaptureStderr();
  clients.spawn(connect(server.endpoint()));
  EXPECT_TRUE(run_until([&] { return clients.empty() && server.connections() == 0; }));
  static_cast<void>(testing::internal::GetCapturedStderr());
  EXPECT_EQ(server.handler_exceptions(), 1U);
  clients.spawn(connect(server.endpoint()));
  EXPECT_TRUE(run_until([&] { return served == 2 && clients.empty(); }));
}

TEST_P(Streams, a_server_on_one_loop_refuses_a_placement) {
  const auto server =
      TcpServer::listen(loop(), Endpoint::loopback_v4(0), {.placement = Placement::round_robin});
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error(), system_error(EINVAL));
}

}  // namespace
}  // namespace tambour::streams_test
