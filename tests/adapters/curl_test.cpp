// CurlTransfers with an HTTP server on the same loop.
#include <curl/curl.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <tambour/adapters/curl.h>
#include <tambour/http.h>
#include <tambour/tambour.h>

#include "adapters/adapter_test.h"
#include "support/random.h"
#include "support/scale.h"

namespace tambour::curl_test {
namespace {

using namespace std::chrono_literals;
using adapters::CurlTransfers;

std::size_t append(const char* bytes, std::size_t size, std::size_t count, std::string* body) {
  body->append(bytes, size * count);
  return size * count;
}

/// An easy handle and the body that it receives.
class Download {
 public:
  explicit Download(const std::string& url) {
    curl_easy_setopt(easy(), CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy(), CURLOPT_WRITEFUNCTION, &append);
    curl_easy_setopt(easy(), CURLOPT_WRITEDATA, &body);
    curl_easy_setopt(easy(), CURLOPT_FAILONERROR, 1L);
  }
  [[nodiscard]] CURL* easy() const { return easy_.get(); }

  std::string body;

 private:
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> easy_{curl_easy_init(), &curl_easy_cleanup};
};

class Curl : public test::AdapterTest {
 protected:
  static void SetUpTestSuite() { curl_global_init(CURL_GLOBAL_DEFAULT); }

  void SetUp() override { ASSERT_TRUE(start_server(*Endpoint::parse("127.0.0.1:0"))); }
  bool start_server(const Endpoint& endpoint) {
    auto listening = http::Server::listen(loop, endpoint, &Curl::answer);
    if (listening) server.emplace(std::move(*listening));
    return listening.has_value();
  }

  static Task<> answer(http::Request& request, http::Response& response) {
    const std::string_view path = request.path();
    if (path == "/slow") static_cast<void>(co_await sleep_for(60s));
    response.send(path == "/large" ? std::string(1'000'000, 'x') : "hello");
  }

  [[nodiscard]] std::string url(const std::string& path) const {
    return "http://" + server->endpoint().to_string() + path;
  }

  std::optional<http::Server> server;
};

TEST_F(Curl, transfers_end_with_their_results) {
  run([this]() -> Task<> {
    CurlTransfers transfers(loop);
    Download small(url("/"));
    EXPECT_EQ(co_await transfers.perform(small.easy()), CURLE_OK);
    EXPECT_EQ(small.body, "hello");
    // The handle may be used again.
    EXPECT_EQ(co_await transfers.perform(small.easy()), CURLE_OK);
    EXPECT_EQ(small.body, "hellohello");
    Download large(url("/large"));
    EXPECT_EQ(co_await transfers.perform(large.easy()), CURLE_OK);
    EXPECT_EQ(large.body.size(), 1'000'000U);
    Download refused("http://127.0.0.1:1/");
    EXPECT_EQ(co_await transfers.perform(refused.easy()), CURLE_COULDNT_CONNECT);
    Download slow(url("/slow"));
    curl_easy_setopt(slow.easy(), CURLOPT_TIMEOUT_MS, 20L);
    EXPECT_EQ(co_await transfers.perform(slow.easy()), CURLE_OPERATION_TIMEDOUT);
  }());
}

Task<> download(CurlTransfers& transfers, std::string url, std::size_t count, std::size_t& ended) {
  Download one(url);
  for (std::size_t i = 0; i < count; ++i) {
    one.body.clear();
    const CURLcode result = co_await transfers.perform(one.easy());
    if (result == CURLE_OK && one.body == "hello") ++ended;
  }
}

/// Repeats each transfer until it succeeds.
Task<> download_always(CurlTransfers& transfers, std::string url, std::size_t count,
                       test::Outcomes& outcomes) {
  Download one(url);
  for (std::size_t i = 0; i < count;) {
    one.body.clear();
    const CURLcode result = co_await transfers.perform(one.easy());
    if (result == CURLE_OK && one.body == "hello") {
      ++outcomes.done;
      ++i;
      continue;
    }
    ++outcomes.failed;
    static_cast<void>(co_await sleep_for(1ms));
  }
}

TEST_F(Curl, a_restart_of_the_server_fails_some_of_a_hundred_transfers_in_flight) {
  run([this]() -> Task<> {
    CurlTransfers transfers(loop);
    const std::size_t count = test::scaled(100);
    const Endpoint endpoint = server->endpoint();
    test::Outcomes outcomes;
    TaskScope scope(loop);
    for (int i = 0; i < 100; ++i)
      scope.spawn(download_always(transfers, url("/"), count, outcomes));
    while (outcomes.done < 20 * count) static_cast<void>(co_await sleep_for(1ms));
    EXPECT_EQ(outcomes.failed, 0U);
    server.reset();
    while (outcomes.failed < 100) static_cast<void>(co_await sleep_for(1ms));
    auto restart = [&]() -> Task<bool> { co_return start_server(endpoint); };
    EXPECT_TRUE(co_await test::retry(std::move(restart)));
    static_cast<void>(co_await scope.join());
    EXPECT_EQ(outcomes.done, 100 * count);
  }());
}

TEST_F(Curl, the_next_transfer_begins_in_the_same_iteration) {
  run([this]() -> Task<> {
    CurlTransfers transfers(loop);
    std::size_t ended = 0;
    const auto iterations = loop.stats().iterations;
    co_await download(transfers, url("/"), 100, ended);
    EXPECT_EQ(ended, 100U);
    // One for the request, which the server reads, and one for the response.
    EXPECT_LE(loop.stats().iterations - iterations, 250U);
  }());
}

Task<> download_with_limits(CurlTransfers& transfers, std::string url, std::size_t count,
                            test::Random& random, std::size_t& ended, std::size_t& stopped) {
  for (std::size_t i = 0; i < count; ++i) {
    Download one(url);
    if (random.below(2) == 0) {
      if (co_await transfers.perform(one.easy()) == CURLE_OK) ++ended;
      continue;
    }
    const auto limit = std::chrono::microseconds(random.below(5'000));
    const auto result = co_await timeout(limit, transfers.perform(one.easy()));
    if (!result) ++stopped;
    if (result && *result == CURLE_OK) ++ended;
  }
}

TEST_F(Curl, half_of_the_transfers_are_stopped_at_random_points) {
  run([this]() -> Task<> {
    CurlTransfers transfers(loop);
    const std::size_t count = test::scaled(100);
    test::Random random;
    std::size_t ended = 0;
    std::size_t stopped = 0;
    TaskScope scope(loop);
    for (int i = 0; i < 100; ++i)
      scope.spawn(download_with_limits(transfers, url("/"), count, random, ended, stopped));
    static_cast<void>(co_await scope.join());
    EXPECT_EQ(ended + stopped, 100 * count);
    EXPECT_GT(stopped, 0U);
    Download last(url("/large"));
    EXPECT_EQ(co_await transfers.perform(last.easy()), CURLE_OK);
    EXPECT_EQ(last.body.size(), 1'000'000U);
  }());
}

TEST_F(Curl, stopping_inside_a_callback_of_libcurl_ends_the_transfer) {
  run([this]() -> Task<> {
    CurlTransfers transfers(loop);
    std::stop_source stop;
    Download large(url("/large"));
    curl_easy_setopt(
        large.easy(), CURLOPT_WRITEFUNCTION,
        +[](const char*, std::size_t, std::size_t count, std::stop_source* source) {
          source->request_stop();
          return count;
        });
    curl_easy_setopt(large.easy(), CURLOPT_WRITEDATA, &stop);
    const CURLcode result =
        co_await with_stop_token(stop.get_token(), transfers.perform(large.easy()));
    EXPECT_EQ(result, CURLE_ABORTED_BY_CALLBACK);
    // The transfer is not performed if the task was asked to stop before.
    Download late(url("/"));
    const CURLcode never_begun =
        co_await with_stop_token(stop.get_token(), transfers.perform(late.easy()));
    EXPECT_EQ(never_begun, CURLE_ABORTED_BY_CALLBACK);
    EXPECT_EQ(late.body, "");
  }());
}

TEST_F(Curl, destroying_a_task_removes_its_transfer) {
  run([this]() -> Task<> {
    CurlTransfers transfers(loop);
    {
      TaskScope scope(loop);
      std::size_t ended = 0;
      for (int i = 0; i < 10; ++i) scope.spawn(download(transfers, url("/slow"), 1, ended));
      static_cast<void>(co_await sleep_for(20ms));
    }
    Download next(url("/"));
    EXPECT_EQ(co_await transfers.perform(next.easy()), CURLE_OK);
  }());
}

TEST_F(Curl, a_task_may_destroy_the_transfers_and_the_waits_of_others) {
  run([this]() -> Task<> {
    auto transfers = std::make_unique<CurlTransfers>(loop);
    std::array<std::unique_ptr<TaskScope>, 2> scopes;
    int resumed = 0;
    // Both transfers end in the same call to libcurl.
    const auto transfer = [&](std::unique_ptr<TaskScope>& other) -> Task<> {
      Download refused("nonsense://host/");
      const CURLcode result = co_await transfers->perform(refused.easy());
      EXPECT_EQ(result, CURLE_UNSUPPORTED_PROTOCOL);
      ++resumed;
      other.reset();
      transfers.reset();
    };
    for (auto& scope : scopes) scope = std::make_unique<TaskScope>(loop);
    scopes[0]->spawn(transfer(scopes[1]));
    scopes[1]->spawn(transfer(scopes[0]));
    while (transfers != nullptr) static_cast<void>(co_await sleep_for(1ms));
    EXPECT_EQ(resumed, 1);
  }());
}

}  // namespace
}  // namespace tambour::curl_test
