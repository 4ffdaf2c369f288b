// An HTTP client in a loop that another library runs: the user interface must not notice it.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/process.h"

namespace tambour::test {

/// Runs the host until the argument returns true, as test::RunHost.
using RunUntil = std::function<bool(const std::function<bool()>& done)>;

/// Returns after `requests` answered requests to a server on the same loop.
inline Task<> send_requests(http::Client& client, Endpoint server, int requests, int& answers) {
  const std::string url = "http://" + server.to_string() + "/";
  for (int i = 0; i < requests; ++i) {
    auto response = co_await client.get(url);
    if (!response) continue;
    const auto text = co_await response->read_text();
    if (text && *text == "hello") ++answers;
  }
}

/// `ticks` counts a timer of the host with an interval of 50 ms.
inline void expect_http_client_in_host(EventLoop& loop, const RunUntil& run, const int& ticks) {
  using namespace std::chrono_literals;
  auto server = http::Server::listen(loop, *Endpoint::parse("127.0.0.1:0"),
                                     [](http::Request&, http::Response& response) -> Task<> {
                                       static_cast<void>(co_await sleep_for(1ms));
                                       static_cast<void>(response.send("hello"));
                                     });
  ASSERT_TRUE(server);
  http::Client client(loop);
  constexpr int requests = 100;
  int answers = 0;
  bool is_done = false;
  const int ticks_before = ticks;
  spawn(loop, [&]() -> Task<> {
    co_await send_requests(client, server->endpoint(), requests, answers);
    is_done = true;
  });
  EXPECT_TRUE(run([&] { return is_done && ticks > ticks_before + 3; }));
  EXPECT_EQ(answers, requests);
  // Idle: below one percent of the processor, with a connection open and the host's timer running.
  // The kernel charges a busy machine's interrupts to whatever runs.
  bool is_idle = false;
  for (int attempt = 0; attempt < 5 && !is_idle; ++attempt) {
    bool is_over = false;
    Timer end(loop, [&] { is_over = true; });
    end.start(1s);
    const Duration before = processor_time();
    EXPECT_TRUE(run([&] { return is_over; }));
    is_idle = processor_time() - before < 10ms;
  }
  EXPECT_TRUE(is_idle);
}

}  // namespace tambour::test
