// Connections that the server ends, or on which it sends something, after a response: the next
// request must not use them, also if the loop has not noticed it yet.
#include "http/support/kept_connections.h"

#include <sys/socket.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/http/client.h>
#include <tambour/task/combinators.h>

#include "http/support/scripted_server.h"
#include "support/on_every_backend.h"

namespace tambour::kept_connections_test {
namespace {

using http::Client;
using http::ClientRequest;
using http::Method;

/// POST, so that a request that fails is not repeated.
Task<std::string> post(Client& client, std::string url) {
  auto response = co_await client.send(ClientRequest(Method::post, std::move(url)));
  if (!response) co_return "error: " + response.error().message();
  auto text = co_await response->read_text();
  if (!text) co_return "error in body: " + text.error().message();
  co_return std::move(*text);
}

class HttpKeptConnections : public test::OnEveryBackend {
 protected:
  /// The answers to two requests, between which `change` does something to the connection of the
  /// first one, in the same iteration of the loop.
  template <class Change>
  std::string answers(Change change) {
    test::KeptConnections server(loop());
    Client client(loop());
    std::string texts;
    run([](Client& by, test::KeptConnections& at, Change& changes, std::string& into) -> Task<> {
      into = co_await post(by, at.url());
      changes(at.stream(0).fd());
      into += " " + co_await post(by, at.url());
    }(client, server, change, texts));
    client.close_idle_connections();
    return texts;
  }
};

TAMBOUR_ON_EVERY_BACKEND(HttpKeptConnections);

TEST_P(HttpKeptConnections, are_used_again) {
  EXPECT_EQ(answers([](int /*descriptor*/) {}), "0 0");
}

TEST_P(HttpKeptConnections, are_not_used_after_their_end) {
  const auto end = [](int descriptor) { EXPECT_EQ(::shutdown(descriptor, SHUT_WR), 0); };
  EXPECT_EQ(answers(end), "0 1");
}

TEST_P(HttpKeptConnections, are_not_used_after_a_response_without_a_request) {
  for (const std::string_view text :
       {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", "HTTP/1.1 408 Timeout\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\n\r\n", "\r\n", "x"}) {
    const auto send = [&](int descriptor) {
      const ssize_t sent = ::send(descriptor, text.data(), text.size(), 0);
      EXPECT_EQ(sent, static_cast<ssize_t>(text.size()));
    };
    EXPECT_EQ(answers(send), "0 1") << text;
  }
}

/// The server ends an idle connection with 408, while the next request is on its way.
TEST_P(HttpKeptConnections, end_with_a_timeout_that_crosses_with_a_request) {
  test::ScriptedServer server(loop(), [](const test::Arrived& arrived) -> test::Answer {
    if (arrived.request == 0) return test::ok(std::to_string(arrived.connection));
    return test::and_close(
        "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
        "Content-Length: 4\r\n\r\nlate");
  });
  Client client(loop());
  std::string texts;
  run([](Client& by, std::string url, std::string& into) -> Task<> {
    for (const Method method : {Method::get, Method::get, Method::post}) {
      auto response = co_await by.send(ClientRequest(method, url));
      EXPECT_TRUE(response);
      if (!response) co_return;
      into += (co_await response->read_text()).value_or("error") + " ";
    }
  }(client, server.url(), texts));
  EXPECT_EQ(texts, "0 1 late ");
}

/// A connection that another request waits for is passed on when its response ends.
TEST_P(HttpKeptConnections, are_not_passed_to_a_waiting_request_after_their_end) {
  test::ScriptedServer server(loop(), [](const test::Arrived& arrived) {
    return test::and_close(test::ok(std::to_string(arrived.connection)));
  });
  Client client(loop(), {.connections_per_origin_max = 1});
  std::vector<std::string> texts;
  run([](Client& by, std::string url, std::vector<std::string>& into) -> Task<> {
    std::vector<Task<std::string>> requests;
    for (int i = 0; i < 4; ++i) requests.push_back(post(by, url));
    into = co_await when_all(std::move(requests));
  }(client, server.url(), texts));
  EXPECT_EQ(texts, (std::vector<std::string>{"0", "1", "2", "3"}));
  EXPECT_EQ(server.most_open(), 1);
}

}  // namespace
}  // namespace tambour::kept_connections_test
