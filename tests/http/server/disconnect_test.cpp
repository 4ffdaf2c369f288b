// Handlers that wait without reading or writing notice that their client has gone.
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <stop_token>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "backend/system.h"
#include "http/support/serving.h"
#include "loop/core.h"

namespace tambour::disconnect_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::Response;
using test::response_of;

enum class Goodbye { close, half_close, reset };

class HttpDisconnect : public test::Serving, public testing::WithParamInterface<Goodbye> {
 public:
  /// Waits for an hour, unless the client goes. Reads the body of a POST after a while.
  http::Handler waiting_handler() {
    return [this](Request& request, Response& response) -> Task<> {
      const TimePoint begin = server_loop_.now();
      co_await request.while_connected(wait(request));
      waited_ = server_loop_.now() - begin;
      if (request.disconnect_token().stop_requested()) ++disconnected_;
      response.send("late");
    };
  }

  /// Sends `text`, goes after a second, and returns what it receives until the end.
  Task<std::string> leave(std::string text) {
    TcpStream stream = co_await open();
    EXPECT_TRUE(co_await stream.write(std::string_view(text)));
    static_cast<void>(co_await sleep_for(1s));
    std::string received;
    if (GetParam() == Goodbye::half_close) {
      static_cast<void>(co_await stream.shutdown_write());
      received = co_await read_all(stream);
    }
    if (GetParam() == Goodbye::reset) {
      const linger no_linger{.l_onoff = 1, .l_linger = 0};
      detail::backend::System& system = detail::loop::core_of(loop_).backend().system();
      EXPECT_EQ(system.setsockopt(stream.fd(), SOL_SOCKET, SO_LINGER, &no_linger, sizeof no_linger),
                0);
    }
    stream.close();
    static_cast<void>(co_await sleep_for(1s));
    co_return received;
  }

  Duration waited_{};
  int cancelled_ = 0;
  int disconnected_ = 0;

 private:
  Task<> wait(Request& request) {
    if (request.method() == http::Method::post) {
      static_cast<void>(co_await sleep_for(100ms));
      EXPECT_TRUE(co_await request.body().read_all());
    }
    const Result<> slept = co_await sleep_for(1h);
    if (!slept && slept.error() == system_error(ECANCELED)) ++cancelled_;
  }
};

TEST_P(HttpDisconnect, ends_the_wait_of_a_handler) {
  serve(waiting_handler());
  for (const std::string request : {"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
                                    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"}) {
    disconnected_ = cancelled_ = 0;
    const std::string received = run(leave(request));
    EXPECT_EQ(cancelled_, 1) << request;
    EXPECT_EQ(disconnected_, 1) << request;
    EXPECT_GE(waited_, 900ms);
    EXPECT_LT(waited_, 2s);
    EXPECT_EQ(server_->connections(), 0U);
    // A client that has half-closed the connection can still read.
    if (GetParam() == Goodbye::half_close) {
      EXPECT_EQ(received, response_of("200 OK", "late"));
    }
  }
}

TEST_P(HttpDisconnect, is_noticed_behind_pipelined_requests) {
  serve(waiting_handler());
  const std::string request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string received = run(leave(request + request));
  // After a reset, there is no response to send any more.
  EXPECT_EQ(cancelled_, GetParam() == Goodbye::reset ? 1 : 2);
  EXPECT_EQ(server_->connections(), 0U);
  if (GetParam() == Goodbye::half_close) {
    EXPECT_EQ(received, response_of("200 OK", "late") + response_of("200 OK", "late"));
  }
}

/// More than the server reads ahead.
TEST_P(HttpDisconnect, is_noticed_behind_more_requests_than_are_read_ahead) {
  serve(waiting_handler());
  std::string text;
  while (text.size() < 200'000) text += "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  static_cast<void>(run(leave(text)));
  EXPECT_GE(disconnected_, 1);
  EXPECT_GE(cancelled_, 1);
  EXPECT_LT(waited_, 2s);
  EXPECT_EQ(server_->connections(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Ways, HttpDisconnect,
                         testing::Values(Goodbye::close, Goodbye::half_close, Goodbye::reset));

class HttpWatch : public test::Serving {};

TEST_F(HttpWatch, ends_with_its_request) {
  int requests = 0;
  std::stop_token first;
  serve([&](Request& request, Response& response) -> Task<> {
    if (++requests == 1) first = request.disconnect_token();
    static_cast<void>(co_await sleep_for(10ms));
    response.send("hello");
  });
  const std::string request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string last = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(ask_in_pieces({request, request, last}),
            response_of("200 OK", "hello") + response_of("200 OK", "hello") +
                response_of("200 OK", "hello", "Connection: close\r\n"));
  EXPECT_EQ(requests, 3);
  EXPECT_FALSE(first.stop_requested());
}

TEST_F(HttpWatch, reads_ahead_only_a_part) {
  simulation_.options().stream_buffer_bytes = 10'000;
  bool is_read = false;
  serve([&](Request& request, Response& response) -> Task<> {
    const std::stop_token gone = request.disconnect_token();
    static_cast<void>(co_await sleep_for(10s));
    EXPECT_FALSE(gone.stop_requested());
    EXPECT_FALSE(is_read);
    response.headers().set("Connection", "close");
    response.send("hello");
  });
  run([](HttpWatch& test, bool& sent) -> Task<> {
    TcpStream stream = co_await test.open();
    const std::string many(1'000'000, 'x');
    const Result<> written = co_await stream.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n" + many);
    sent = written.has_value();
  }(*this, is_read));
}

TEST_F(HttpWatch, ends_before_a_tunnel_begins) {
  serve([&](Request& request, Response& response) -> Task<> {
    const std::stop_token gone = request.disconnect_token();
    static_cast<void>(co_await sleep_for(10ms));
    response.headers().set("Upgrade", "echo");
    auto tunnel = co_await response.upgrade();
    EXPECT_TRUE(tunnel);
    Buffer received;
    EXPECT_TRUE(co_await tunnel->read(received));
    EXPECT_TRUE(co_await tunnel->write(received));
    EXPECT_FALSE(gone.stop_requested());
  });
  const std::string request =
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
  EXPECT_TRUE(ask(request + "hello").ends_with("\r\n\r\nhello"));
}

}  // namespace
}  // namespace tambour::disconnect_test
