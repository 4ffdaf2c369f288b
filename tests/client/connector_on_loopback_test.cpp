// Connecting to one of several addresses, on every backend.
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/connector.h>
#include <tambour/net/stream.h>
#include <tambour/net/tcp.h>
#include <tambour/net/unix.h>
#include <tambour/task/scope.h>

#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/streams.h"
#include "support/temporary_folder.h"

namespace tambour::connector_on_loopback_test {
namespace {

Task<> hold(TcpStream stream) {
  std::byte byte;
  static_cast<void>(co_await stream.read({&byte, 1}));
}

class ConnectorOnLoopback : public test::OnEveryBackend {};

TAMBOUR_ON_EVERY_BACKEND(ConnectorOnLoopback);

TEST_P(ConnectorOnLoopback, finds_the_address_that_answers) {
  const auto server = [this] {
    auto listening = TcpServer::listen(loop(), Endpoint::loopback_v4(0));
    EXPECT_TRUE(listening);
    return std::make_unique<TcpServer>(std::move(*listening));
  }();
  server->serve(hold);
  const std::uint16_t at = server->endpoint().port();
  int connected = 0;
  const auto run = [&](auto to) {
    bool done = false;
    spawn(loop(), [](auto whither, int& count, bool& ended) -> Task<> {
      const auto stream = co_await connect(std::move(whither));
      EXPECT_TRUE(stream) << stream.error().message();
      count += stream ? 1 : 0;
      ended = true;
    }(std::move(to), connected, done));
    EXPECT_TRUE(run_until([&] { return done; }));
  };
  run(server->endpoint().to_string());
  run("localhost:" + std::to_string(at));
  // No server listens over IPv6.
  run(std::vector{Endpoint::loopback_v6(at), Endpoint::loopback_v4(at)});
  EXPECT_EQ(connected, 3);
  EXPECT_TRUE(run_until([&] { return server->connections() == 0; }));
  const std::size_t before = test::open_descriptors();
  run(std::vector{Endpoint::loopback_v6(at), Endpoint::loopback_v4(at)});
  EXPECT_TRUE(run_until([&] { return server->connections() == 0; }));
  EXPECT_EQ(test::open_descriptors(), before);
}

TEST_P(ConnectorOnLoopback, connects_to_unix_endpoints) {
  const test::TemporaryFolder folder;
  for (const std::string& name : {folder.path() + "/socket", "@" + folder.path()}) {
    const Endpoint at = Endpoint::unix_name(name).value();
    auto server = UnixServer::listen(loop(), at);
    ASSERT_TRUE(server);
    server->serve(test::echo<UnixStream>);
    run([](Endpoint to) -> Task<> {
      auto stream = co_await connect(to.to_string());
      EXPECT_TRUE(stream) << stream.error().message();
      if (!stream) co_return;
      EXPECT_EQ(stream->peer_endpoint(), to);
      co_await test::expect_echo(*stream, "by name");
      const UnixStream local(std::move(*stream));
      const auto credentials = local.peer_credentials();
      EXPECT_TRUE(credentials && credentials->process == ::getpid());
      const std::vector<Endpoint> addresses{Endpoint::unix_name("/no/such/socket").value(), to};
      ConnectOptions with_tcp_options;  // Ignored for Unix endpoints.
      with_tcp_options.tcp.keepalive_idle = std::chrono::seconds(60);
      EXPECT_TRUE(co_await connect(addresses, with_tcp_options));
      const std::vector<Endpoint> nowhere{addresses.front()};
      const auto refused = co_await connect(nowhere);
      EXPECT_EQ(refused ? ConnectError() : refused.error(), system_error(ENOENT));
    }(at));
  }
}

}  // namespace
}  // namespace tambour::connector_on_loopback_test
