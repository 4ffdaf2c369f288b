// What a client can make http::Server use: time, memory, connections.
#include <array>
#include <chrono>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/serving.h"

namespace tambour::limits_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::Response;
using test::response_of;

class HttpLimits : public test::Serving {
 public:
  /// The answer to pieces that are sent at intervals, and the time until the connection ended.
  struct Outcome {
    std::string answer;
    Duration time{};
    bool is_sent = true;
  };
  Task<Outcome> drip(std::string start, std::string drop, Duration interval, int drops) {
    TcpStream stream = co_await open();
    const TimePoint begin = loop_.now();
    Outcome outcome;
    static_cast<void>(co_await stream.write(start));
    TaskScope scope(loop_);
    scope.spawn(send_drops(stream, drop, interval, drops, outcome.is_sent));
    outcome.answer = co_await read_all(stream);
    outcome.time = loop_.now() - begin;
    stream.close();
    scope.request_stop();
    co_await scope.join();
    co_return outcome;
  }

 private:
  static Task<> send_drops(TcpStream& stream, std::string drop, Duration interval, int drops,
                           bool& is_sent) {
    for (int i = 0; i < drops; ++i) {
      if (!co_await sleep_for(interval)) co_return;
      const auto written = co_await stream.write(drop);
      if (!written) is_sent = false;
      if (!written) co_return;
    }
  }
};

void hello(Request&, Response& response) { response.send("hello"); }

Task<> count_body(Request& request, Response& response) {
  std::uint64_t total = 0;
  while (!request.body().is_complete()) {
    const auto piece = co_await request.body().read();
    if (!piece) co_return;
    total += piece->size();
  }
  response.send(std::to_string(total));
}

TEST_F(HttpLimits, a_slow_head_is_answered_with_408) {
  serve(hello);
  const auto slow = run(drip("GET / HTTP/1.1\r\nHost: a\r\n", "X: y\r\n", 3s, 1000));
  EXPECT_TRUE(slow.answer.starts_with("HTTP/1.1 408 Request Timeout\r\n")) << slow.answer;
  EXPECT_GE(slow.time, 9s);
  EXPECT_LT(slow.time, 11s);
  // The time begins with the first byte, not with the previous request.
  const std::string request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  const auto second = run(drip(request, "G", 30s, 1));
  EXPECT_GE(second.time, 40s);
  EXPECT_LT(second.time, 41s);
}

TEST_F(HttpLimits, a_connection_without_a_request_is_closed) {
  serve(hello);
  const auto silent = run(drip("", "", 1h, 0));
  EXPECT_EQ(silent.answer, "");
  EXPECT_LT(silent.time, 11s);
  const auto idle = run(drip("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "", 1h, 0));
  EXPECT_EQ(idle.answer, response_of("200 OK", "hello"));
  EXPECT_GE(idle.time, 60s);
  EXPECT_LT(idle.time, 61s);
}

/// After a second, the server keeps only what it needs to wait.
TEST_F(HttpLimits, a_connection_serves_requests_after_any_wait) {
  serve(hello);
  const std::string request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string response = response_of("200 OK", "hello");
  for (const Duration pause : std::initializer_list<Duration>{0ms, 999ms, 1s, 1001ms, 30s, 59s}) {
    const auto outcome = run(drip(request, request, pause, 3));
    EXPECT_EQ(outcome.answer, response + response + response + response) << pause.count();
    EXPECT_GE(outcome.time, 3 * pause + 60s) << pause.count();
    EXPECT_LT(outcome.time, 3 * pause + 61s) << pause.count();
  }
}

/// Waits of many connections that begin and end at the same times.
TEST_F(HttpLimits, many_connections_wait_and_serve_requests_again) {
  serve(hello);
  const std::string request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string response = response_of("200 OK", "hello");
  std::vector<Outcome> outcomes(300);
  TaskScope clients(loop_);
  for (Outcome& outcome : outcomes) {
    clients.spawn([](HttpLimits& limits, std::string text, Outcome& result) -> Task<> {
      result = co_await limits.drip(text, text, 300ms, 2);
    }(*this, request, outcome));
  }
  run([](TaskScope& scope) -> Task<> { co_await scope.join(); }(clients));
  for (const Outcome& outcome : outcomes) {
    ASSERT_EQ(outcome.answer, response + response + response);
    ASSERT_GE(outcome.time, 60s);
    ASSERT_LT(outcome.time, 62s);
  }
}

TEST_F(HttpLimits, a_slow_body_is_answered_with_408_and_a_steady_one_is_not) {
  serve(count_body);
  const std::string head =
      "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n";
  const auto slow = run(drip(head, "x", 1s, 100'000));
  EXPECT_TRUE(slow.answer.starts_with("HTTP/1.1 408 ")) << slow.answer;
  EXPECT_GE(slow.time, 30s);
  EXPECT_LT(slow.time, 31s);
  const auto steady = run(drip(head, std::string(1000, 'x'), 1s, 100));
  EXPECT_EQ(steady.answer, response_of("200 OK", "100000", "Connection: close\r\n"));
  EXPECT_GE(steady.time, 100s);
}

TEST_F(HttpLimits, others_are_served_during_an_attack) {
  serve(count_body);
  TaskScope attackers(loop_);
  int ended = 0;
  for (int i = 0; i < 100; ++i)
    attackers.spawn([](HttpLimits& local, int number, int& count) -> Task<> {
      std::string start = "GET / HTTP/1.1\r\n";
      std::string drop = "X: y\r\n";
      if (number % 2 == 0) {
        start = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n";
        drop = "x";
      }
      const Outcome outcome = co_await local.drip(start, drop, 5s, 8);
      if (outcome.answer.starts_with("HTTP/1.1 408 ")) ++count;
    }(*this, i, ended));
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
              response_of("200 OK", "0", "Connection: close\r\n"));
  run([](TaskScope& scope) -> Task<> { co_await scope.join(); }(attackers));
  EXPECT_EQ(ended, 100);
  run([](HttpLimits& limits) -> Task<> {
    static_cast<void>(co_await sleep_for(15s));
    EXPECT_EQ(limits.server_->connections(), 0U);
  }(*this));
}

TEST_F(HttpLimits, a_client_that_does_not_read_is_disconnected) {
  simulation_.options().stream_buffer_bytes = 10'000;
  Error error;
  TimePoint ended{};
  serve([&](Request&, Response& response) -> Task<> {
    const auto written = co_await response.write(std::string(1'000'000, 'x'));
    error = written.error();
    ended = server_loop_.now();
  });
  run([](HttpLimits& limits) -> Task<> {
    TcpStream stream = co_await limits.open();
    static_cast<void>(co_await stream.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    static_cast<void>(co_await sleep_for(10min));
    const std::string answer = co_await read_all(stream);
    EXPECT_NE(answer.find("error: Connection reset by peer"), std::string::npos);
  }(*this));
  EXPECT_EQ(error, system_error(ETIMEDOUT));
  EXPECT_EQ(server_->connections(), 0U);
}

TEST_F(HttpLimits, a_client_that_reads_slowly_is_not) {
  simulation_.options().stream_buffer_bytes = 10'000;
  serve([](Request&, Response& response) { response.send(std::string(100'000, 'x')); });
  run([](HttpLimits& limits) -> Task<> {
    TcpStream stream = co_await limits.open();
    static_cast<void>(
        co_await stream.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    Buffer all;
    for (;;) {
      static_cast<void>(co_await sleep_for(20s));
      const auto got = co_await stream.read(all, 5000);
      EXPECT_TRUE(got);
      if (!got || *got == 0) break;
    }
    EXPECT_GT(all.size(), 100'000U);
  }(*this));
}

TEST_F(HttpLimits, content_too_large_reaches_a_client_that_is_still_sending) {
  http::ServerOptions options;
  options.limits.body_bytes_max = 100'000;
  serve(count_body, options);
  const std::string tail = "Transfer-Encoding: chunked\r\n\r\n";
  const std::string chunk = "2710\r\n" + std::string(10'000, 'x') + "\r\n";
  const auto chunked =
      run(drip("POST / HTTP/1.1\r\nHost: a\r\n" + tail, chunk + chunk + chunk, 1ms, 100));
  EXPECT_TRUE(chunked.answer.starts_with("HTTP/1.1 413 Content Too Large\r\n")) << chunked.answer;
  EXPECT_TRUE(chunked.answer.ends_with("The body of the message exceeds its limit\n"));
  EXPECT_TRUE(chunked.is_sent);
  const auto with_length = run(drip("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100001\r\n\r\n",
                                    std::string(10'000, 'x'), 1ms, 5));
  EXPECT_TRUE(with_length.answer.starts_with("HTTP/1.1 413 ")) << with_length.answer;
  EXPECT_TRUE(with_length.is_sent);
  // It is not asked to send the body.
  EXPECT_TRUE(ask("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                  "Content-Length: 100001\r\n\r\n")
                  .starts_with("HTTP/1.1 413 "));
}

TEST_F(HttpLimits, a_client_that_sends_for_ever_after_its_response_is_disconnected) {
  http::ServerOptions options;
  options.limits.body_bytes_max = 1000;
  serve(count_body, options);
  const auto outcome = run(drip("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n",
                                std::string(1000, 'x'), 1s, 10'000));
  EXPECT_TRUE(outcome.answer.starts_with("HTTP/1.1 413 "));
  EXPECT_EQ(server_->connections(), 1U);
  run([](HttpLimits& limits) -> Task<> {
    static_cast<void>(co_await sleep_for(11s));
    EXPECT_EQ(limits.server_->connections(), 0U);
  }(*this));
}

TEST_F(HttpLimits, a_handler_may_set_limits_of_its_own) {
  http::ServerOptions options;
  options.limits.body_bytes_max = 10;
  serve(
      [](Request& request, Response& response) -> Task<> {
        if (request.path() == "/large") request.body().set_bytes_max(20);
        const std::size_t bytes_max = request.path() == "/small" ? 5 : 1000;
        const auto body = co_await request.body().read_all(bytes_max);
        if (body) response.send(std::to_string(body->size()));
      },
      options);
  const auto post = [this](const std::string& path, std::size_t size) {
    return ask("POST " + path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: " +
               std::to_string(size) + "\r\n\r\n" + std::string(size, 'x'))
        .substr(9, 3);
  };
  EXPECT_EQ(post("/", 10), "200");
  EXPECT_EQ(post("/", 11), "413");
  EXPECT_EQ(post("/large", 20), "200");
  EXPECT_EQ(post("/large", 21), "413");
  EXPECT_EQ(post("/small", 5), "200");
  EXPECT_EQ(post("/small", 6), "413");
}

TEST_F(HttpLimits, a_whole_body_may_be_of_any_size) {
  serve([](Request& request, Response& response) -> Task<> {
    const auto body = co_await request.body().read_all(SIZE_MAX);
    if (body) response.send(std::to_string(body->size()));
  });
  EXPECT_EQ(
      ask("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 700000\r\n\r\n" +
          std::string(700'000, 'x')),
      response_of("200 OK", "700000", "Connection: close\r\n"));
}

TEST_F(HttpLimits, a_destroyed_write_ends_the_connection) {
  simulation_.options().stream_buffer_bytes = 10'000;
  Error error;
  serve([&](Request&, Response& response) -> Task<> {
    {
      TaskScope scope(server_loop_);
      scope.spawn([](Response& local) -> Task<> {
        static_cast<void>(co_await local.write(std::string(100'000, 'x')));
      }(response));
      static_cast<void>(co_await sleep_for(1s));
    }
    const auto written = co_await response.write("y");
    error = written.error();
  });
  run([](HttpLimits& limits) -> Task<> {
    TcpStream stream = co_await limits.open();
    static_cast<void>(co_await stream.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    static_cast<void>(co_await sleep_for(2s));
    const std::string answer = co_await read_all(stream);
    EXPECT_EQ(answer.find("\r\ny"), std::string::npos);
    EXPECT_NE(answer.find("error: Connection reset by peer"), std::string::npos);
  }(*this));
  EXPECT_EQ(error, system_error(ECANCELED));
}

TEST_F(HttpLimits, a_destroyed_read_leaves_no_time_limit) {
  serve([&](Request& request, Response& response) -> Task<> {
    {
      TaskScope scope(server_loop_);
      scope.spawn([](Request& local) -> Task<> {
        static_cast<void>(co_await local.body().read());
      }(request));
      static_cast<void>(co_await sleep_for(20s));
    }
    static_cast<void>(co_await sleep_for(5s));
    const auto body = co_await request.body().read_all();
    EXPECT_TRUE(body);
    if (body) response.send(body->to_string());
  });
  const auto outcome =
      run(drip("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
               "Content-Length: 2\r\n\r\n",
               "ab", 45s, 1));
  EXPECT_EQ(outcome.answer, response_of("200 OK", "ab", "Connection: close\r\n"));
}

TEST_F(HttpLimits, a_large_unread_body_ends_the_connection) {
  serve(hello);
  const auto outcome = run(drip("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n",
                                std::string(100'000, 'x'), 1ms, 10));
  EXPECT_EQ(outcome.answer, response_of("200 OK", "hello"));
  EXPECT_TRUE(outcome.is_sent);
}

TEST_F(HttpLimits, a_slow_handler_slows_down_its_client) {
  simulation_.options().stream_buffer_bytes = 10'000;
  std::size_t sent = 0;
  std::size_t sent_at_begin = 0;
  serve([&](Request& request, Response& response) -> Task<> {
    static_cast<void>(co_await sleep_for(5min));
    sent_at_begin = sent;
    co_await count_body(request, response);
  });
  run([](HttpLimits& limits, std::size_t& count) -> Task<> {
    TcpStream stream = co_await limits.open();
    static_cast<void>(
        co_await stream.write("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                              "Content-Length: 1000000\r\n\r\n"));
    const std::string piece(1000, 'x');
    for (int i = 0; i < 1000; ++i) {
      EXPECT_TRUE(co_await stream.write(piece));
      count += piece.size();
    }
    const std::string answer = co_await read_all(stream);
    EXPECT_EQ(answer, response_of("200 OK", "1000000", "Connection: close\r\n"));
  }(*this, sent));
  EXPECT_LT(sent_at_begin, 200'000U);
}

class HttpDrain : public HttpLimits {};

TEST_F(HttpDrain, requests_in_progress_are_answered_and_idle_connections_end) {
  serve([](Request& request, Response& response) -> Task<> {
    if (request.path() == "/slow") static_cast<void>(co_await sleep_for(10s));
    response.send(request.path());
  });
  std::vector<std::string> answers(3);
  TaskScope clients(loop_);
  const auto client = [](HttpDrain& local, std::string first, Duration pause, std::string second,
                         std::string& answer) -> Task<> {
    TcpStream stream = co_await local.open();
    static_cast<void>(co_await stream.write(first));
    static_cast<void>(co_await sleep_for(pause));
    static_cast<void>(co_await stream.write(second));
    answer = co_await read_all(stream);
  };
  const std::string fast = "GET /fast HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string slow = "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n";
  clients.spawn(client(*this, slow, 0s, "", answers[0]));
  // Sends its second request when the server has begun to shut down.
  clients.spawn(client(*this, fast, 1500ms, fast, answers[1]));
  clients.spawn(client(*this, fast, 0s, "", answers[2]));
  std::optional<Duration> time;
  spawn(server_loop_, [](HttpDrain& drain, std::optional<Duration>& took) -> Task<> {
    static_cast<void>(co_await sleep_for(1s));
    const TimePoint begin = drain.server_loop_.now();
    co_await drain.server_->shut_down(1h);
    took = drain.server_loop_.now() - begin;
  }(*this, time));
  run([](TaskScope& scope) -> Task<> { co_await scope.join(); }(clients));
  run([](HttpDrain&) -> Task<> { static_cast<void>(co_await sleep_for(30s)); }(*this));
  EXPECT_EQ(answers[0], response_of("200 OK", "/slow", "Connection: close\r\n"));
  EXPECT_EQ(answers[1], response_of("200 OK", "/fast") +
                            response_of("200 OK", "/fast", "Connection: close\r\n"));
  EXPECT_EQ(answers[2], response_of("200 OK", "/fast"));
  ASSERT_TRUE(time);
  EXPECT_GE(*time, 9s);
  EXPECT_LT(*time, 20s);
}

TEST_F(HttpDrain, connections_that_have_waited_for_long_are_drained) {
  serve(hello);
  const std::string request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  std::array<Outcome, 2> outcomes;
  TaskScope clients(loop_);
  const auto client = [](HttpDrain& drain, std::string text, int later, Outcome& result) -> Task<> {
    result = co_await drain.drip(text, text, 30'500ms, later);
  };
  clients.spawn(client(*this, request, 0, outcomes[0]));
  clients.spawn(client(*this, request, 1, outcomes[1]));
  spawn(server_loop_, [](HttpDrain& drain) -> Task<> {
    static_cast<void>(co_await sleep_for(30s));
    co_await drain.server_->shut_down(1h);
  }(*this));
  run([](TaskScope& scope) -> Task<> { co_await scope.join(); }(clients));
  EXPECT_EQ(outcomes[0].answer, response_of("200 OK", "hello"));
  EXPECT_LT(outcomes[0].time, 32s);
  EXPECT_EQ(outcomes[1].answer, response_of("200 OK", "hello") +
                                    response_of("200 OK", "hello", "Connection: close\r\n"));
}

/// A client that keeps its connection open after its last response.
TEST_F(HttpDrain, lingering_connections_do_not_hold_up_a_shutdown) {
  // The handler ends when the server shuts down, or earlier.
  const auto handler = [](Request& request, Response& response) -> Task<> {
    const bool is_late = request.path() == "/late";
    while (is_late && !request.shutdown_token().stop_requested())
      static_cast<void>(co_await sleep_for(10ms));
    response.headers().set("Connection", "close");
    response.send("bye");
  };
  for (const std::string request :
       {"GET /late HTTP/1.1\r\nHost: a\r\n\r\n",
        // More follows, so the connection lingers already.
        "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"}) {
    server_.reset();
    serve(handler);
    std::optional<Duration> time;
    std::string answer;
    spawn(server_loop_, [](HttpDrain& local, std::optional<Duration>& took) -> Task<> {
      static_cast<void>(co_await sleep_for(1s));
      const TimePoint begin = local.server_loop_.now();
      co_await local.server_->shut_down(1h);
      took = local.server_loop_.now() - begin;
    }(*this, time));
    run([](HttpDrain& drain, std::string text, std::string& received) -> Task<> {
      TcpStream stream = co_await drain.open();
      EXPECT_TRUE(co_await stream.write(std::string_view(text)));
      received = co_await read_all(stream);
      static_cast<void>(co_await sleep_for(30s));
    }(*this, request, answer));
    EXPECT_EQ(answer, response_of("200 OK", "bye", "Connection: close\r\n"));
    ASSERT_TRUE(time) << request;
    EXPECT_LT(*time, 1100ms) << request;
  }
}

TEST_F(HttpDrain, handlers_are_asked_to_stop_after_the_grace_period) {
  bool is_cancelled = false;
  serve([&is_cancelled](Request&, Response&) -> Task<> {
    const auto slept = co_await sleep_for(1h);
    is_cancelled = !slept && slept.error() == system_error(ECANCELED);
  });
  std::optional<Duration> time;
  spawn(server_loop_, [](HttpDrain& drain, std::optional<Duration>& took) -> Task<> {
    static_cast<void>(co_await sleep_for(1s));
    const TimePoint begin = drain.server_loop_.now();
    co_await drain.server_->shut_down(5s);
    took = drain.server_loop_.now() - begin;
  }(*this, time));
  const auto outcome = run(drip("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "", 1s, 0));
  run([](HttpDrain&) -> Task<> { static_cast<void>(co_await sleep_for(1s)); }(*this));
  EXPECT_TRUE(is_cancelled);
  ASSERT_TRUE(time);
  EXPECT_GE(*time, 5s);
  EXPECT_LT(*time, 6s);
  // An empty response with the status 200 would look like the answer of the handler.
  EXPECT_TRUE(outcome.answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n")) << outcome.answer;
}

TEST_F(HttpDrain, a_response_that_a_stopped_handler_leaves_incomplete_is_reset) {
  serve([](Request&, Response& response) -> Task<> {
    static_cast<void>(co_await response.write("a part"));
    static_cast<void>(co_await sleep_for(1h));
  });
  spawn(server_loop_, [](HttpDrain& drain) -> Task<> {
    static_cast<void>(co_await sleep_for(1s));
    co_await drain.server_->shut_down(5s);
  }(*this));
  run([](HttpDrain& drain) -> Task<> {
    TcpStream stream = co_await drain.open();
    EXPECT_TRUE(co_await stream.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    Buffer received;
    Result<std::size_t> got = 1;
    while (got && *got > 0) got = co_await stream.read(received);
    EXPECT_FALSE(got);
    const std::string text = received.to_string();
    EXPECT_TRUE(text.ends_with("6\r\na part\r\n")) << text;
  }(*this));
}

TEST_F(HttpDrain, destroying_the_server_destroys_its_handlers) {
  bool is_destroyed = false;
  struct Flag {
    bool& flag;
    ~Flag() { flag = true; }
  };
  serve([&is_destroyed](Request&, Response&) -> Task<> {
    const Flag flag{is_destroyed};
    static_cast<void>(co_await sleep_for(1h));
  });
  run([](HttpDrain& drain, const bool& destroyed) -> Task<> {
    TcpStream stream = co_await drain.open();
    static_cast<void>(co_await stream.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    static_cast<void>(co_await sleep_for(1s));
    EXPECT_FALSE(destroyed);
    drain.server_.reset();
    EXPECT_TRUE(destroyed);
  }(*this, is_destroyed));
}

}  // namespace
}  // namespace tambour::limits_test
