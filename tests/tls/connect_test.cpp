// connect() with TLS and proxies, and the clients that use it.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/net/connector.h>
#include <tambour/tambour.h>

#include "http/support/tunnel_proxy.h"
#include "support/on_every_backend.h"
#include "support/streams.h"
#include "tls/support/certificates.h"

namespace tambour::connect_test {
namespace {

using namespace std::chrono_literals;
using test::Contexts;
using test::TunnelProxy;

const Endpoint anywhere = Endpoint::loopback_v4(0);

class TlsConnect : public test::OnEveryBackend {
 protected:
  /// A server that sends back what it receives.
  TcpServer echo_server(const tls::ServerContext& tls = {}) {
    ListenOptions options;
    options.tls = tls;
    options.on_rejected = [this](SocketStream&, const Error&) { ++rejected; };
    TcpServer server = or_throw(TcpServer::listen(loop(), anywhere, options));
    server.serve(test::echo<TcpStream>);
    return server;
  }
  /// Accepts connections and says nothing. Counts them.
  TcpServer silent_server(bool closes = false) {
    TcpServer server = or_throw(TcpServer::listen(loop(), anywhere));
    server.serve([this, closes](TcpStream stream) -> Task<> {
      ++accepted;
      Buffer bytes;
      for (Result<std::size_t> got = 1U; got && *got > 0;) {
        got = co_await stream.read(bytes);
        if (closes) co_return;
      }
    });
    return server;
  }
  /// The error, or none after an echo.
  template <class... To>
  ConnectError outcome(ConnectOptions options, To... to) {
    ConnectError error;
    auto connecting = connect(std::move(to)..., std::move(options));
    run([](Task<ConnectResult> task, ConnectError& into, std::string& by) -> Task<> {
      auto stream = co_await std::move(task);
      if (!stream) {
        into = stream.error();
        co_return;
      }
      by = stream->proxy();
      co_await test::expect_echo(*stream, "some text");
      co_await test::expect_echo(*stream, std::string(100'000, 'x'));
    }(std::move(connecting), error, used_proxy));
    return error;
  }
  /// Whether a connection to localhost resumes a session.
  bool is_resumed(ConnectOptions options, std::uint16_t port) {
    bool resumed = false;
    auto connecting = connect(std::string("localhost"), port, std::move(options));
    run([](Task<ConnectResult> task, bool& into) -> Task<> {
      auto stream = co_await std::move(task);
      EXPECT_TRUE(stream) << stream.error().message();
      if (!stream) co_return;
      into = stream->tls()->is_resumed();
      co_await test::expect_echo(*stream, "hello");
      EXPECT_TRUE(co_await stream->shutdown_write());
      Buffer rest;
      EXPECT_EQ(co_await stream->read(rest), 0U);
    }(std::move(connecting), resumed));
    return resumed;
  }
  void expect(const ConnectError& error, const Error& expected, ConnectStep step) {
    EXPECT_EQ(error, expected);
    EXPECT_STREQ(to_string(error.step()), to_string(step));
  }

  const Contexts contexts;
  std::string used_proxy;
  int rejected = 0;
  int accepted = 0;
};

TAMBOUR_ON_EVERY_BACKEND(TlsConnect);

TEST_P(TlsConnect, each_proxy_with_and_without_tls) {
  for (const bool has_tls : {false, true}) {
    TcpServer server = echo_server(has_tls ? contexts.server : tls::ServerContext());
    for (const std::string scheme : {"http", "https", "socks5"}) {
      SCOPED_TRACE(scheme + (has_tls ? " to TLS" : ""));
      const bool is_secure = scheme == "https";
      TunnelProxy proxy(loop(), anywhere, is_secure ? contexts.server : tls::ServerContext());
      ConnectOptions options;
      if (has_tls) options.tls = contexts.client;
      options.proxy_tls = contexts.client;
      options.proxy = scheme + "://" + proxy.authority();
      const std::uint16_t port = server.endpoint().port();
      expect(outcome(options, std::string("localhost"), port), {}, ConnectStep::none);
      EXPECT_EQ(used_proxy, scheme + "://" + proxy.authority());
      expect(outcome(options, std::vector{server.endpoint()}), {}, ConnectStep::none);
      expect(outcome(options, server.endpoint().to_string()), {}, ConnectStep::none);
      EXPECT_EQ(std::ranges::count(proxy.log, '\n'), 3) << proxy.log;
      EXPECT_TRUE(proxy.log.find("localhost:" + std::to_string(port)) != std::string::npos);
    }
  }
}

// The servers share the keys of their tickets, so they would resume the session of another one.
TEST_P(TlsConnect, a_session_is_offered_to_its_server_only_also_through_proxies) {
  TcpServer one = echo_server(contexts.server);
  TcpServer other = echo_server(contexts.server);
  const std::uint16_t one_port = one.endpoint().port();
  const std::uint16_t other_port = other.endpoint().port();
  for (const std::string scheme : {"http", "https"}) {
    SCOPED_TRACE(scheme);
    tls::ClientOptions client;
    client.authorities = Contexts::authority().pem();
    ConnectOptions direct(or_throw(tls::ClientContext::create(client)));
    const bool is_secure = scheme == "https";
    TunnelProxy proxy(loop(), anywhere, is_secure ? contexts.server : tls::ServerContext());
    ConnectOptions proxied = direct;
    proxied.proxy_tls = direct.tls;
    proxied.proxy = scheme + "://localhost:" + proxy.authority().substr(10);
    EXPECT_FALSE(is_resumed(proxied, one_port));
    EXPECT_FALSE(is_resumed(proxied, other_port));
    EXPECT_TRUE(is_resumed(proxied, one_port));
    EXPECT_TRUE(is_resumed(direct, other_port));
    EXPECT_TRUE(is_resumed(proxied, other_port));
  }
}

TEST_P(TlsConnect, a_choice_is_asked_for_each_attempt) {
  TcpServer server = echo_server();
  TunnelProxy proxy(loop());
  std::vector<std::string> asked;
  ConnectOptions options;
  options.proxy = [&](const ProxyTarget& target) {
    asked.push_back(target.scheme + target.host + ":" + std::to_string(target.port));
    return asked.size() == 1 ? std::string() : "http://" + proxy.authority();
  };
  const std::uint16_t port = server.endpoint().port();
  EXPECT_FALSE(outcome(options, std::string("127.0.0.1"), port));
  EXPECT_EQ(proxy.log, "");
  EXPECT_FALSE(outcome(options, std::string("127.0.0.1"), port));
  EXPECT_EQ(asked, std::vector<std::string>(2, "127.0.0.1:" + std::to_string(port)));
  EXPECT_TRUE(proxy.log.starts_with("CONNECT 127.0.0.1:")) << proxy.log;
}

TEST_P(TlsConnect, errors_name_their_step) {
  TcpServer server = echo_server(contexts.server);
  const std::uint16_t port = server.endpoint().port();
  ConnectOptions options(contexts.client);
  expect(outcome(options, std::string(), port), system_error(EINVAL), ConnectStep::arguments);
  expect(outcome(options, std::string("localhost"), 65'536), system_error(EINVAL),
         ConnectStep::arguments);
  for (const char* const wrong : {"", "localhost", "localhost:", "localhost:x", "a:b:1"})
    expect(outcome(options, std::string(wrong)), system_error(EINVAL), ConnectStep::arguments);
  expect(outcome(options, std::vector<Endpoint>()), system_error(EINVAL), ConnectStep::arguments);
  expect(outcome(options, std::string("unix:/no/such/path")), system_error(EINVAL),
         ConnectStep::arguments);
  const ConnectError refused = outcome(options, std::string("127.0.0.1:1"));
  expect(refused, system_error(ECONNREFUSED), ConnectStep::connect);
  EXPECT_EQ(refused.describe(), "connecting: Connection refused");
  options.tls_host = "other.test";
  expect(outcome(options, std::string("localhost"), port), tls::ErrorCode::certificate_wrong_host,
         ConnectStep::tls);
  options.tls_host = "localhost";
  expect(outcome(options, server.endpoint().to_string()), {}, ConnectStep::none);
  // Proxies.
  options.proxy = "http://127.0.0.1:1";
  expect(outcome(options, std::string("localhost"), port), system_error(ECONNREFUSED),
         ConnectStep::proxy);
  for (const char* const wrong : {"nonsense", "ftp://127.0.0.1", "http://127.0.0.1/path"}) {
    options.proxy = wrong;
    expect(outcome(options, std::string("localhost"), port), ProxyError::bad_url,
           ConnectStep::proxy);
  }
  TunnelProxy proxy(loop());
  proxy.reply = 2;
  options.proxy = "socks5://" + proxy.authority();
  expect(outcome(options, std::string("localhost"), port), ProxyError::socks_not_allowed,
         ConnectStep::proxy);
  expect(outcome(options, std::string(256, 'x'), port), ProxyError::bad_host, ConnectStep::proxy);
  proxy.http_answer = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
  options.proxy = "http://" + proxy.authority();
  expect(outcome(options, std::string("localhost"), port), ProxyError::refused, ConnectStep::proxy);
  // The certificate of a proxy proves the name of the proxy.
  TunnelProxy secure_proxy(loop(), anywhere, contexts.server);
  options.proxy = "https://" + secure_proxy.authority();
  expect(outcome(options, std::string("localhost"), port),
         tls::ErrorCode::certificate_unknown_issuer, ConnectStep::proxy);
}

TEST_P(TlsConnect, the_time_limit_covers_everything) {
  TcpServer silent = silent_server();
  const std::uint16_t port = silent.endpoint().port();
  ConnectOptions options(contexts.client);
  options.timeout = 50ms;
  ConnectError late = outcome(options, std::string("localhost"), port);
  // On a busy machine, the time limit may expire before the handshake begins.
  for (int i = 0; i < 50 && late.step() != ConnectStep::tls; ++i)
    late = outcome(options, std::string("localhost"), port);
  expect(late, system_error(ETIMEDOUT), ConnectStep::tls);
  for (const std::string scheme : {"http", "https", "socks5"}) {
    options.proxy = scheme + "://" + silent.endpoint().to_string();
    options.proxy_tls = contexts.client;
    expect(outcome(options, std::string("localhost"), port), system_error(ETIMEDOUT),
           ConnectStep::proxy);
  }
  options.proxy = ProxyChoice();
  options.retry = {.attempts_max = 1000, .delay = 1h, .delay_max = 1h};
  expect(outcome(options, std::string("127.0.0.1:1")), system_error(ETIMEDOUT),
         ConnectStep::connect);
  EXPECT_TRUE(run_until([&] { return silent.connections() == 0; }));
}

TEST_P(TlsConnect, lost_handshakes_are_retried_and_wrong_certificates_are_not) {
  TcpServer closing = silent_server(true);
  ConnectOptions options(contexts.client);
  options.retry = {.attempts_max = 3, .delay = 1ms};
  const ConnectError lost = outcome(options, std::string("localhost"), closing.endpoint().port());
  EXPECT_TRUE(lost == tls::ErrorCode::truncated || lost == system_error(ECONNRESET))
      << lost.message();
  EXPECT_EQ(lost.step(), ConnectStep::tls);
  EXPECT_EQ(accepted, 3);
  options.retry.attempts_max = 0;
  EXPECT_TRUE(outcome(options, std::string("localhost"), closing.endpoint().port()));
  EXPECT_EQ(accepted, 4) << "at least one";
  TcpServer server = echo_server(contexts.server);
  options.retry.attempts_max = 3;
  options.tls_host = "other.test";
  EXPECT_EQ(outcome(options, std::string("localhost"), server.endpoint().port()),
            tls::ErrorCode::certificate_wrong_host);
  EXPECT_EQ(server.accepted(), 1U);
}

TEST_P(TlsConnect, ends_in_the_handshake_when_it_is_stopped) {
  TcpServer silent = silent_server();
  std::optional<ConnectError> error;
  TaskScope scope(loop());
  scope.spawn(
      [](std::uint16_t port, tls::ClientContext tls, std::optional<ConnectError>& into) -> Task<> {
        auto stream = co_await connect("localhost", port, tls);
        into = stream ? ConnectError() : stream.error();
      }(silent.endpoint().port(), contexts.client, error));
  EXPECT_TRUE(run_until([&] { return accepted == 1; }));
  scope.request_stop();
  EXPECT_TRUE(run_until([&] { return error.has_value(); }));
  expect(*error, system_error(ECANCELED), ConnectStep::tls);
}

TEST_P(TlsConnect, combines_with_timeout_and_or_throw) {
  TcpServer silent = silent_server();
  run([](std::uint16_t port, tls::ClientContext tls) -> Task<> {
    auto stream = co_await timeout(20ms, connect("localhost", port, tls));
    static_assert(std::is_same_v<decltype(stream), ConnectResult>);
    EXPECT_FALSE(stream);
    if (stream) co_return;
    EXPECT_EQ(stream.error(), system_error(ETIMEDOUT));
    EXPECT_EQ(stream.error().step(), ConnectStep::none);
    EXPECT_EQ(stream.error().describe(), system_error(ETIMEDOUT).message());
    EXPECT_THROW(or_throw(std::move(stream), "connecting"), std::system_error);
    auto plain = co_await connect("localhost", port);
    TcpStream tcp(or_throw(std::move(plain)));
    EXPECT_TRUE(tcp.is_open());
  }(silent.endpoint().port(), contexts.client));
}

TEST_P(TlsConnect, from_a_local_address) {
  TcpServer server = or_throw(TcpServer::listen(loop(), anywhere));
  std::string seen;
  server.serve([&](TcpStream stream) -> Task<> {
    seen = stream.peer_endpoint()->address();
    co_await test::echo(std::move(stream));
  });
  ConnectOptions options;
  options.local = or_throw(Endpoint::parse("127.0.0.2:0"));
  EXPECT_FALSE(outcome(options, std::string("127.0.0.1"), server.endpoint().port()));
  EXPECT_EQ(seen, "127.0.0.2");
  // Only the addresses of the same family are connected to.
  const std::vector both{Endpoint::loopback_v6(server.endpoint().port()), server.endpoint()};
  EXPECT_FALSE(outcome(options, both));
  expect(outcome(options, std::vector{both[0]}), system_error(EAFNOSUPPORT),
         ConnectStep::arguments);
  EXPECT_FALSE(outcome(options, std::string("localhost"), server.endpoint().port()));
  options.family = AddressFamily::v6;
  expect(outcome(options, std::string("localhost"), server.endpoint().port()),
         system_error(EAFNOSUPPORT), ConnectStep::arguments);
  options.family = AddressFamily::any;
  options.local = or_throw(Endpoint::parse("192.0.2.1:0"));
  expect(outcome(options, std::string("127.0.0.1"), server.endpoint().port()),
         system_error(EADDRNOTAVAIL), ConnectStep::connect);
}

TEST_P(TlsConnect, a_stream_client_over_tls_and_a_proxy) {
  TcpServer server = echo_server(contexts.server);
  TunnelProxy proxy(loop(), anywhere, contexts.server);
  ConnectOptions connecting(contexts.client);
  connecting.proxy = "https://localhost:" + proxy.authority().substr(10);
  connecting.proxy_tls = contexts.client;
  std::string received;
  StreamClient client(
      loop(), "localhost", server.endpoint().port(),
      {.on_connection = [](Connection& connection) { connection.send(std::string(9999, 'x')); },
       .on_message =
           [&](Connection&, Buffer& bytes) {
             received += bytes.to_string();
             bytes.clear();
           }},
      {.connect = connecting});
  client.start();
  EXPECT_TRUE(run_until([&] { return received.size() == 9999; }));
  ASSERT_NE(client.connection(), nullptr);
  ASSERT_NE(client.connection()->tls(), nullptr);
  EXPECT_EQ(client.connection()->tls()->server_name(), "localhost");
}

TEST_P(TlsConnect, failures_of_a_stream_client_name_their_step) {
  TcpServer server = echo_server(contexts.server);
  ConnectOptions connecting(contexts.client);
  connecting.tls_host = "other.test";
  std::vector<ConnectFailure> failures;
  StreamClient client(loop(), "localhost", server.endpoint().port(), {},
                      {.connect = connecting,
                       .retry = {.attempts_max = 2, .delay = 1ms},
                       .on_failure = [&](const ConnectFailure& one) { failures.push_back(one); }});
  client.start();
  EXPECT_TRUE(run_until([&] { return !client.is_started(); }));
  ASSERT_EQ(failures.size(), 2U);
  expect(failures[1].error, tls::ErrorCode::certificate_wrong_host, ConnectStep::tls);
}

TEST_P(TlsConnect, an_http_client_through_a_proxy_with_tls) {
  const auto answer = [](http::Request& request, http::Response& response) {
    response.send(std::string(request.head().target) + (request.connection().tls() ? " TLS" : ""));
  };
  http::ServerOptions with_tls;
  with_tls.listen.tls = contexts.server;
  auto origin = or_throw(http::Server::listen(loop(), anywhere, answer, with_tls));
  TunnelProxy proxy(loop(), anywhere, contexts.server);
  http::ClientOptions options;
  options.connect.tls = contexts.client;
  options.connect.proxy_tls = contexts.client;
  options.connect.proxy = "https://localhost:" + proxy.authority().substr(10);
  http::Client client(loop(), options);
  const std::string port = std::to_string(origin.endpoint().port());
  std::string text;
  const auto get = [&](std::string url) {
    run([](http::Client& by, std::string from, std::string& into) -> Task<> {
      auto response = co_await by.get(std::move(from));
      EXPECT_TRUE(response) << response.error().message();
      if (!response) co_return;
      into = or_throw(co_await response->read_text());
    }(client, std::move(url), text));
    return text;
  };
  EXPECT_EQ(get("https://localhost:" + port + "/a"), "/a TLS");
  EXPECT_EQ(get("https://localhost:" + port + "/b"), "/b TLS");
  EXPECT_EQ(proxy.log, "CONNECT localhost:" + port + " \n") << "one tunnel, TLS inside TLS";
  // The proxy forwards requests for http: here it is a server that answers them itself.
  options.connect.proxy = "https://localhost:" + port;
  client = http::Client(loop(), options);
  EXPECT_TRUE(get("http://origin.test/c").ends_with("/c TLS"));
}

}  // namespace
}  // namespace tambour::connect_test
