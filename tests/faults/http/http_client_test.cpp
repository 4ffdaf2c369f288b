// Each allocation of the HTTP client fails once, and each with the two after it.
#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "faults/allocations.h"

namespace tambour::http_client_test {
namespace {

using http::Request;
using http::Response;

/// What the handlers have counted.
struct Counts {
  int posts = 0;
};

/// What the server returns on a stream of an extended CONNECT; empty after an error.
Task<std::string> echo_of(http::Client& client, std::string url) {
  auto opened = co_await client.extended_connect(http::ClientRequest(std::move(url)), "echo");
  if (!opened || !opened->stream.is_open()) co_return std::string();
  const auto sent = co_await opened->stream.write(std::string_view("echo "));
  if (!sent) co_return std::string();
  Buffer bytes;
  const auto got = co_await opened->stream.read(bytes);
  co_return got ? bytes.to_string() : std::string();
}

class Pieces final : public http::BodySource {
 public:
  Task<Result<>> read(Buffer& into) override {
    if (left_-- > 0) into.append(std::string(50'000, 'p'));
    co_return {};
  }

 private:
  int left_ = 2;
};

/// What the server says about a body that is produced in pieces; empty after an error.
Task<std::string> upload(http::Client& client, std::string url) {
  http::ClientRequest request(http::Method::put, std::move(url));
  request.source = std::make_unique<Pieces>();
  auto response = co_await client.send(std::move(request));
  if (!response) co_return std::string();
  const auto text = co_await response->read_text();
  co_return text ? *text + " " : std::string();
}

/// A redirect, a large request body, both framings of a response, and over HTTP/2 another protocol
/// and a body in pieces.
Task<> talk(EventLoop& loop, Endpoint server, http::VersionChoice version, std::string& received) {
  const std::string url = "http://" + server.to_string();
  http::ClientOptions options;
  options.version = version;
  http::Client client(loop, std::move(options));
  auto moved = co_await client.get(url + "/moved");
  if (!moved) co_return;
  auto text = co_await moved->read_text();
  if (!text) co_return;
  received += *text;
  if (version == http::VersionChoice::http_2) {
    received += co_await echo_of(client, url);
    received += co_await upload(client, url + "/source");
  }
  auto posted = co_await client.post(url + "/post", "text/plain", Buffer(std::string(80'000, 'p')));
  if (!posted) co_return;
  text = co_await posted->read_text();
  if (text) received += *text;
}

std::string exchange(EventLoop& loop, http::VersionChoice version) {
  std::string received;
  Counts counts;
  try {
    bool failed = false;
    http::ServerOptions options;
    options.listen.on_error = [&failed](const std::exception_ptr&) { failed = true; };
    auto server = http::Server::listen(
        loop, Endpoint::loopback_v4(0),
        [&counts](Request& request, Response& response) -> Task<> {
          if (request.method() == http::Method::connect) {
            auto stream = co_await response.upgrade();
            Buffer bytes;
            if (!stream) co_return;
            const auto got = co_await stream->read(bytes);
            if (!got) co_return;
            static_cast<void>(co_await stream->write(bytes));
            co_return;
          }
          auto body = co_await request.body().read_all();
          if (!body) co_return;
          if (request.path() == "/moved") {
            or_throw(response.headers().set("Location", "/there"));
            response.send(http::Status::found);
          } else if (request.path() == "/there") {
            if (!co_await response.write("in ")) co_return;
            static_cast<void>(co_await response.write("parts "));
          } else {
            counts.posts += request.path() == "/post" ? 1 : 0;
            response.send(std::to_string(body->size()));
          }
        },
        options);
    if (!server) return "no memory";
    TaskScope client(loop);
    client.set_exception_handler([&failed](const std::exception_ptr&) { failed = true; });
    client.spawn(talk(loop, server->endpoint(), version, received));
    bool late = false;
    Timer limit(loop, [&late] { late = true; });
    limit.start(std::chrono::minutes(1));
    while (!late && (!client.empty() || server->connections() > 0)) loop.run_once();
    EXPECT_FALSE(late);
    EXPECT_LE(counts.posts, 1);
    if (failed) return "no memory";
  } catch (const std::bad_alloc&) {
    return "no memory";
  }
  return received;
}

void refuse_each_allocation(http::VersionChoice version) {
  EventLoop loop;
  const bool is_http_2 = version == http::VersionChoice::http_2;
  const std::string expected = is_http_2 ? "in parts echo 100000 80000" : "in parts 80000";
  const std::set<std::string> possible = {expected, "in parts echo 80000", "in parts 100000 80000",
                                          "in parts 80000"};
  ASSERT_EQ(exchange(loop, version), expected);
  test::refuse_each_allocation(
      [&] { return exchange(loop, version); },
      [&](const std::string& received) {
        // A part, or the text of an error.
        EXPECT_TRUE(!received.ends_with("80000") || possible.contains(received)) << received;
      });
  EXPECT_EQ(exchange(loop, version), expected);
}

TEST(HttpClientMemory, allocations_may_fail_at_any_point) {
  refuse_each_allocation(http::VersionChoice::http_1);
}

TEST(HttpClientMemory, allocations_over_http_2_may_fail_at_any_point) {
  refuse_each_allocation(http::VersionChoice::http_2);
}

}  // namespace
}  // namespace tambour::http_client_test
