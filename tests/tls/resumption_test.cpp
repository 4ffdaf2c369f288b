// How many sessions are resumed: on several loops, after reloads, with many clients at once.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/streams.h"
#include "tls/support/certificates.h"

namespace tambour::resumption_test {
namespace {

using test::Contexts;

struct Count {
  std::size_t connections = 0;
  std::size_t resumed = 0;
};

/// Connects `times`, and each time waits until the server has sent its tickets.
Task<> visit(std::uint16_t port, tls::ClientContext tls, std::size_t times, Count& count) {
  for (std::size_t i = 0; i < times; ++i) {
    auto stream = co_await connect("localhost", port, tls);
    EXPECT_TRUE(stream) << stream.error().message();
    if (!stream) co_return;
    ++count.connections;
    if (stream->tls()->is_resumed()) ++count.resumed;
    co_await test::expect_echo(*stream, "hello");
    EXPECT_TRUE(co_await stream->shutdown_write());
    Buffer rest;
    EXPECT_EQ(co_await stream->read(rest), 0U);
  }
}

class TlsResumption : public testing::TestWithParam<tls::Version> {
 protected:
  static constexpr std::size_t clients_count = 20;

  TlsResumption() {
    tls::ClientOptions options;
    options.version_max = GetParam();
    options.authorities = Contexts::authority().pem();
    for (std::size_t i = 0; i < clients_count; ++i)
      clients.push_back(or_throw(tls::ClientContext::create(options)));
  }
  Count visit_all(std::uint16_t port, std::size_t times) {
    Count count;
    TaskScope scope(loop);
    for (const tls::ClientContext& client : clients) scope.spawn(visit(port, client, times, count));
    while (!scope.empty()) loop.run_once();
    EXPECT_EQ(count.connections, clients_count * times);
    return count;
  }

  EventLoop loop;
  std::vector<tls::ClientContext> clients;
};

TEST_P(TlsResumption, works_across_loops_and_reloads) {
  LoopGroup group({.threads = 3});
  const Contexts contexts;
  ListenOptions options;
  options.tls = contexts.server;
  options.placement = Placement::round_robin;
  auto server = TcpServerGroup::listen(group, Endpoint::loopback_v4(0), options).value();
  server.serve(test::echo<TcpStream>);
  const std::uint16_t port = server.endpoint().port();
  EXPECT_EQ(visit_all(port, 1).resumed, 0U);
  Count all;
  for (int reloads = 0; reloads < 5; ++reloads) {
    EXPECT_TRUE(contexts.server.reload());
    const Count count = visit_all(port, 4);
    all.connections += count.connections;
    all.resumed += count.resumed;
  }
  EXPECT_GE(all.resumed, all.connections * 99 / 100);
  const tls::Stats stats = contexts.server.stats();
  EXPECT_EQ(stats.handshakes, all.connections + clients_count);
  EXPECT_EQ(stats.resumed, all.resumed);
  EXPECT_EQ(stats.failed, 0U);
}

TEST_P(TlsResumption, is_off_without_a_lifetime) {
  tls::ServerOptions options;
  options.session_lifetime = std::chrono::seconds::zero();
  const Contexts contexts(options, {});
  ListenOptions mode;
  mode.tls = contexts.server;
  auto server = TcpServer::listen(loop, Endpoint::loopback_v4(0), mode).value();
  server.serve(test::echo<TcpStream>);
  EXPECT_EQ(visit_all(server.endpoint().port(), 2).resumed, 0U);
}

/// Returns whether the session was resumed.
Task<bool> resumes(Endpoint to, tls::ClientContext tls, tls::Host host) {
  auto stream = co_await TcpStream::connect(to);
  EXPECT_TRUE(stream);
  const auto done = co_await tls::connect(*stream, tls, std::move(host));
  EXPECT_TRUE(done) << done.error().message();
  co_await test::expect_echo(*stream, "hello");
  const bool is_resumed = stream->tls()->is_resumed();
  co_await test::finish(*stream);
  co_return is_resumed;
}

TEST_P(TlsResumption, needs_the_same_name_and_the_same_port) {
  const Contexts contexts;
  ListenOptions mode;
  mode.tls = contexts.server;
  auto server = TcpServer::listen(loop, Endpoint::loopback_v4(0), mode).value();
  server.serve(test::echo<TcpStream>);
  TaskScope scope(loop);
  scope.spawn([](Endpoint to, tls::ClientContext tls) -> Task<> {
    const std::uint16_t port = to.port();
    const std::uint16_t other_port = port == 443 ? 444 : 443;
    EXPECT_FALSE(co_await resumes(to, tls, "localhost"));
    EXPECT_TRUE(co_await resumes(to, tls, "localhost"));
    // As in a tunnel, the caller may name another port than that of the peer.
    EXPECT_FALSE(co_await resumes(to, tls, tls::Host("localhost", other_port)));
    EXPECT_TRUE(co_await resumes(to, tls, tls::Host("localhost", other_port)));
    EXPECT_TRUE(co_await resumes(to, tls, tls::Host("localhost", port)));
    EXPECT_FALSE(co_await resumes(to, tls, tls::Host("127.0.0.1", port)));
  }(server.endpoint(), clients.front()));
  while (!scope.empty()) loop.run_once();
}

INSTANTIATE_TEST_SUITE_P(Versions, TlsResumption,
                         testing::Values(tls::Version::tls12, tls::Version::tls13),
                         [](const auto& version) {
                           return version.param == tls::Version::tls12 ? "tls12" : "tls13";
                         });

}  // namespace
}  // namespace tambour::resumption_test
