// Each allocation of requests for the pages of an inspector fails once, and each with the two after
// it: the client gets a whole response or none, and the inspector answers the next request.
#include <chrono>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "faults/allocations.h"

namespace tambour::inspector_test {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view pages[] = {"/loops",
                                      "/callbacks",
                                      "/tasks?q=inspector&sort=waited",
                                      "/connections?sort=peer",
                                      "/workers",
                                      "/metrics",
                                      "/health",
                                      "/profiles"};

Task<> talk(Endpoint to, std::string& received) {
  auto stream = co_await TcpStream::connect(to);
  if (!stream) co_return;
  std::string requests;
  for (const std::string_view page : pages)
    requests.append("GET ").append(page).append(" HTTP/1.1\r\nHost: localhost\r\n\r\n");
  requests += "GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  const auto written = co_await stream->write(std::string_view(requests));
  if (!written) co_return;
  Buffer in;
  while ((co_await stream->read(in)).value_or(0) > 0) {
  }
  received = in.to_string();
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(InspectorMemory, failures_end_requests_but_not_the_inspector) {
  EventLoop loop;
  metrics::Registry registry;
  inspector::Collector collector(registry);
  collector.add(loop, "main");
  collector.add(WorkerPool::shared(), "shared");
  const inspector::Inspector inspector(loop, {.collector = &collector});
  http::ServerOptions options;
  options.listen.on_error = [](const std::exception_ptr&) {};
  const auto server =
      or_throw(inspector.listen(loop, Endpoint::loopback_v4(0), std::move(options)));
  const auto ask = [&] {
    std::string received;
    try {
      block_on(loop, talk(server.endpoint(), received));
    } catch (const std::bad_alloc&) {
      received.clear();
    }
    test::grant_memory();
    // Their descriptors are counted.
    while (server.connections() > 0) loop.run_ready();
    return received;
  };
  EXPECT_EQ(count(ask(), "HTTP/1.1 200 OK\r\n"), std::size(pages) + 1);
  unsigned attempts = 0;
  test::refuse_each_allocation(ask, [&](const std::string& received) {
    ++attempts;
    EXPECT_TRUE(received.empty() || received.starts_with("HTTP/1.1 ")) << received;
    EXPECT_LE(count(received, "HTTP/1.1 "), std::size(pages) + 1);
  });
  EXPECT_GT(attempts, 200U);
  EXPECT_EQ(count(ask(), "HTTP/1.1 200 OK\r\n"), std::size(pages) + 1);
}

}  // namespace
}  // namespace tambour::inspector_test
