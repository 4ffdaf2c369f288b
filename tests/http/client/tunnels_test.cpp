// Client::upgrade(), extended_connect() and open_tunnel(), and the result of
// Request::while_connected().
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "tls/support/certificates.h"

namespace tambour::tunnels_test {
namespace {

using http::Client;
using http::ClientRequest;
using http::Request;
using http::Response;
using http::Status;

class HttpClientTunnels : public test::OnEveryBackend {
 protected:
  /// Answers what arrives with the same bytes, until the peer has ended.
  static Task<> echo(ByteStream stream) {
    for (;;) {
      Buffer bytes;
      const auto got = co_await stream.read(bytes);
      if (!got) co_return;
      if (*got == 0) co_return static_cast<void>(co_await stream.shutdown_write());
      const auto sent = co_await stream.write(bytes);
      if (!sent) co_return;
    }
  }
  static Task<> answer(Request& request, Response& response) {
    if (request.path() == "/moved" || request.path() == "/see") {
      or_throw(response.headers().set("Location", "/echo"));
      response.send(request.path() == "/see" ? Status::see_other : Status::found);
    } else if (request.path() == "/no") {
      response.send(Status::forbidden, "not here");
    } else if (request.path() == "/plain") {
      response.send("plain");
    } else {
      or_throw(response.headers().set("Upgrade", "echo"));
      or_throw(response.headers().set("X-Asked", request.head().protocol + " " +
                                                     request.head().target + " " +
                                                     request.headers().joined("X-Field")));
      auto stream = co_await response.upgrade();
      if (!stream) co_return;
      if (request.path() != "/closed") co_return co_await echo(std::move(*stream));
      static_cast<void>(co_await stream->shutdown_write());
    }
  }
  http::Server serve(http::ServerOptions options = {}) {
    return or_throw(
        http::Server::listen(loop(), Endpoint::loopback_v4(0), answer, std::move(options)));
  }
  static http::ClientOptions over_http_2() {
    http::ClientOptions options;
    options.version = http::VersionChoice::http_2;
    return options;
  }
  /// What the stream returns for "hello".
  static Task<std::string> hello(ByteStream& stream) {
    const auto sent = co_await stream.write(std::string_view("hello"));
    if (!sent) co_return sent.error().message();
    Buffer bytes;
    while (bytes.size() < 5) {
      const auto got = co_await stream.read(bytes);
      if (!got) co_return got.error().message();
      if (*got == 0) break;
    }
    co_return bytes.to_string();
  }
  static Task<std::string> hello_of(Result<http::UpgradedResponse>& opened) {
    if (!opened) co_return opened.error().message();
    co_return co_await hello(opened->stream);
  }
  static Task<std::string> text_of(Client& client, std::string url) {
    auto response = co_await client.get(std::move(url));
    if (!response) co_return response.error().message();
    const auto text = co_await response->read_text();
    co_return text ? *text : text.error().message();
  }
};

TAMBOUR_ON_EVERY_BACKEND(HttpClientTunnels);

TEST_P(HttpClientTunnels, upgrades) {
  http::Server server = serve();
  std::vector<std::string> outcomes;
  run([](EventLoop& loop, std::string url, std::vector<std::string>& into) -> Task<> {
    Client client(loop);
    for (const char* const path : {"/echo", "/moved", "/no"}) {
      auto upgraded = co_await client.upgrade(ClientRequest(url + path), "echo");
      if (!upgraded) {
        into.push_back(upgraded.error().message());
        continue;
      }
      std::string text = std::to_string(http::code_of(upgraded->response.status())) + " ";
      if (upgraded->stream.is_open()) {
        text += co_await hello(upgraded->stream);
      } else {
        text += (co_await upgraded->response.read_text()).value_or("error");
      }
      into.push_back(text);
    }
    auto wrong = co_await client.upgrade(ClientRequest(url), "a\nb");
    into.push_back(wrong ? "sent" : wrong.error().message());
  }(loop(), "http://" + server.endpoint().to_string(), outcomes));
  EXPECT_EQ(outcomes, (std::vector<std::string>{
                          "101 hello", "101 hello", "403 not here",
                          make_error_code(http::ErrorCode::bad_field_value).message()}));
}

/// The status, what the server was asked for, and what the stream or the response returns.
Task<std::string> extended(Client& client, ClientRequest request, std::string protocol = "echo") {
  auto opened = co_await client.extended_connect(std::move(request), std::move(protocol));
  if (!opened) co_return opened.error().message();
  std::string text = std::to_string(http::code_of(opened->response.status())) + " ";
  if (!opened->stream.is_open())
    co_return text + (co_await opened->response.read_text()).value_or("error");
  text += opened->response.headers().joined("X-Asked") + " ";
  const auto sent = co_await opened->stream.write(std::string_view("hello"));
  if (!sent) co_return text + sent.error().message();
  const auto ended = co_await opened->stream.shutdown_write();
  if (!ended) co_return text + ended.error().message();
  Buffer bytes;
  for (;;) {
    const auto got = co_await opened->stream.read(bytes);
    if (!got) co_return text + got.error().message();
    if (*got == 0) co_return text + bytes.to_string();
  }
}

TEST_P(HttpClientTunnels, extended_connect_opens_streams_beside_requests) {
  http::Server server = serve();
  std::vector<std::string> outcomes;
  run([](EventLoop& loop, std::string url, std::vector<std::string>& into) -> Task<> {
    Client client(loop, over_http_2());
    ClientRequest request(http::Method::post, url + "/echo?q", Buffer("not sent"));
    or_throw(request.fields.set("X-Field", "value"));
    into.push_back(co_await extended(client, std::move(request)));
    auto open = co_await client.extended_connect(ClientRequest(url + "/echo"), "echo");
    into.push_back(co_await hello_of(open));
    for (const char* const path : {"/moved", "/see", "/no"})
      into.push_back(co_await extended(client, ClientRequest(url + path)));
    into.push_back(co_await extended(client, ClientRequest(url), "a\nb"));
    into.push_back(co_await extended(client, ClientRequest(url), ""));
    EXPECT_EQ(client.connections(), 1U);
    EXPECT_EQ(client.http_2_stats().streams_cancelled, 0U);
    if (open) open->stream.close();
    EXPECT_EQ(client.http_2_stats().streams_cancelled, 1U);
  }(loop(), "http://" + server.endpoint().to_string(), outcomes));
  const std::string bad = make_error_code(http::ErrorCode::bad_field_value).message();
  EXPECT_EQ(outcomes, (std::vector<std::string>{"200 echo /echo?q value hello", "hello",
                                                "200 echo /echo hello", "200 echo /echo hello",
                                                "403 not here", bad, bad}));
}

TEST_P(HttpClientTunnels, streams_accept_without_waiting_what_can_be_sent_next) {
  http::Server server = serve();
  run([](EventLoop& loop, std::string url) -> Task<> {
    Client client(loop, over_http_2());
    auto opened = co_await client.extended_connect(ClientRequest(url + "/echo"), "echo");
    EXPECT_TRUE(opened) << opened.error().message();
    if (!opened) co_return;
    ByteStream& stream = opened->stream;
    const std::string text = std::string(40'000, 'x') + "end";
    std::string received;
    for (int i = 0; i < 20; ++i) {
      Buffer sent(text);
      const Result<> accepted = stream.try_write(sent);
      EXPECT_TRUE(accepted) << accepted.error().message();
      EXPECT_TRUE(sent.empty());
      // What waits already is sent first.
      Buffer more(std::string(70'000, 'y'));
      EXPECT_EQ(stream.try_write(more).error(), system_error(EAGAIN));
      EXPECT_EQ(more.size(), 70'000);
      Buffer bytes;
      while (bytes.size() < text.size()) {
        const auto got = co_await stream.read(bytes);
        EXPECT_TRUE(got && *got > 0);
        if (!got || *got == 0) co_return;
      }
      EXPECT_TRUE(bytes.to_string() == text);
    }
    EXPECT_TRUE(co_await stream.shutdown_write());
    Buffer late("late");
    EXPECT_EQ(stream.try_write(late).error(), system_error(EPIPE));
    stream.close();
    EXPECT_EQ(stream.try_write(late).error(), system_error(EBADF));
  }(loop(), "http://" + server.endpoint().to_string()));
}

TEST_P(HttpClientTunnels, a_stream_that_the_server_has_ended_is_open) {
  http::Server server = serve();
  std::string text;
  run([](EventLoop& loop, std::string url, std::string& into) -> Task<> {
    Client client(loop, over_http_2());
    auto opened = co_await client.extended_connect(ClientRequest(url + "/closed"), "echo");
    if (!opened) co_return static_cast<void>(into = opened.error().message());
    Buffer bytes;
    const auto got = co_await opened->stream.read(bytes);
    into = got ? std::to_string(*got) : got.error().message();
  }(loop(), "http://" + server.endpoint().to_string(), text));
  EXPECT_EQ(text, "0");
}

/// The caller then calls upgrade(), which uses the connection that was negotiated.
TEST_P(HttpClientTunnels, extended_connect_fails_without_http_2_before_a_request) {
  const std::string failure = make_error_code(http::ErrorCode::no_extended_connect).message();
  tls::ServerOptions for_server;
  for_server.alpn = {"http/1.1"};
  tls::ClientOptions for_client;
  for_client.alpn = {"h2", "http/1.1"};
  const test::Contexts contexts(std::move(for_server), std::move(for_client));
  http::ServerOptions options;
  options.listen.tls = contexts.server;
  http::Server secure = serve(std::move(options));
  http::Server clear = serve();
  std::vector<std::string> outcomes;
  run([](Client client, std::string url, std::string clear_url,
         std::vector<std::string>& into) -> Task<> {
    into.push_back(co_await extended(client, ClientRequest(clear_url)));
    EXPECT_EQ(client.connections(), 0U);
    into.push_back(co_await extended(client, ClientRequest(url)));
    EXPECT_EQ(client.idle_connections(), 1U);
    auto upgraded = co_await client.upgrade(ClientRequest(url + "/echo"), "echo");
    into.push_back(co_await hello_of(upgraded));
  }(Client(loop(), {.connect = contexts.client}),
                                         "https://localhost:" +
                                             std::to_string(secure.endpoint().port()),
                                         "http://" + clear.endpoint().to_string(), outcomes));
  EXPECT_EQ(outcomes, (std::vector<std::string>{failure, failure, "hello"}));
  EXPECT_EQ(secure.accepted(), 1U);
  EXPECT_EQ(clear.accepted(), 0U);
}

TEST_P(HttpClientTunnels, extended_connect_is_cancelled_at_every_await) {
  http::Server server = serve();
  const std::string url = "http://" + server.endpoint().to_string();
  const std::string expected = "200 echo /echo hello";
  for (const bool destroys : {false, true}) {
    bool has_ended = false;
    for (int iterations = 0; !has_ended && !HasFailure(); ++iterations) {
      SCOPED_TRACE(testing::Message() << iterations << " iterations, destroys: " << destroys);
      Client client(loop(), over_http_2());
      std::string outcome;
      const auto task = [](Client& http_client, std::string to, std::string& into) -> Task<> {
        into = co_await extended(http_client, ClientRequest(std::move(to)));
      };
      std::optional<TaskScope> scope(std::in_place, loop());
      scope->spawn(task(client, url + "/echo", outcome));
      for (int i = 0; i < iterations && outcome.empty(); ++i) loop().run_once();
      has_ended = !outcome.empty();
      scope->request_stop();
      if (destroys) scope.reset();
      while (!destroys && outcome.empty()) loop().run_once();
      if (has_ended) {
        EXPECT_GE(iterations, 3) << "the stream is awaited";
      } else if (!destroys) {
        EXPECT_TRUE(outcome == expected || outcome.ends_with(system_error(ECANCELED).message()))
            << outcome;
      }
      std::string plain;
      run([](Client& http_client, std::string to, std::string& into) -> Task<> {
        into = co_await text_of(http_client, std::move(to));
      }(client, url + "/plain", plain));
      EXPECT_EQ(plain, "plain");
    }
  }
}

TEST_P(HttpClientTunnels, tunnels_of_the_program) {
  std::vector<std::string> asked;
  TcpServer proxy = or_throw(TcpServer::listen(loop(), Endpoint::loopback_v4(0)));
  proxy.serve([&asked](TcpStream stream) -> Task<> {
    Buffer bytes;
    while (!bytes.find("\r\n\r\n")) {
      const auto got = co_await stream.read(bytes);
      if (!got || *got == 0) co_return;
    }
    asked.push_back(bytes.to_string());
    const bool is_refused = bytes.find("refuse").has_value();
    const std::string_view answer = is_refused ? "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno"
                                               : "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n";
    const auto sent = co_await stream.write(answer);
    if (sent && !is_refused) co_await echo(ByteStream(std::move(stream)));
  });
  std::vector<std::string> outcomes;
  run([](EventLoop& loop, std::string url, std::vector<std::string>& into) -> Task<> {
    Client client(loop);
    http::Fields fields;
    or_throw(fields.set("Proxy-Authorization", "Bearer t"));
    for (const char* const to : {"host.test:22", "refuse.test:22", "host.test", "a b:1"}) {
      auto tunnel = co_await client.open_tunnel(url, to, fields);
      if (!tunnel) {
        into.push_back(tunnel.error().message());
      } else if (tunnel->stream.is_open()) {
        into.push_back(co_await hello(tunnel->stream));
      } else {
        into.push_back((co_await tunnel->response.read_text()).value_or("error"));
      }
    }
    EXPECT_EQ(client.connections(), 0U);
  }(loop(), "http://" + proxy.endpoint().to_string() + "/ignored", outcomes));
  const std::string bad_target = make_error_code(http::ErrorCode::bad_target).message();
  const std::string bad_host = make_error_code(http::ErrorCode::bad_host).message();
  EXPECT_EQ(outcomes, (std::vector<std::string>{"hello", "no", bad_target, bad_host}));
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked.at(0),
            "CONNECT host.test:22 HTTP/1.1\r\nHost: host.test:22\r\n"
            "Proxy-Authorization: Bearer t\r\n\r\n");
}

TEST_P(HttpClientTunnels, the_result_of_work_while_connected) {
  http::Server server = or_throw(http::Server::listen(
      loop(), Endpoint::loopback_v4(0), [](Request& request, Response& response) -> Task<> {
        auto work = []() -> Task<Result<std::string>> {
          const auto slept = co_await sleep_for(std::chrono::milliseconds(1));
          if (!slept) co_return std::unexpected(slept.error());
          co_return "result";
        };
        const auto result = co_await request.while_connected(work());
        response.send(result.value_or("error"));
      }));
  std::string text;
  run([](EventLoop& loop, std::string url, std::string& into) -> Task<> {
    Client client(loop);
    auto response = co_await client.get(url);
    if (response) into = (co_await response->read_text()).value_or("error in body");
  }(loop(), "http://" + server.endpoint().to_string(), text));
  EXPECT_EQ(text, "result");
}

}  // namespace
}  // namespace tambour::tunnels_test
