// http::Client over TLS.
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/kept_connections.h"
#include "http/support/tunnel_proxy.h"
#include "http_message/h2/frame_parser.h"
#include "http_message/h2/frame_writer.h"
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
       {std::pair<std::string, http::ErrorCode>("dot", http::ErrorCode::negotiated_other_protocol),
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

/// Contexts of a server with these protocols, and of a client that offers HTTP/2 and HTTP/1.1.
test::Contexts with_alpn(std::vector<std::string> protocols) {
  tls::ServerOptions for_server;
  for_server.alpn = std::move(protocols);
  tls::ClientOptions for_client;
  for_client.alpn = {"h2", "http/1.1"};
  return {std::move(for_server), std::move(for_client)};
}

/// The version of the response, "upgraded", or an error.
Task<std::string> version_of(Client& client, std::string url, std::string protocol = "") {
  if (!protocol.empty()) {
    auto upgraded = co_await client.upgrade(http::ClientRequest(url), protocol);
    if (!upgraded) co_return upgraded.error().message();
    co_return upgraded->stream.is_open() ? "upgraded" : "refused";
  }
  auto response = co_await client.get(url);
  if (!response) co_return response.error().message();
  const auto text = co_await response->read_text();
  if (!text) co_return text.error().message();
  co_return response->head().version == http::Version::http_2 ? "2" : "1";
}

TEST_P(HttpsClient, alpn_and_the_options_choose_the_version) {
  using Choice = http::VersionChoice;
  const std::string refused = make_error_code(http::ErrorCode::http_2_not_negotiated).message();
  struct Case {
    std::vector<std::string> protocols;  ///< Of the server.
    Choice choice;
    std::string expected;
  };
  for (const Case& example :
       {Case{{"h2", "http/1.1"}, Choice::negotiated, "2"},
        Case{{"http/1.1"}, Choice::negotiated, "1"}, Case{{}, Choice::negotiated, "1"},
        Case{{"h2", "http/1.1"}, Choice::http_1, "1"},
        Case{{"h2", "http/1.1"}, Choice::http_2, "2"}, Case{{}, Choice::http_2, refused}}) {
    contexts = with_alpn(example.protocols);
    http::Server server = serve();
    http::ClientOptions options{.connect = contexts.client};
    options.version = example.choice;
    Client client(loop(), std::move(options));
    std::string text;
    run([](Client& by, std::string to, std::string& into) -> Task<> {
      into = co_await version_of(by, std::move(to));
    }(client, url_of(server), text));
    EXPECT_EQ(text, example.expected)
        << example.protocols.size() << static_cast<int>(example.choice);
  }
}

TEST_P(HttpsClient, upgrades_use_http_1_whatever_the_context_and_the_options_offer) {
  contexts = with_alpn({"h2", "http/1.1"});
  http::ServerOptions options;
  options.listen.tls = contexts.server;
  http::Server server = or_throw(http::Server::listen(
      loop(), Endpoint::loopback_v4(0),
      [](Request& request, Response& response) -> Task<> {
        if (!request.headers().contains("Upgrade")) {
          response.send("plain");
          co_return;
        }
        response.set_status(http::Status::switching_protocols);
        or_throw(response.headers().set("Upgrade", "echo"));
        auto stream = co_await response.upgrade();
        if (stream) static_cast<void>(co_await stream->shutdown_write());
      },
      options));
  for (const auto choice : {http::VersionChoice::negotiated, http::VersionChoice::http_2}) {
    http::ClientOptions client_options{.connect = contexts.client};
    client_options.version = choice;
    Client client(loop(), std::move(client_options));
    std::string text;
    run([](Client& by, std::string to, std::string& into) -> Task<> {
      into = co_await version_of(by, to);
      into += " " + co_await version_of(by, to, "echo");
      into += " " + co_await version_of(by, to);
    }(client, url_of(server), text));
    EXPECT_EQ(text, "2 upgraded 2") << static_cast<int>(choice);
    EXPECT_EQ(client.http_2_stats().connections, 1U);
  }
}

/// Both requests and a stream of an extended CONNECT use one tunnel of the proxy.
TEST_P(HttpsClient, tunnels_of_proxies_transfer_http_2) {
  contexts = with_alpn({"h2", "http/1.1"});
  http::ServerOptions of_server;
  of_server.listen.tls = contexts.server;
  http::Server server = or_throw(http::Server::listen(
      loop(), Endpoint::loopback_v4(0),
      [](Request& request, Response& response) -> Task<> {
        if (request.method() != http::Method::connect) {
          response.send("plain");
          co_return;
        }
        auto stream = co_await response.upgrade();
        if (stream) static_cast<void>(co_await stream->shutdown_write());
      },
      of_server));
  test::TunnelProxy proxy(loop());
  for (const std::string scheme : {"http", "socks5"}) {
    http::ClientOptions options{.connect = contexts.client};
    options.connect.proxy = scheme + "://" + proxy.authority();
    Client client(loop(), options);
    std::string text;
    run([](Client& by, std::string to, std::string& into) -> Task<> {
      into = co_await version_of(by, to);
      into += " " + co_await version_of(by, to);
      const auto opened = co_await by.extended_connect(http::ClientRequest(to), "echo");
      into += opened && opened->stream.is_open() ? " opened" : " failed";
    }(client, url_of(server), text));
    EXPECT_EQ(text, "2 2 opened");
    EXPECT_EQ(client.http_2_stats().connections, 1U);
  }
  EXPECT_EQ(server.accepted(), 2U);
}

/// Refuses requests over HTTP/2 with HTTP_1_1_REQUIRED, and answers those over HTTP/1.
Task<> require_http_1(TcpStream stream, int& connections) {
  namespace h2 = http::detail::h2;
  ++connections;
  Buffer in;
  Buffer out;
  h2::FrameParser parser(h2::FrameParser::Role::server);
  const bool is_http_2 = stream.tls()->alpn() == "h2";
  if (is_http_2) h2::append_settings(out, {});
  for (;;) {
    const auto got = co_await stream.read(in);
    if (!got || *got == 0) co_return;
    if (!is_http_2 && in.find("\r\n\r\n")) {
      in.clear();
      out.append("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
    h2::Frame frame;
    while (is_http_2) {
      const auto parsed = parser.next(in, frame);
      if (!parsed || !*parsed) break;
      if (frame.kind == h2::FrameKind::headers)
        h2::append_rst_stream(out, frame.stream_id, h2::ErrorCode::http_1_1_required);
    }
    const Result<> written = co_await stream.write(out);
    if (!written) co_return;
    out.clear();
  }
}

TEST_P(HttpsClient, a_server_that_requires_http_1_gets_it) {
  contexts = with_alpn({"h2", "http/1.1"});
  ListenOptions listening;
  listening.tls = contexts.server;
  TcpServer server = or_throw(TcpServer::listen(loop(), Endpoint::loopback_v4(0), listening));
  int connections = 0;
  server.serve([&](TcpStream stream) { return require_http_1(std::move(stream), connections); });
  const std::string url = "https://localhost:" + std::to_string(server.endpoint().port()) + "/";
  std::string text;
  {
    Client client(loop(), {.connect = contexts.client});
    run([](Client& by, std::string to, std::string& into) -> Task<> {
      into = co_await version_of(by, to);
      into += " " + co_await version_of(by, to);
    }(client, url, text));
  }
  EXPECT_EQ(text, "1 1");
  EXPECT_EQ(connections, 2);  // The client remembers it.
  http::ClientOptions options{.connect = contexts.client};
  options.version = http::VersionChoice::http_2;
  Client client(loop(), std::move(options));
  run([](Client& by, std::string to, std::string& into) -> Task<> {
    into = co_await version_of(by, to);
  }(client, url, text));
  EXPECT_EQ(text, make_error_code(http::ErrorCode::http_1_required).message());
}

}  // namespace
}  // namespace tambour::https_client_test
