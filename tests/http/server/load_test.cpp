// http::Server with large bodies, and replaced by another one under load.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/client.h"
#include "support/scale.h"

namespace tambour::load_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::Response;

/// Resident memory of the process, in bytes.
std::size_t resident_bytes() {
  std::size_t total = 0;
  std::size_t resident = 0;
  FILE* const file = std::fopen("/proc/self/statm", "r");
  const int read = std::fscanf(file, "%zu %zu", &total, &resident);
  std::fclose(file);
  return read == 2 ? resident * std::size_t(::sysconf(_SC_PAGESIZE)) : 0;
}

constexpr std::size_t piece_bytes = std::size_t{64} * 1024;

Task<> count_or_send(Request& request, Response& response) {
  if (request.method() == http::Method::get) {
    const std::size_t pieces = std::stoul(std::string(request.path().substr(1)));
    const std::string piece(piece_bytes, 'x');
    for (std::size_t i = 0; i < pieces; ++i) {
      const auto written = co_await response.write(piece);
      if (!written) co_return;
    }
    co_return;
  }
  request.body().set_bytes_max(UINT64_MAX);
  std::uint64_t total = 0;
  for (std::size_t count = 1; !request.body().is_complete(); ++count) {
    const auto got = co_await request.body().read();
    if (!got) co_return;
    total += got->size();
    // Slower than the client, which has to wait.
    if (count % 256 == 0) static_cast<void>(co_await sleep_for(1ms));
  }
  response.send(std::to_string(total));
}

/// Reads the response without keeping it. Stops reading now and then, so that the server has to
/// wait. Returns the largest resident memory seen.
Task<> download(EventLoop& loop, Endpoint to, std::size_t pieces, std::size_t& peak) {
  auto stream = co_await TcpStream::connect(to);
  EXPECT_TRUE(stream);
  const std::string request =
      "GET /" + std::to_string(pieces) + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  EXPECT_TRUE(co_await stream->write(std::string_view(request)));
  std::vector<std::byte> into(std::size_t{256} * 1024);
  std::size_t total = 0;
  for (std::size_t count = 0;; ++count) {
    const auto got = co_await stream->read(into);
    EXPECT_TRUE(got);
    if (!got || *got == 0) break;
    total += *got;
    if (count % 64 != 0) continue;
    peak = std::max(peak, resident_bytes());
    static_cast<void>(co_await sleep_for(1ms));
  }
  EXPECT_GT(total, pieces * piece_bytes);
  loop.stop();
}

Task<> upload(EventLoop& loop, Endpoint to, std::size_t pieces, std::size_t& peak) {
  auto stream = co_await TcpStream::connect(to);
  EXPECT_TRUE(stream);
  const std::string request =
      "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(pieces * piece_bytes) +
      "\r\n\r\n";
  EXPECT_TRUE(co_await stream->write(std::string_view(request)));
  const std::string piece(piece_bytes, 'x');
  for (std::size_t i = 0; i < pieces; ++i) {
    EXPECT_TRUE(co_await stream->write(std::string_view(piece)));
    if (i % 64 == 0) peak = std::max(peak, resident_bytes());
  }
  Buffer in;
  const auto reply = co_await test::read_reply(*stream, in);
  EXPECT_TRUE(reply && reply->body == std::to_string(pieces * piece_bytes));
  loop.stop();
}

TEST(HttpLoad, large_bodies_use_little_memory) {
  EventLoop loop;
  auto server = http::Server::listen(loop, Endpoint::loopback_v4(0), count_or_send);
  ASSERT_TRUE(server);
  // One GiB by default.
  const char* const size = std::getenv("TAMBOUR_TEST_BODY_GIB");
  const std::size_t gibibytes = size != nullptr ? std::stoul(size) : 1;
  const std::size_t pieces = test::scaled(gibibytes * (std::size_t{1} << 30U) / piece_bytes);
  for (auto* transfer : {&download, &upload}) {
    const std::size_t before = resident_bytes();
    std::size_t peak = 0;
    spawn(loop, transfer(loop, server->endpoint(), pieces, peak));
    loop.run();
    if (!test::sanitized) {
      EXPECT_LT(peak, before + std::size_t{16} * 1024 * 1024);
    }
  }
}

/// Sends requests until `done`. Opens another connection when the server closes one.
Task<> ask(Endpoint to, const bool& done, int& answered) {
  while (!done) {
    auto stream = co_await TcpStream::connect(to);
    EXPECT_TRUE(stream) << stream.error().message();
    if (!stream) co_return;
    Buffer in;
    for (bool is_persistent = true; is_persistent && !done;) {
      EXPECT_TRUE(co_await stream->write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
      const auto reply = co_await test::read_reply(*stream, in);
      EXPECT_TRUE(reply) << reply.error().message();
      if (!reply) co_return;
      is_persistent = reply->is_persistent;
      ++answered;
    }
  }
}

/// The same over HTTP/2, with requests that are not repeated unless the server has certainly not
/// processed them: those above the last stream of GOAWAY.
Task<> post(http::Client& client, std::string url, const bool& done, int& answered) {
  while (!done) {
    http::ClientRequest request(http::Method::post, url, Buffer("body"));
    auto response = co_await client.send(std::move(request));
    EXPECT_TRUE(response) << response.error().message();
    if (!response) co_return;
    const auto text = co_await response->read_text();
    EXPECT_TRUE(text) << text.error().message();
    if (!text) co_return;
    EXPECT_EQ(*text, "hello");
    ++answered;
  }
}

/// Servers on one address follow each other 20 times while clients send requests.
void replace_servers(http::VersionChoice version) {
  EventLoop loop;
  const auto hello = [](Request&, Response& response) { response.send("hello"); };
  const auto slow = [](Request&, Response& response) -> Task<> {
    static_cast<void>(co_await sleep_for(1ms));
    response.send("hello");
  };
  http::ServerOptions patient;
  patient.drain_timeout = 1min;
  auto first = http::Server::listen(loop, Endpoint::loopback_v4(0), hello, patient);
  ASSERT_TRUE(first);
  auto server = std::make_unique<http::Server>(std::move(*first));
  bool done = false;
  int answered = 0;
  http::ClientOptions options;
  options.version = version;
  http::Client client(loop, std::move(options));
  const std::string url = "http://" + server->endpoint().to_string() + "/";
  TaskScope clients(loop);
  for (int i = 0; i < 20; ++i)
    clients.spawn(version == http::VersionChoice::http_2 ? post(client, url, done, answered)
                                                         : ask(server->endpoint(), done, answered));
  const auto run_until = [&loop](const auto& condition) {
    bool late = false;
    Timer limit(loop, [&late] { late = true; });
    limit.start(1min);
    while (!late && !condition()) loop.run_once();
    EXPECT_FALSE(late);
  };
  for (int i = 0; i < 20; ++i) {
    const int before = answered;
    run_until([&] { return answered > before + 100; });
    UniqueFd listener(::dup(server->fd()));
    auto next = i % 2 == 0 ? http::Server::adopt(loop, std::move(listener), slow, patient)
                           : http::Server::adopt(loop, std::move(listener), hello, patient);
    ASSERT_TRUE(next);
    bool is_shut = false;
    spawn(loop, [](http::Server& old, bool& ended) -> Task<> {
      co_await old.shut_down(1min);
      ended = true;
    }(*server, is_shut));
    run_until([&] { return is_shut; });
    server = std::make_unique<http::Server>(std::move(*next));
  }
  done = true;
  run_until([&] { return clients.empty(); });
  EXPECT_GT(answered, 2000);
  const auto& stats = client.http_2_stats();
  EXPECT_EQ(stats.streams_reset, 0U);
  if (version == http::VersionChoice::http_2) {
    EXPECT_GE(stats.goaways, 20U);
  }
}

TEST(HttpLoad, servers_replace_each_other_without_a_failed_request) {
  replace_servers(http::VersionChoice::http_1);
}

TEST(HttpLoad, servers_of_http_2_replace_each_other_without_a_failed_request) {
  replace_servers(http::VersionChoice::http_2);
}

}  // namespace
}  // namespace tambour::load_test
