// The HTTP client over HTTP/2: how many responses it handles in an iteration of its loop.
#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/serving.h"

namespace tambour::http2_iterations_test {
namespace {

using http::Client;
using http::Request;
using http::Response;

constexpr int requests = 100;

class Http2Iterations : public test::Serving {
 public:
  [[nodiscard]] std::string url() const {
    return "http://" + server_->endpoint().to_string() + "/";
  }
};

/// Each response has two frames. An iteration ends with a write, of a WINDOW_UPDATE for example.
TEST_F(Http2Iterations, responses_to_all_requests_of_a_connection_are_handled_at_once) {
  TaskEvent all_have_arrived(server_loop_);
  // The first request opens the connection.
  serve([&all_have_arrived, arrived = 0](Request&, Response& response) mutable -> Task<> {
    const bool is_first = arrived == 0;
    if (++arrived == requests + 1) all_have_arrived.set();
    if (!is_first) static_cast<void>(co_await all_have_arrived.wait());
    response.send("hello");
  });
  http::ClientOptions options;
  options.version = http::VersionChoice::http_2;
  Client client(loop_, std::move(options));
  int ended = 0;
  int ended_before = 0;
  int ended_at_once_max = 0;
  const auto note = [&] {
    ended_at_once_max = std::max(ended_at_once_max, ended - std::exchange(ended_before, ended));
  };
  Hook count(loop_, HookPoint::check, note);
  count.start();
  run([](Http2Iterations& test, Client& by, int& counted) -> Task<> {
    EXPECT_TRUE(co_await by.get(test.url()));
    TaskScope scope(test.loop_);
    for (int i = 0; i < requests; ++i)
      scope.spawn([](std::string url, Client& with, int& counter) -> Task<> {
        const auto response = co_await with.get(std::move(url));
        EXPECT_TRUE(response);
        ++counter;
      }(test.url(), by, counted));
    co_await scope.join();
    EXPECT_EQ(by.connections(), 1U);
  }(*this, client, ended));
  note();  // The last iteration.
  EXPECT_EQ(ended, requests);
  EXPECT_GT(ended_at_once_max, 80);
}

}  // namespace
}  // namespace tambour::http2_iterations_test
