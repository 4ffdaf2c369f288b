// Handlers that keep a request or a response after their end: each use aborts with a message, and
// never answers another request.
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/serving.h"

namespace tambour::misuse_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::Response;

constexpr const char* message =
    "tambour: http::.*\\(\\) was called after the handler of the request had ended; a handler "
    "whose "
    "response comes from another task must be a coroutine that waits for this task";

class HttpMisuse : public test::Serving {
 protected:
  HttpMisuse() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  using Use = std::function<void(Request&, Response&)>;

  /// The handler of each request starts a task that uses its objects after `delay`, and ends. The
  /// client sends requests at 0, 1, 2 ... seconds.
  void use_later(const Use& use, Duration delay, int requests, bool sends) {
    serve([&, delay, sends](Request& request, Response& response) {
      if (sends) response.send("early");
      spawn(server_loop_,
            [](Request& later_request, Response& later_response, const Use& later,
               Duration after) -> Task<> {
              static_cast<void>(co_await sleep_for(after));
              later(later_request, later_response);
            }(request, response, use, delay));
    });
    run([](HttpMisuse& http_misuse, int count) -> Task<> {
      TcpStream stream = co_await http_misuse.open();
      for (int i = 0; i < count; ++i) {
        EXPECT_TRUE(co_await stream.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        static_cast<void>(co_await sleep_for(1s));
      }
    }(*this, requests));
  }
};

TEST_F(HttpMisuse, a_response_after_its_handler) {
  const auto send = [](Request&, Response& response) { response.send("late"); };
  // While the connection waits for a request, between two, and after many.
  EXPECT_DEATH(use_later(send, 500ms, 1, false), message);
  EXPECT_DEATH(use_later(send, 1500ms, 3, false), message);
  EXPECT_DEATH(use_later(send, 10'500ms, 20, false), message);
  EXPECT_DEATH(use_later(send, 500ms, 1, true), message);
}

TEST_F(HttpMisuse, each_function_after_its_handler) {
  const std::vector<Use> uses{
      [](Request&, Response& response) { static_cast<void>(response.write("late")); },
      [](Request&, Response& response) { response.end(); },
      [](Request&, Response& response) { response.send_error(http::Status::not_found); },
      [](Request&, Response& response) {
        static_cast<void>(response.send_interim(http::Status::processing));
      },
      [](Request&, Response& response) { response.abort(); },
      [](Request& request, Response&) {
        static_cast<void>(request.reject(http::ErrorCode::bad_parameter, ""));
      },
      [](Request& request, Response&) { static_cast<void>(request.query_parameter("x")); },
      [](Request& request, Response&) { static_cast<void>(request.client_address()); },
      [](Request& request, Response&) { static_cast<void>(request.body_bytes()); },
      [](Request&, Response& response) { static_cast<void>(response.flush()); },
      [](Request&, Response& response) { static_cast<void>(response.upgrade()); },
      [](Request&, Response& response) { static_cast<void>(response.has_failed()); },
      [](Request& request, Response&) { static_cast<void>(request.path()); },
      [](Request& request, Response&) { static_cast<void>(request.connection()); },
      [](Request& request, Response&) { static_cast<void>(request.received_at()); },
      [](Request& request, Response&) { static_cast<void>(request.disconnect_token()); },
      [](Request& request, Response&) { static_cast<void>(request.body().read()); },
      [](Request& request, Response&) { static_cast<void>(request.body().length()); },
  };
  for (const Use& use : uses) EXPECT_DEATH(use_later(use, 1500ms, 3, false), message);
}

TEST_F(HttpMisuse, a_response_on_another_thread) {
  const std::vector<Use> uses{
      [](Request&, Response& response) { response.send("x"); },
      [](Request&, Response& response) { response.send_error(http::Status::not_found); },
      [](Request&, Response& response) { response.end(); },
  };
  for (const Use& use : uses) {
    const auto run_on_thread = [&] {
      serve([&](Request& request, Response& response) {
        std::thread([&] { use(request, response); }).join();
      });
      ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    };
    EXPECT_DEATH(run_on_thread(), "Response::.*used from thread .*; use post\\(\\)");
  }
}

/// The handler has the stream; nothing of HTTP reaches the client any more.
TEST_F(HttpMisuse, a_request_and_a_response_after_an_upgrade) {
  serve([](Request& request, Response& response) -> Task<> {
    response.headers().set("Upgrade", "x");
    auto stream = co_await response.upgrade();
    if (!stream) co_return;
    EXPECT_EQ(response.send("late").error(), http::ErrorCode::response_begun);
    EXPECT_EQ(response.send_error(http::Status::conflict).error(), http::ErrorCode::response_begun);
    const Result<> written = co_await response.write("late");
    EXPECT_EQ(written.error(), http::ErrorCode::response_ended);
    const Result<> interim = co_await response.send_interim(http::Status::processing);
    EXPECT_EQ(interim.error(), http::ErrorCode::response_begun);
    const auto body = co_await request.body().read();
    EXPECT_TRUE(body && body->empty());
    EXPECT_EQ(request.connection().peer_endpoint().error(), system_error(EBADF));
    EXPECT_FALSE(request.client_address());
    EXPECT_FALSE(request.disconnect_token().stop_requested());
    const Result<> sent = co_await stream->write("tunnel");
    EXPECT_TRUE(sent);
  });
  const std::string received =
      ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
  EXPECT_TRUE(received.starts_with("HTTP/1.1 101 ")) << received;
  EXPECT_TRUE(received.ends_with("\r\n\r\ntunnel")) << received;
}

/// While a handler that has not answered yet waits, none of an earlier one answers for it.
TEST_F(HttpMisuse, an_earlier_response_is_not_that_of_a_later_request) {
  std::vector<Response*> kept;
  serve([&](Request& request, Response& response) -> Task<> {
    for (const Response* earlier : kept) EXPECT_NE(earlier, &response);
    if (request.path() == "/keep") {
      kept.push_back(&response);
      co_return;
    }
    static_cast<void>(co_await sleep_for(1s));
    response.headers().set("Connection", "close");
    response.send("last");
  });
  std::string text;
  for (int i = 0; i < 16; ++i) text += "GET /keep HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string received = ask(text + "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(received.ends_with("\r\n\r\nlast")) << received;
  EXPECT_EQ(kept.size(), 16U);
}

}  // namespace
}  // namespace tambour::misuse_test
