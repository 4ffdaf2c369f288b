// http::Server over TLS.
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "tls/support/certificates.h"

namespace tambour::https_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::Response;

class Https : public test::OnEveryBackend {
 protected:
  bool notices_the_end_behind(std::size_t request_bytes);
};

TAMBOUR_ON_EVERY_BACKEND(Https);

Task<> ask(Endpoint to, tls::ClientContext tls, std::string& received) {
  auto stream = co_await connect("localhost", to.port(), std::move(tls));
  EXPECT_TRUE(stream);
  if (!stream) co_return;
  const std::string body(100'000, 'x');
  EXPECT_TRUE(co_await stream->write(
      "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n" + body));
  Buffer in;
  for (;;) {
    const auto got = co_await stream->read(in);
    // The end is close_notify, and not only that of the connection.
    EXPECT_TRUE(got);
    if (!got || *got == 0) break;
  }
  received = in.to_string();
}

TEST_P(Https, handlers_do_not_see_the_difference) {
  const test::Contexts contexts;
  http::ServerOptions options;
  options.listen.tls = contexts.server;
  http::Router router;
  router.use(http::strict_transport_security({.max_age = 60s, .include_subdomains = true}));
  router.post("/", [](Request& request, Response& response) -> Task<> {
    EXPECT_NE(request.connection().tls(), nullptr);
    auto body = co_await request.body().read_all();
    EXPECT_TRUE(body);
    response.send(std::move(*body));
  });
  auto server =
      http::Server::listen(loop(), Endpoint::loopback_v4(0), std::move(router).handler(), options);
  ASSERT_TRUE(server);
  std::string received;
  run(ask(server->endpoint(), contexts.client, received));
  EXPECT_TRUE(received.starts_with("HTTP/1.1 200 OK\r\n")) << received.substr(0, 200);
  EXPECT_NE(received.find("\r\nStrict-Transport-Security: max-age=60; includeSubDomains\r\n"),
            std::string::npos);
  EXPECT_TRUE(received.ends_with("\r\n\r\n" + std::string(100'000, 'x')));
  run([](http::Server& local) -> Task<> { co_await local.shut_down(1min); }(*server));
}

Task<> leave(Endpoint to, tls::ClientContext tls, std::size_t request_bytes,
             const bool& is_waiting) {
  auto stream = co_await connect("localhost", to.port(), std::move(tls));
  EXPECT_TRUE(stream);
  if (!stream) co_return;
  std::string requests;
  do requests += "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  while (requests.size() < request_bytes);
  EXPECT_TRUE(co_await stream->write(std::string_view(requests)));
  do static_cast<void>(co_await sleep_for(10ms));
  while (!is_waiting);
  stream->close();
}

/// Returns true if a handler that waits has noticed that its client has gone.
bool Https::notices_the_end_behind(std::size_t request_bytes) {
  const test::Contexts contexts;
  http::ServerOptions options;
  options.listen.tls = contexts.server;
  bool is_waiting = false;
  bool is_cancelled = false;
  auto server = or_throw(http::Server::listen(
      loop(), Endpoint::loopback_v4(0),
      [&](Request& request, Response&) -> Task<> {
        is_waiting = true;
        co_await request.while_connected([](bool& cancelled) -> Task<> {
          const Result<> slept = co_await sleep_for(1h);
          cancelled = !slept;
        }(is_cancelled));
      },
      options));
  run(leave(server.endpoint(), contexts.client, request_bytes, is_waiting));
  EXPECT_TRUE(run_until([&] { return server.connections() == 0; }));
  return is_cancelled;
}

TEST_P(Https, a_handler_that_waits_notices_that_its_client_has_gone) {
  EXPECT_TRUE(notices_the_end_behind(1));
}

/// The server reads only a part of them ahead.
TEST_P(Https, a_handler_that_waits_notices_it_behind_many_requests) {
  if (!traits().reports_peer_closed) GTEST_SKIP() << "select(2) cannot report it";
  EXPECT_TRUE(notices_the_end_behind(200'000));
}

}  // namespace
}  // namespace tambour::https_test
