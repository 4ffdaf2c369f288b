// http::Client over TLS.
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/kept_connections.h"
#include "http/support/tunnel_proxy.h"
#include "support/on_every_backend.h"
#include "tls/support/certificates.h"

namespace tambour::https_client_test {
namespace {

using http::Client;
using http::Request;
using http::Response;

class HttpsClient : public test::OnEveryBackend {
 protected:
  /// Answers with whether the session was resumed.
  http::Server serve(const std::string& redirect_to = "") {
    http::ServerOptions options;
    options.listen.tls = contexts.server;
    return or_throw(http::Server::listen(
        loop(), Endpoint::loopback_v4(0),
        [redirect_to](Request& request, Response& response) -> Task<> {
          auto body = co_await request.body().read_all();
          if (!body) co_return;
          if (!redirect_to.empty()) {
            or_throw(response.headers().set("Location", redirect_to));
            response.send(http::Status::found);
          } else {
            const bool resumed = request.connection().tls()->is_resumed();
            response.send((resumed ? "resumed " : "full ") + body->to_string());
          }
        },
        options));
  }

  static std::string url_of(const http::Server& server, const std::string& host = "localhost") {
    return "https://" + host + ":" + std::to_string(server.endpoint().port()) + "/";
  }

  std::string got(Client& client, std::string url, std::string body = "") {
    std::string text;
    run([](Client& by, std::string to, std::string subject, std::string& into) -> Task<> {
      auto response =
          co_await by.send(http::ClientRequest(http::Method::put, std::move(to), Buffer(subject)));
      if (!response) {
        into = "error: " + response.error().message();
        co_return;
      }
      into = (co_await response->read_text()).value_or("error in body");
    }(client, std::move(url), std::move(body), text));
    return text;
  }

  test::Contexts contexts;
};

TAMBOUR_ON_EVERY_BACKEND(HttpsClient);

TEST_P(HttpsClient, requests_share_a_connection_and_new_ones_resume_the_session) {
  http::Server server = serve();
  Client client(loop(), {.connect = contexts.client});
  const std::string large(300'000, 'x');
  EXPECT_EQ(got(client, url_of(server), large), "full " + large);
  EXPECT_EQ(got(client, url_of(server), "a"), "full a");
  EXPECT_EQ(server.accepted(), 1U);
  client.close_idle_connections();
  EXPECT_EQ(got(client, url_of(server), "b"), "resumed b");
}

TEST_P(HttpsClient, the_server_must_prove_its_name) {
  tls::ServerOptions options;
  test::CertificateOptions of_another_host;
  of_another_host.names = {"DNS:example.org"};
  options.identities = {test::Contexts::authority().issue(of_another_host).identity()};
  contexts.server = or_throw(tls::ServerContext::create(options));
  http::Server server = serve();
  Client client(loop(), {.connect = contexts.client});
  EXPECT_EQ(got(client, url_of(server)),
            "error: " + make_error_code(tls::ErrorCode::certificate_wrong_host).message());
  Client of_the_system(loop());
  EXPECT_TRUE(got(of_the_system, url_of(server)).starts_with("error: "));
  EXPECT_EQ(of_the_system.connections(), 0U);
}

TEST_P(HttpsClient, a_redirect_to_a_url_without_tls_is_returned) {
  http::Server server = serve("http://localhost:1/");
  Client client(loop(), {.connect = contexts.client});
  EXPECT_EQ(got(client, url_of(server)), "");
}

TEST_P(HttpsClient, a_request_is_repeated_if_a_kept_connection_ends_without_close_notify) {
  int requests = 0;
  ListenOptions options;
  options.tls = contexts.server;
  TcpServer server = or_throw(TcpServer::listen(loop(), Endpoint::loopback_v4(0), options));
  server.serve([&requests](TcpStream stream) -> Task<> {
    Buffer in;
    for (int request = 1; request <= 2; ++request) {
      while (in.to_string().find("\r\n\r\n") == std::string::npos) {
        const auto read = co_await stream.read(in);
        if (!read || *read == 0) co_return;
      }
      in.clear();
      ++requests;
      if (request == 2) co_return;
      if (!co_await stream.write("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")) co_return;
    }
  });
  Client client(loop(), {.connect = contexts.client});
  const std::string url = "https://localhost:" + std::to_string(server.endpoint().port()) + "/";
  EXPECT_EQ(got(client, url), "x");
  EXPECT_EQ(got(client, url), "x");
  EXPECT_EQ(requests, 3);
}

TEST_P(HttpsClient, tunnels_of_proxies) {
  http::Server server = serve();
  test::TunnelProxy proxy(loop());
  const std::string port = ":" + std::to_string(server.endpoint().port());
  http::ClientOptions options;
  options.connect.tls = contexts.client;
  for (const std::string scheme : {"http", "socks5"}) {
    options.connect.proxy = scheme + "://user:password@" + proxy.authority();
    Client client(loop(), options);
    EXPECT_EQ(got(client, url_of(server), "a").back(), 'a');
    EXPECT_EQ(got(client, url_of(server), "b").back(), 'b');
  }
  EXPECT_EQ(proxy.log, "CONNECT localhost" + port + " Basic dXNlcjpwYXNzd29yZA==\nSOCKS localhost" +
                           port + " \n")
      << "one tunnel for both requests";
  EXPECT_EQ(server.accepted(), 2U);
  // The server proves its own name, and not that of the proxy.
  proxy.host = "localhost";
  options.connect.proxy = "http://" + proxy.authority();
  Client client(loop(), options);
  EXPECT_EQ(got(client, url_of(server, "other.test")),
            "error: " + make_error_code(tls::ErrorCode::certificate_wrong_host).message());
}

/// RFC 7301, section 3.2: what was negotiated is what must be spoken.
TEST_P(HttpsClient, a_protocol_of_alpn_that_is_not_spoken_fails) {
  for (const auto& [protocol, error] :
       {std::pair<std::string, http::ErrorCode>("h2", http::ErrorCode::negotiated_http_2),
        {"dot", http::ErrorCode::negotiated_other_protocol},
        {"http/1.1", {}}}) {
    tls::ServerOptions server_options;
    server_options.alpn = {protocol};
    server_options.identities = {
        test::Contexts::authority().issue({.names = {"DNS:localhost"}}).identity()};
    ListenOptions listening;
    listening.tls = or_throw(tls::ServerContext::create(server_options));
    test::KeptConnections server(loop(), listening);
    tls::ClientOptions client_options;
    client_options.alpn = {"h2", "dot", "http/1.1"};
    client_options.authorities = test::Contexts::authority().pem();
    Client client(loop(), {.connect = or_throw(tls::ClientContext::create(client_options))});
    const std::string text = got(client, server.url("https"));
    if (protocol == "http/1.1") {
      EXPECT_EQ(text, "0");
    } else {
      EXPECT_EQ(text, "error: " + make_error_code(error).message());
      EXPECT_EQ(client.connections(), 0U);
    }
  }
  EXPECT_NE(make_error_code(http::ErrorCode::negotiated_http_2).message().find("\"h2\""),
            std::string::npos);
}

/// Records, close_notify and the end of the socket that no iteration of the loop has noticed.
TEST_P(HttpsClient, a_kept_connection_on_which_something_has_arrived_is_not_used) {
  enum class Change : std::uint8_t { none, data, close_notify, end };
  for (const Change change : {Change::none, Change::data, Change::close_notify, Change::end}) {
    ListenOptions listening;
    listening.tls = contexts.server;
    test::KeptConnections server(loop(), listening);
    Client client(loop(), {.connect = contexts.client});
    std::string texts;
    run([](Client& by, test::KeptConnections& at, Change subject, std::string& into) -> Task<> {
      const auto post = [](Client& with, std::string url) -> Task<std::string> {
        auto response = co_await with.send(http::ClientRequest(http::Method::post, std::move(url)));
        if (!response) co_return "error: " + response.error().message();
        co_return (co_await response->read_text()).value_or("error in body");
      };
      into = co_await post(by, at.url("https"));
      if (subject == Change::data) {
        const auto sent = co_await at.stream(0).write("HTTP/1.1 200 OK\r\n\r\nevil");
        EXPECT_TRUE(sent);
      } else if (subject == Change::close_notify) {
        const auto ended = co_await at.stream(0).shutdown_write();
        EXPECT_TRUE(ended);
      } else if (subject == Change::end) {
        EXPECT_EQ(::shutdown(at.stream(0).fd(), SHUT_WR), 0);
      }
      into += " " + co_await post(by, at.url("https"));
    }(client, server, change, texts));
    EXPECT_EQ(texts, change == Change::none ? "0 0" : "0 1") << static_cast<int>(change);
  }
}

}  // namespace
}  // namespace tambour::https_client_test
