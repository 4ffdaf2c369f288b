// Each allocation of a client, a reverse proxy and a server fails once, and each with the two after
// it.
#include <chrono>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "faults/allocations.h"

namespace tambour::http_proxy_test {
namespace {

using http::Request;
using http::Response;

/// Both framings of a response, an upload with an interim response, and a tunnel.
Task<> talk(EventLoop& loop, Endpoint proxy, std::string& received) {
  const std::string url = "http://" + proxy.to_string();
  http::Client client(loop);
  auto parts = co_await client.get(url + "/parts");
  if (!parts || parts->status() != http::Status::ok) co_return;
  auto text = co_await parts->read_text();
  if (!text) co_return;
  received += *text;
  http::ClientRequest post(url + "/post");
  post.method = http::Method::post;
  post.body = Buffer(std::string(80'000, 'p'));
  post.on_interim = [&received](const http::ResponseHead& head) {
    received += head.fields.get("Link").value_or("");
  };
  auto posted = co_await client.send(std::move(post));
  if (!posted || posted->status() != http::Status::ok) co_return;
  text = co_await posted->read_text();
  if (!text) co_return;
  received += *text;
  http::ClientRequest request(url + "/tunnel");
  or_throw(request.fields.set("Upgrade", "echo"));
  auto upgraded = co_await client.send(std::move(request));
  if (!upgraded) co_return;
  auto stream = upgraded->upgrade();
  if (!stream) co_return;
  const auto written = co_await stream->write(" echo");
  if (!written) co_return;
  static_cast<void>(co_await stream->shutdown_write());
  Buffer bytes;
  for (;;) {
    const auto got = co_await stream->read(bytes);
    if (!got || *got == 0) break;
  }
  received += bytes.to_string();
}

Task<> answer(int& posts, Request& request, Response& response) {
  if (request.path() == "/tunnel") {
    or_throw(response.headers().set("Upgrade", "echo"));
    auto stream = co_await response.upgrade();
    if (!stream) co_return;
    Buffer bytes;
    for (;;) {
      const auto got = co_await stream->read(bytes);
      if (!got) co_return;
      if (*got == 0) break;
    }
    static_cast<void>(co_await stream->write(bytes));
    co_return;
  }
  const auto body = co_await request.body().read_all();
  if (!body) co_return;
  if (request.path() == "/parts") {
    const auto first = co_await response.write("in ");
    if (first) static_cast<void>(co_await response.write("parts "));
    co_return;
  }
  ++posts;
  http::Fields links;
  or_throw(links.add("Link", "hint"));
  const auto sent = co_await response.send_interim(http::Status::early_hints, std::move(links));
  if (sent) response.send(std::to_string(body->size()));
}

std::string exchange(EventLoop& loop) {
  std::string received;
  int posts = 0;
  try {
    bool failed = false;
    http::ServerOptions options;
    options.listen.on_error = [&failed](const std::exception_ptr&) { failed = true; };
    auto server = http::Server::listen(
        loop, Endpoint::loopback_v4(0),
        [&posts](Request& request, Response& response) { return answer(posts, request, response); },
        options);
    if (!server) return "no memory";
    http::ReverseProxyOptions proxied;
    proxied.upstreams = {{"http://" + server->endpoint().to_string()}};
    auto proxy = http::ReverseProxy::create(loop, std::move(proxied));
    if (!proxy) return "no memory";
    auto front =
        http::Server::listen(loop, Endpoint::loopback_v4(0), proxy->handler(), std::move(options));
    if (!front) return "no memory";
    TaskScope client(loop);
    client.set_exception_handler([&failed](const std::exception_ptr&) { failed = true; });
    client.spawn(talk(loop, front->endpoint(), received));
    bool late = false;
    Timer limit(loop, [&late] { late = true; });
    limit.start(std::chrono::minutes(1));
    while (!late && (!client.empty() || front->connections() > 0)) loop.run_once();
    EXPECT_FALSE(late);
    EXPECT_LE(posts, 1);
    EXPECT_EQ(proxy->stats().active, 0U);
    if (failed) return "no memory";
  } catch (const std::bad_alloc&) {
    return "no memory";
  }
  return received;
}

TEST(HttpProxyMemory, allocations_may_fail_at_any_point) {
  EventLoop loop;
  const std::string expected = "in parts hint80000 echo";
  ASSERT_EQ(exchange(loop), expected);
  test::refuse_each_allocation([&] { return exchange(loop); },
                               [&](const std::string& received) {
                                 // A part, or the text of an error.
                                 EXPECT_TRUE(!received.ends_with("echo") || received == expected);
                               });
  EXPECT_EQ(exchange(loop), expected);
}

}  // namespace
}  // namespace tambour::http_proxy_test
