// http::Server with contexts that offer protocols with ALPN: only those that it speaks. These
// servers do not speak HTTP/2; those that do are tested in http2_peers_test.cpp.
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "tls/support/certificates.h"

namespace tambour::https_alpn_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::Response;
using test::Contexts;

tls::ServerOptions server_options(std::vector<std::string> protocols) {
  tls::ServerOptions options;
  options.alpn = std::move(protocols);
  options.identities = {Contexts::localhost().identity()};
  return options;
}

http::ServerOptions with(const tls::ServerContext& context) {
  http::ServerOptions options;
  options.listen.tls = context;
  options.http_2.is_enabled = false;
  return options;
}

/// An open listener.
UniqueFd listener(EventLoop& loop) {
  const TcpServer server = TcpServer::listen(loop, Endpoint::loopback_v4(0)).value();
  return UniqueFd(::dup(server.fd()));
}

class HttpsAlpn : public test::OnEveryBackend {
 protected:
  /// The answer to a request of a client that supports these protocols; "closed" if the connection
  /// ends without one.
  std::string answer(const Endpoint& to, std::vector<std::string> protocols) {
    tls::ClientOptions options;
    options.authorities = Contexts::authority().pem();
    options.alpn = std::move(protocols);
    options.sessions_max = 0;
    std::string text;
    run([](Endpoint at, tls::ClientContext tls, std::string& into) -> Task<> {
      auto stream = or_throw(co_await connect("localhost", at.port(), std::move(tls)));
      static_cast<void>(
          co_await stream.write("GET / HTTP/1.1\r\nHost: a\r\n"
                                "Connection: close\r\n\r\n"));
      Buffer received;
      for (;;) {
        const auto got = co_await stream.read(received);
        if (!got || *got == 0) break;
      }
      const std::string all = received.to_string();
      const std::size_t end = all.find("\r\n\r\n");
      into = end == std::string::npos ? "closed" : all.substr(end + 4);
    }(to, or_throw(tls::ClientContext::create(std::move(options))), text));
    return text;
  }
};

TAMBOUR_ON_EVERY_BACKEND(HttpsAlpn);

void answer_with_alpn(Request& request, Response& response) {
  response.send("alpn " + std::string(request.connection().tls()->alpn()));
}

TEST_P(HttpsAlpn, contexts_that_offer_other_protocols_are_rejected) {
  LoopGroup group({.threads = 2});
  const Endpoint at = Endpoint::loopback_v4(0);
  for (const auto& [protocols, error] :
       {std::pair<std::vector<std::string>, Error>{{}, {}},
        {{"http/1.1"}, {}},
        {{"http/1.1", "http/1.0"}, {}},
        {{"h2"}, http::ErrorCode::offered_http_2},
        {{"h2", "http/1.1"}, http::ErrorCode::offered_http_2},
        {{"http/1.1", "h2"}, http::ErrorCode::offered_http_2},
        {{"http/1.1", "dot"}, http::ErrorCode::offered_other_protocol},
        {{"h3"}, http::ErrorCode::offered_other_protocol},
        {{"HTTP/1.1"}, http::ErrorCode::offered_other_protocol},
        {{"http/1.1 "}, http::ErrorCode::offered_other_protocol}}) {
    const auto options = with(or_throw(tls::ServerContext::create(server_options(protocols))));
    EXPECT_EQ(options.listen.tls.alpn(), protocols);
    const auto expect = [&](const auto& server) {
      EXPECT_EQ(server ? Error() : server.error(), error) << testing::PrintToString(protocols);
    };
    expect(http::Server::listen(loop(), at, answer_with_alpn, options));
    expect(http::Server::adopt(loop(), listener(loop()), answer_with_alpn, options));
    expect(http::ServerGroup::listen(group, at, answer_with_alpn, options));
    std::vector<UniqueFd> listeners;
    listeners.push_back(listener(loop()));
    auto on_first = options;
    on_first.listen.placement = Placement::round_robin;
    expect(http::ServerGroup::adopt(group, std::move(listeners), answer_with_alpn, on_first));
  }
  for (const http::ErrorCode error :
       {http::ErrorCode::offered_http_2, http::ErrorCode::negotiated_http_2}) {
    EXPECT_NE(make_error_code(error).message().find("\"h2\""), std::string::npos);
  }
}

TEST_P(HttpsAlpn, connections_with_a_protocol_that_a_reload_has_added_are_rejected) {
  const auto context = or_throw(tls::ServerContext::create(server_options({"http/1.1"})));
  std::vector<Error> rejected;
  auto options = with(context);
  options.listen.on_rejected = [&](SocketStream& stream, Error error) {
    EXPECT_TRUE(stream.is_open());
    rejected.push_back(error);
  };
  auto server =
      or_throw(http::Server::listen(loop(), Endpoint::loopback_v4(0), answer_with_alpn, options));
  EXPECT_EQ(answer(server.endpoint(), {"h2", "http/1.1"}), "alpn http/1.1");
  ASSERT_TRUE(context.reload(server_options({"h2", "dot", "http/1.1"})));
  EXPECT_EQ(answer(server.endpoint(), {"h2", "http/1.1"}), "closed");
  EXPECT_EQ(answer(server.endpoint(), {"http/1.1", "dot"}), "closed");
  EXPECT_EQ(rejected, (std::vector<Error>{http::ErrorCode::negotiated_http_2,
                                          http::ErrorCode::negotiated_other_protocol}));
  EXPECT_EQ(answer(server.endpoint(), {"http/1.1"}), "alpn http/1.1");
  EXPECT_EQ(answer(server.endpoint(), {}), "alpn ");
  EXPECT_EQ(rejected.size(), 2U);
  EXPECT_TRUE(run_until([&] { return server.connections() == 0; }));
}

TEST_P(HttpsAlpn, groups_reject_them_on_all_loops) {
  LoopGroup group({.threads = 2});
  const auto context = or_throw(tls::ServerContext::create(server_options({"http/1.1"})));
  std::atomic<int> rejected = 0;
  auto options = with(context);
  options.listen.placement = Placement::round_robin;
  options.listen.on_rejected = [&](SocketStream&, Error error) {
    if (error == http::ErrorCode::negotiated_http_2) ++rejected;
  };
  auto server = or_throw(
      http::ServerGroup::listen(group, Endpoint::loopback_v4(0), answer_with_alpn, options));
  ASSERT_TRUE(context.reload(server_options({"h2", "http/1.1"})));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(answer(server.endpoint(), {"h2"}), "closed");
  }
  EXPECT_EQ(answer(server.endpoint(), {"http/1.1"}), "alpn http/1.1");
  EXPECT_TRUE(eventually([&] { return rejected == 4; }));
}

TEST_P(HttpsAlpn, on_rejected_may_destroy_the_server) {
  const auto context = or_throw(tls::ServerContext::create(server_options({"http/1.1"})));
  std::unique_ptr<http::Server> server;
  auto options = with(context);
  options.listen.on_rejected = [&](SocketStream&, Error) { server.reset(); };
  server = std::make_unique<http::Server>(
      or_throw(http::Server::listen(loop(), Endpoint::loopback_v4(0), answer_with_alpn, options)));
  const Endpoint at = server->endpoint();
  ASSERT_TRUE(context.reload(server_options({"h2"})));
  EXPECT_EQ(answer(at, {"h2"}), "closed");
  EXPECT_EQ(server, nullptr);
}

Task<> start_early(Endpoint at, tls::ClientContext tls) {
  auto stream = or_throw(co_await TcpStream::connect(at));
  const auto done = co_await tls::connect(stream, tls, "localhost",
                                          tls::Replayable("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  if (!done) co_return;
  Buffer received;
  for (;;) {
    const auto got = co_await stream.read(received);
    if (!got || *got == 0) co_return;
  }
}

/// The protocol is that of a session of another server on the same port.
TEST_P(HttpsAlpn, early_requests_of_other_protocols_reach_no_handler) {
  auto early = server_options({"h2"});
  early.early_data_bytes_max = 1000;
  auto options = with(or_throw(tls::ServerContext::create(early)));
  const tls::ServerContext& context = options.listen.tls;
  tls::ClientOptions client_options;
  client_options.authorities = Contexts::authority().pem();
  client_options.alpn = {"h2"};
  const auto client = or_throw(tls::ClientContext::create(client_options));
  auto other = TcpServer::listen(loop(), Endpoint::loopback_v4(0), options.listen).value();
  other.serve([](TcpStream stream) -> Task<> {
    const auto ended = co_await stream.shutdown_write();
    EXPECT_TRUE(ended);
  });
  UniqueFd listening(::dup(other.fd()));
  run(start_early(other.endpoint(), client));
  other.stop();

  early.alpn = {"http/1.1"};
  ASSERT_TRUE(context.reload(early));
  std::vector<Error> rejected;
  std::size_t requests = 0;
  options.listen.tls_early_data = true;
  options.listen.on_rejected = [&](SocketStream& stream, Error error) {
    EXPECT_FALSE(stream.tls()->is_handshake_complete());
    rejected.push_back(error);
  };
  auto server = or_throw(http::Server::adopt(
      loop(), std::move(listening),
      [&](Request&, Response& response) {
        ++requests;
        response.send("hello");
      },
      options));
  early.alpn = {"h2"};
  ASSERT_TRUE(context.reload(early));
  run(start_early(server.endpoint(), client));
  EXPECT_EQ(rejected, std::vector<Error>{http::ErrorCode::negotiated_http_2});
  EXPECT_EQ(requests, 0U);
}

}  // namespace
}  // namespace tambour::https_alpn_test
