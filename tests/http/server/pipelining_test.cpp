// Connections that pipeline many requests do not starve the other connections of their loop.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/serving.h"
#include "support/on_every_backend.h"
#include "support/peer.h"

namespace tambour::pipelining_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::Response;

std::string requests(std::size_t count) {
  std::string text;
  for (std::size_t i = 1; i < count; ++i) text += "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  return text + "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
}

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
    ++count;
  return count;
}

/// Counts the handlers that run in each iteration of a loop.
class Iterations {
 public:
  void count(EventLoop& loop) {
    const std::uint64_t current = loop.stats().iterations;
    if (current != last_) handled_.push_back(0);
    last_ = current;
    ++handled_.back();
  }
  [[nodiscard]] std::size_t handled_max() const { return *std::ranges::max_element(handled_); }
  [[nodiscard]] std::size_t size() const { return handled_.size(); }

 private:
  std::uint64_t last_ = 0;
  std::vector<std::size_t> handled_;
};

class HttpPipelining : public test::Serving {};

TEST_F(HttpPipelining, one_iteration_handles_a_limited_number_of_requests) {
  Iterations iterations;
  serve([&](Request& request, Response& response) {
    iterations.count(request.connection().loop());
    response.send(http::Status::no_content);
  });
  EXPECT_EQ(count_of(ask(requests(2'000)), "HTTP/1.1 204 No Content\r\n"), 2'000U);
  EXPECT_LE(iterations.handled_max(), 64U);
}

TEST_F(HttpPipelining, coroutines_that_do_not_wait_count_too) {
  Iterations iterations;
  serve([&](Request& request, Response& response) -> Task<> {
    iterations.count(request.connection().loop());
    response.send("hello");
    static_cast<void>(co_await response.flush());
  });
  EXPECT_EQ(count_of(ask(requests(500)), "hello"), 500U);
  EXPECT_LE(iterations.handled_max(), 64U);
}

TEST_F(HttpPipelining, a_connection_that_is_asked_to_stop_between_requests_ends) {
  int handled = 0;
  serve([&](Request&, Response& response) {
    response.send("hello");
    // The connection has the rest of the requests then.
    if (++handled == 64) server_loop_.post([this] { server_.reset(); });
  });
  const std::string received = ask(requests(500));
  EXPECT_LE(handled, 2 * 64);
  EXPECT_LE(count_of(received, "hello"), static_cast<std::size_t>(handled));
}

TEST_F(HttpPipelining, a_shutdown_between_requests_answers_one_more) {
  int handled = 0;
  serve([&](Request&, Response& response) {
    response.send("hello");
    if (++handled == 64) spawn(server_loop_, server_->shut_down(10s));
  });
  const std::string received = ask(requests(500));
  EXPECT_EQ(count_of(received, "hello"), static_cast<std::size_t>(handled));
  EXPECT_LE(handled, 65);
}

/// Each handler computes for 2 ms.
class HttpTurns : public test::OnEveryBackend {
 protected:
  /// Sends pipelined requests on some connections. Returns when all have been answered.
  void ask(std::size_t connections, std::size_t requests_each) {
    auto server = or_throw(http::Server::listen(
        loop(), Endpoint::loopback_v4(0), [this](Request& request, Response& response) {
          iterations.count(request.connection().loop());
          const auto begin = std::chrono::steady_clock::now();
          while (std::chrono::steady_clock::now() - begin < 2ms) {
          }
          response.send("hello");
        }));
    std::size_t answered = 0;
    const auto client = [&](std::string text) -> Task<> {
      TcpStream stream = or_throw(co_await TcpStream::connect(server.endpoint()));
      EXPECT_TRUE(co_await stream.write(std::string_view(text)));
      Buffer all;
      for (Result<std::size_t> got = 1; got && *got > 0;) got = co_await stream.read(all);
      answered += count_of(all.to_string(), "hello");
    };
    TaskScope clients(loop());
    for (std::size_t i = 0; i < connections; ++i) clients.spawn(client, requests(requests_each));
    run([](TaskScope& scope) -> Task<> { co_await scope.join(); }(clients));
    EXPECT_EQ(answered, connections * requests_each);
  }

  Iterations iterations;  // NOLINT(readability-identifier-naming)
};

TAMBOUR_ON_EVERY_BACKEND(HttpTurns);

TEST_P(HttpTurns, a_connection_with_slow_handlers_yields_by_time) {
  ask(1, 100);
  // After 10 ms; the clock is read once in four requests.
  EXPECT_LE(iterations.handled_max(), 9U);
}

/// Connections receive heads in memory that they share.
TEST_P(HttpTurns, heads_that_arrive_in_parts_do_not_mix) {
  auto server = or_throw(http::Server::listen(
      loop(), Endpoint::loopback_v4(0), [](Request& request, Response& response) {
        response.send(request.head().target + std::string(*request.headers().get("X-Name")));
      }));
  int answered = 0;
  const auto client = [&](int number) -> Task<> {
    TcpStream stream = or_throw(co_await TcpStream::connect(server.endpoint()));
    Buffer received;
    for (int round = 0; round < 3; ++round) {
      const std::string name(100 + static_cast<std::size_t>(number),
                             static_cast<char>('a' + number));
      const std::string target = "/" + std::to_string(number) + "/" + std::to_string(round);
      const std::string text = "POST " + target + " HTTP/1.1\r\nHost: a\r\nX-Name: " + name +
                               "\r\nContent-Length: 3\r\n\r\nxyz";
      for (std::size_t at = 0; at < text.size(); at += 16) {
        EXPECT_TRUE(co_await stream.write(std::string_view(text).substr(at, 16)));
        EXPECT_TRUE(co_await sleep_for(0ms));
      }
      while (!received.find(target + name)) {
        const Result<std::size_t> got = co_await stream.read(received);
        if (!got || *got == 0) co_return;
      }
      ++answered;
    }
  };
  TaskScope clients(loop());
  for (int number = 0; number < 8; ++number) clients.spawn(client, number);
  run([](TaskScope& scope) -> Task<> { co_await scope.join(); }(clients));
  EXPECT_EQ(answered, 3 * 8);
}

/// The requests behind the first one, and the response to it, are in memory that the other
/// connection uses meanwhile.
TEST_P(HttpTurns, requests_outlive_a_loop_that_a_handler_before_them_runs) {
  TcpStream other;
  bool is_other_answered = false;
  auto server = or_throw(http::Server::listen(
      loop(), Endpoint::loopback_v4(0), [&](Request& request, Response& response) {
        response.send(request.path());
        is_other_answered = is_other_answered || request.path() == "/other";
        if (request.path() != "/inside") return;
        const std::string text = "GET /other HTTP/1.1\r\nHost: a\r\nX: " + std::string(500, 'x');
        EXPECT_GT(test::send_now(other, text + "\r\n\r\n"), 500U);
        while (!is_other_answered) loop().run_once();
      }));
  std::string received;
  run([](TcpStream& second, Endpoint at, std::string& all) -> Task<> {
    second = or_throw(co_await TcpStream::connect(at));
    TcpStream first = or_throw(co_await TcpStream::connect(at));
    std::string text;
    for (const char* const path : {"/inside", "/2", "/3", "/4"})
      text.append("GET ").append(path).append(" HTTP/1.1\r\nHost: b\r\n\r\n");
    EXPECT_TRUE(co_await first.write(std::string_view(text)));
    Buffer bytes;
    while (!bytes.find("/4")) {
      const Result<std::size_t> got = co_await first.read(bytes);
      if (!got || *got == 0) break;
    }
    all = bytes.to_string();
  }(other, server.endpoint(), received));
  EXPECT_EQ(count_of(received, "HTTP/1.1 200 OK\r\n"), 4U) << received;
  std::size_t last = 0;
  for (const char* const path : {"/inside", "/2", "/3", "/4"}) {
    EXPECT_EQ(count_of(received, path), 1U) << received;
    EXPECT_GE(received.find(path), last) << received;
    last = received.find(path);
  }
}

/// Each response waits in memory that all connections share until it is sent, or is moved.
TEST_P(HttpTurns, responses_that_wait_in_shared_memory_stay_in_order) {
  // Ends without a wait, after a wait, in parts, or by another kind of response.
  const auto handler = [](Request& request, Response& response) -> Task<> {
    const std::string text = std::string(request.path()) + "|" + std::string(900, 'x');
    switch (request.path().size() % 5) {
      case 0:
        response.send(text);
        static_cast<void>(co_await sleep_for(0ms));
        break;
      case 1:
        static_cast<void>(co_await response.write(text));
        response.end();
        break;
      case 2:
        static_cast<void>(co_await sleep_for(0ms));
        response.send(Buffer(text));
        break;
      case 3:
        response.send(Buffer(text + std::string(100'000, 'y')));
        break;
      default:
        response.send(text);
        static_cast<void>(co_await response.flush());
        break;
    }
  };
  auto server = or_throw(http::Server::listen(loop(), Endpoint::loopback_v4(0), handler));
  constexpr int requests_each = 60;
  int finished = 0;
  const auto client = [&](int number) -> Task<> {
    TcpStream stream = or_throw(co_await TcpStream::connect(server.endpoint()));
    std::string text;
    std::vector<std::string> expected;
    for (int i = 0; i < requests_each; ++i) {
      // Most are alike and do not wait, so that several are collected.
      const std::size_t kind = i % 4 == 3 ? static_cast<std::size_t>(i + number) % 5 : 4;
      std::string path = "/" + std::to_string(number) + "-" + std::to_string(100 + i);
      while (path.size() % 5 != kind) path += '.';
      text += "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n";
      expected.push_back(path + "|");
    }
    EXPECT_TRUE(co_await stream.write(std::string_view(text)));
    Buffer all;
    while (!all.find(expected.back())) {
      const Result<std::size_t> got = co_await stream.read(all);
      if (!got || *got == 0) break;
    }
    const std::string received = all.to_string();
    std::size_t at = 0;
    for (const std::string& path : expected) {
      const std::size_t found = received.find(path, at);
      EXPECT_NE(found, std::string::npos) << path << " after " << at;
      if (found == std::string::npos) co_return;
      at = found;
    }
    EXPECT_EQ(count_of(received, "HTTP/1.1 200 OK\r\n"), std::size_t{requests_each});
    ++finished;
  };
  TaskScope clients(loop());
  for (int number = 0; number < 6; ++number) clients.spawn(client, number);
  run([](TaskScope& scope) -> Task<> { co_await scope.join(); }(clients));
  EXPECT_EQ(finished, 6);
}

/// What the kernel does not accept follows later.
TEST_P(HttpTurns, a_client_that_reads_late_gets_all_responses) {
  auto server = or_throw(http::Server::listen(
      loop(), Endpoint::loopback_v4(0),
      [](Request&, Response& response) { response.send(std::string(1000, 'x') + "end"); }));
  std::size_t bytes = 0;
  std::size_t answered = 0;
  run([](Endpoint at, std::size_t& size, std::size_t& count) -> Task<> {
    TcpStream stream = or_throw(co_await TcpStream::connect(at));
    // A few at a time, so that their responses wait in memory that connections share. After some
    // of them, the server has filled the buffers of both sockets.
    std::string text;
    for (int i = 0; i < 10; ++i) text += "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    for (int i = 0; i < 899; ++i) {
      EXPECT_TRUE(co_await stream.write(std::string_view(text)));
      EXPECT_TRUE(co_await sleep_for(0ms));
    }
    const std::string last = requests(10);
    EXPECT_TRUE(co_await stream.write(std::string_view(last)));
    Buffer all;
    for (Result<std::size_t> got = 1; got && *got > 0;) got = co_await stream.read(all);
    size = all.size();
    count = count_of(all.to_string(), "end");
  }(server.endpoint(), bytes, answered));
  EXPECT_EQ(answered, 9'000U);
  EXPECT_GT(bytes, 9'000'000U);
}

TEST_P(HttpTurns, connections_share_the_time_of_an_iteration) {
  ask(10, 20);
  EXPECT_LE(iterations.handled_max(), 9U + 9U);
}

}  // namespace
}  // namespace tambour::pipelining_test
