// Client::upgrade() and open_tunnel(), and the result of Request::while_connected().
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"

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
      if (!got || *got == 0) co_return;
      const auto sent = co_await stream.write(bytes);
      if (!sent) co_return;
    }
  }
  http::Server serve() {
    return or_throw(http::Server::listen(loop(), Endpoint::loopback_v4(0),
                                         [](Request& request, Response& response) -> Task<> {
                                           if (request.path() == "/moved") {
                                             or_throw(response.headers().set("Location", "/echo"));
                                             response.send(Status::found);
                                           } else if (request.path() == "/no") {
                                             response.send(Status::forbidden, "not here");
                                           } else {
                                             or_throw(response.headers().set("Upgrade", "echo"));
                                             auto stream = co_await response.upgrade();
                                             if (stream) co_await echo(std::move(*stream));
                                           }
                                         }));
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
