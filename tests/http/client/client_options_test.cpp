// Options of a client: fields of all requests, Host, Unix sockets, interim responses, and the
// minimum rate of bodies.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/http/client.h>
#include <tambour/http/server.h>
#include <tambour/task/combinators.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>

#include "http/support/scripted_server.h"
#include "http/support/serving.h"
#include "support/temporary_folder.h"

namespace tambour::client_options_test {
namespace {

using http::Client;
using http::ClientOptions;
using http::ClientRequest;
using test::Answer;
using test::Arrived;
using test::ok;
using test::ScriptedServer;
using namespace std::chrono_literals;

class HttpClientOptions : public testing::Test {
 protected:
  /// Status and body, or the error.
  static Task<std::string> receive(Client& client, ClientRequest request) {
    auto response = co_await client.send(std::move(request));
    if (!response) co_return response.error().message();
    auto body = co_await response->read_text();
    co_return std::to_string(http::code_of(response->status())) + " " +
        (body ? *body : "error in body: " + body.error().message());
  }
  static Task<> ignore(Client& client, std::string url) {
    auto response = co_await client.get(std::move(url));
    static_cast<void>(response);
  }
  std::string got(Client& client, ClientRequest request) {
    std::string text;
    spawn(loop, [&]() -> Task<> {
      text = co_await receive(client, std::move(request));
      loop.stop();
    });
    loop.run();
    return text;
  }

  EventLoop loop;
  std::vector<std::string> received;  ///< "Host" and the fields X-A, Authorization of each request.
  std::vector<Answer> answers{ok("done")};
  ScriptedServer server{loop, [this](const Arrived& arrived) {
                          const http::Fields& fields = arrived.head.fields;
                          received.push_back(arrived.head.authority + "|" + fields.joined("X-A") +
                                             "|" + fields.joined("Authorization"));
                          return answers[std::min(received.size(), answers.size()) - 1];
                        }};
};

TEST_F(HttpClientOptions, default_fields) {
  ClientOptions options;
  ASSERT_TRUE(options.default_fields.add("X-A", "1"));
  ASSERT_TRUE(options.default_fields.add("X-A", "2"));
  ASSERT_TRUE(options.default_fields.add("Authorization", "Bearer t"));
  Client client(loop, options);
  EXPECT_EQ(got(client, ClientRequest(server.url())), "200 done");
  ClientRequest request(server.url());
  ASSERT_TRUE(request.fields.add("x-a", "own"));
  EXPECT_EQ(got(client, std::move(request)), "200 done");
  const std::string at = server.authority();
  EXPECT_EQ(received, (std::vector<std::string>{at + "|1, 2|Bearer t", at + "|own|Bearer t"}));
}

TEST_F(HttpClientOptions, default_fields_are_credentials_too) {
  const std::string port = server.authority().substr(server.authority().rfind(':'));
  answers = {Answer("HTTP/1.1 302 Found\r\nLocation: http://localhost" + port +
                    "/\r\nContent-Length: 0\r\n\r\n"),
             ok("done")};
  ClientOptions options;
  ASSERT_TRUE(options.default_fields.add("Authorization", "Bearer t"));
  Client client(loop, options);
  EXPECT_EQ(got(client, ClientRequest(server.url())), "200 done");
  EXPECT_EQ(received.at(1), "localhost" + port + "||") << "not sent to the origin of a redirect";
}

TEST_F(HttpClientOptions, host) {
  answers = {Answer("HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"),
             Answer("HTTP/1.1 302 Found\r\nLocation: http://localhost" +
                    server.authority().substr(server.authority().rfind(':')) +
                    "/\r\nContent-Length: 0\r\n\r\n"),
             ok("done")};
  Client client(loop);
  ClientRequest request(server.url());
  ASSERT_TRUE(request.fields.set("Host", "shop.test:81"));
  EXPECT_EQ(got(client, std::move(request)), "200 done");
  EXPECT_EQ(received.at(0), "shop.test:81||");
  EXPECT_EQ(received.at(1), "shop.test:81||") << "the same origin";
  EXPECT_TRUE(received.at(2).starts_with("localhost:")) << received.at(2);

  for (const char* const wrong : {"a b", "a/b", "user@host"}) {
    ClientRequest invalid(server.url());
    ASSERT_TRUE(invalid.fields.set("Host", wrong));
    EXPECT_EQ(got(client, std::move(invalid)), make_error_code(http::ErrorCode::bad_host).message())
        << wrong;
  }
  ClientRequest twice(server.url());
  ASSERT_TRUE(twice.fields.add("Host", "a"));
  ASSERT_TRUE(twice.fields.add("Host", "b"));
  EXPECT_EQ(got(client, std::move(twice)),
            make_error_code(http::ErrorCode::several_hosts).message());
}

TEST_F(HttpClientOptions, host_through_a_forwarding_proxy) {
  ClientOptions options;
  options.connect.proxy = "http://" + server.authority();
  Client client(loop, options);
  ClientRequest request("http://origin.test/");
  ASSERT_TRUE(request.fields.set("Host", "other.test"));
  EXPECT_EQ(got(client, std::move(request)), "200 done");
  EXPECT_EQ(received.at(0), "origin.test||") << "the proxy connects to what is named here";
}

TEST_F(HttpClientOptions, unix_sockets) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/http.sock";
  auto unix_server = or_throw(http::Server::listen(
      loop, or_throw(Endpoint::parse("unix:" + path)),
      [](http::Request& request, http::Response& response) {
        response.send("unix " + std::string(request.headers().get("Host").value_or("none")) +
                      std::string(request.head().target));
      }));
  ClientOptions all;
  all.address = "unix:" + path;
  Client client(loop, all);
  EXPECT_EQ(got(client, ClientRequest("http://docker/info?a")), "200 unix docker/info?a");
  EXPECT_EQ(got(client, ClientRequest("http://[::1]:81/")), "200 unix [::1]:81/");

  ClientOptions some;
  some.origin_addresses = {{"http://docker", "unix:" + path},
                           {"http://[::1]:81", "unix:" + path},
                           {"http://other.test:8080", server.authority()}};
  some.connect.proxy = "http://127.0.0.1:1";  // Not used for these origins.
  Client by_origin(loop, some);
  EXPECT_EQ(got(by_origin, ClientRequest("http://Docker:80/")), "200 unix Docker/");
  EXPECT_EQ(got(by_origin, ClientRequest("http://[::1]:81/")), "200 unix [::1]:81/");
  EXPECT_EQ(got(by_origin, ClientRequest("http://other.test:8080/")), "200 done");
  EXPECT_EQ(received.back(), "other.test:8080||");

  ClientOptions wrong;
  wrong.address = "nonsense";
  Client invalid(loop, wrong);
  EXPECT_EQ(got(invalid, ClientRequest("http://docker/")), system_error(EINVAL).message());
}

TEST_F(HttpClientOptions, interim_responses) {
  answers = {
      Answer("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
             "HTTP/1.1 102 Processing\r\n\r\n" +
             ok("done"))};
  Client client(loop);
  std::vector<std::string> interim;
  ClientRequest request(server.url());
  request.on_interim = [&](const http::ResponseHead& head) {
    interim.push_back(std::to_string(http::code_of(head.status)) + head.fields.joined("Link"));
  };
  EXPECT_EQ(got(client, std::move(request)), "200 done");
  EXPECT_EQ(interim, (std::vector<std::string>{"103</a.css>", "102"}));
}

TEST_F(HttpClientOptions, exceptions_of_the_interim_callback) {
  answers = {Answer("HTTP/1.1 103 Early Hints\r\n\r\n" + ok("done"))};
  Client client(loop);
  ClientRequest request(server.url());
  request.on_interim = [](const http::ResponseHead&) { throw std::runtime_error("hint"); };
  std::string thrown;
  spawn(loop, [&]() -> Task<> {
    try {
      static_cast<void>(co_await client.send(std::move(request)));
    } catch (const std::runtime_error& error) {
      thrown = error.what();
    }
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(thrown, "hint");
  EXPECT_EQ(client.connections(), 0U);
}

/// Limits over all origins: each server is an origin of its own.
class HttpClientTotals : public HttpClientOptions {
 protected:
  /// Sends requests to these servers at the same time, and returns the bodies in the order in which
  /// they arrive.
  std::string got_all(Client& client, const std::vector<ScriptedServer*>& servers) {
    std::string text;
    TaskScope scope(loop);
    for (ScriptedServer* const to : servers) {
      scope.spawn([&client, to, &text]() -> Task<> {
        const std::string answer = co_await receive(client, ClientRequest(to->url()));
        text += answer.substr(answer.find(' ') + 1);
      });
    }
    spawn(loop, [&]() -> Task<> {
      co_await scope.join();
      loop.stop();
    });
    loop.run();
    return text;
  }

  ScriptedServer a{loop, [](const Arrived&) { return ok("a"); }};
  ScriptedServer b{loop, [](const Arrived&) { return ok("b"); }};
  ScriptedServer c{loop, [](const Arrived&) { return ok("c"); }};
};

TEST_F(HttpClientTotals, one_connection_for_all_origins) {
  ClientOptions options;
  options.connections_max = 1;
  Client client(loop, options);
  std::string text = got_all(client, {&a, &b, &a, &c, &a, &b});
  std::ranges::sort(text);
  EXPECT_EQ(text, "aaabbc");
  EXPECT_EQ(a.connections(), 1) << "a free connection is used by its own origin first";
  EXPECT_EQ(b.connections(), 1);
  EXPECT_EQ(client.connections(), 1U);
  EXPECT_EQ(client.waiting_requests(), 0U);
  // The idle connection to another origin is closed.
  EXPECT_EQ(got_all(client, {&a}), "a");
  EXPECT_EQ(got_all(client, {&b}), "b");
  EXPECT_EQ(client.connections(), 1U);
  EXPECT_EQ(got_all(client, {&b}), "b");
  EXPECT_EQ(b.connections(), 2);
}

TEST_F(HttpClientTotals, two_connections) {
  ClientOptions options;
  options.connections_max = 2;
  options.connections_per_origin_max = 1;
  Client client(loop, options);
  std::string text = got_all(client, {&a, &a, &a, &b, &b, &c, &c, &c, &c});
  std::ranges::sort(text);
  EXPECT_EQ(text, "aaabbcccc");
  EXPECT_LE(client.connections(), 2U);
}

TEST_F(HttpClientTotals, waiting_requests_are_limited) {
  ClientOptions options;
  options.connections_max = 1;
  options.waiting_max = 1;
  Client client(loop, options);
  const std::string text = got_all(client, {&a, &b, &c});
  EXPECT_NE(text.find(system_error(EAGAIN).message().substr(
                system_error(EAGAIN).message().find(' ') + 1)),
            std::string::npos)
      << text;
  EXPECT_NE(text.find('b'), std::string::npos) << text;
}

TEST_F(HttpClientTotals, cancelled_requests_pass_on_their_turn) {
  ScriptedServer silent(loop, [](const Arrived&) {
    Answer nothing("");
    nothing.reads_the_rest = true;
    return nothing;
  });
  ClientOptions options;
  options.connections_max = 1;
  Client client(loop, options);
  std::string text;
  spawn(loop, [&]() -> Task<> {
    TaskScope first(loop);
    TaskScope second(loop);
    TaskScope third(loop);
    first.spawn([&]() -> Task<> { co_await ignore(client, silent.url()); });
    second.spawn([&]() -> Task<> { co_await ignore(client, a.url()); });
    third.spawn([&]() -> Task<> { text = co_await receive(client, ClientRequest(b.url())); });
    const auto slept = co_await sleep_for(20ms);
    EXPECT_TRUE(slept);
    EXPECT_EQ(client.waiting_requests(), 2U);
    // The request that is woken up is asked to stop before it runs.
    first.request_stop();
    const auto stopped = co_await sleep_for(Duration::zero());
    EXPECT_TRUE(stopped);
    second.request_stop();
    co_await third.join();
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(text, "200 b");
}

/// With virtual time.
class HttpClientRates : public test::Serving {
 protected:
  /// A body of `bytes`, of which ten are sent every tenth of a second.
  void serve_slowly(std::size_t bytes) {
    serve([bytes](http::Request&, http::Response& response) -> Task<> {
      for (std::size_t sent = 0; sent < bytes; sent += 10) {
        const auto written = co_await response.write("0123456789");
        if (!written) co_return;
        if (!co_await sleep_for(100ms)) co_return;
      }
    });
  }
  std::string got(ClientOptions options, Duration pause = Duration::zero()) {
    Client client(loop_, std::move(options));
    return run(read(client, "http://" + server_->endpoint().to_string(), pause));
  }
  static Task<std::string> read(Client& client, std::string url, Duration pause) {
    auto response = co_await client.get(std::move(url));
    if (!response) co_return response.error().message();
    std::size_t total = 0;
    for (;;) {
      auto piece = co_await response->body().read();
      if (!piece) co_return piece.error().message();
      if (piece->empty()) co_return std::to_string(total);
      total += piece->size();
      if (pause > Duration::zero()) static_cast<void>(co_await sleep_for(pause));
    }
  }
};

TEST_F(HttpClientRates, a_body_that_is_too_slow_fails) {
  serve_slowly(10'000);  // 100 bytes per second.
  ClientOptions options;
  options.body_rate_min = 200;
  options.body_rate_period = 10s;
  EXPECT_EQ(got(options), system_error(ETIMEDOUT).message());
  options.body_rate_min = 50;
  EXPECT_EQ(got(options), "10000");
  options.body_rate_min = 0;
  EXPECT_EQ(got(options), "10000");
}

TEST_F(HttpClientRates, the_time_of_a_slow_program_does_not_count) {
  serve([](http::Request&, http::Response& response) { response.send(std::string(3000000, 'x')); });
  ClientOptions options;
  options.body_rate_min = 1'000'000;
  options.body_rate_period = 1s;
  EXPECT_EQ(got(options, 5s), "3000000");
}

}  // namespace
}  // namespace tambour::client_options_test
