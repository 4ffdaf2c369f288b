// Each allocation of requests that pass through middleware fails once, and each with the two after
// it: the client gets a whole response or none, and the server serves the next one.
#include <chrono>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "faults/allocations.h"

namespace tambour::http_middleware_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::Response;

Task<> answer(Request& request, Response& response) {
  const auto id = request.parameter_as<unsigned>("id");
  if (!id) co_return;
  const auto limit = request.query_parameter_as<unsigned>("limit");
  if (!limit) co_return;
  http::Fields links;
  links.add("Link", "</a.css>; rel=preload");
  const Result<> sent = co_await response.send_interim(http::Status::early_hints, std::move(links));
  if (!sent) co_return;
  http::ResourceVersion version;
  version.tag = "v1";
  if (*id == 2 && http::evaluate_preconditions(request, response, version)) co_return;
  response.send("number " + std::to_string(*id));
}

http::Handler make_handler() {
  http::Router router;
  const auto local = or_throw(IpNetwork::parse("127.0.0.0/8"));
  router.use(or_throw(http::client_address({.trusted = {local}})));
  router.use(or_throw(http::request_id({.trusted = {local}})));
  router.use(or_throw(http::RateLimiter::create({.requests = 1'000'000})).middleware());
  router.use(http::recover());
  router.use(or_throw(http::time_limit(1h)));
  router.use(http::body_limit(1000));
  router.use(
      or_throw(http::basic_authentication("a", http::fixed_credentials({{"ann", "secret"}}))));
  router.use(http::add_entity_tags());
  router.get("/{id}", answer);
  return std::move(router).handler();
}

std::string request_to(std::string_view target, std::string_view fields) {
  std::string text = "GET ";
  text.append(target).append(" HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\n");
  // ann:secret
  text.append("Authorization: Basic YW5uOnNlY3JldA==\r\nAccept: text/html\r\n").append(fields);
  return text.append("\r\n");
}

Task<> talk(Endpoint to, std::string& received) {
  auto stream = co_await TcpStream::connect(to);
  if (!stream) co_return;
  const std::string requests = request_to("/1", "X-Request-Id: x\r\n") +
                               request_to("/2", "If-None-Match: \"v1\"\r\n") +
                               request_to("/x", "") + request_to("/4?limit=a", "") +
                               "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  const auto written = co_await stream->write(std::string_view(requests));
  if (!written) co_return;
  Buffer in;
  while ((co_await stream->read(in)).value_or(0) > 0) {
  }
  received = in.to_string();
}

/// Returns what the client has received, or "no memory" if an end has reported that.
std::string exchange(EventLoop& loop) {
  std::string received;
  try {
    bool failed = false;
    metrics::Registry registry;
    http::Metrics metrics(registry);
    http::ServerOptions options;
    options.error_renderer = http::render_negotiated;
    options.on_response = [&](const Request& request, const Response& response) {
      metrics.record(request, response);
    };
    options.on_exception = [&failed](const Request&, const std::exception_ptr&) { failed = true; };
    options.listen.on_error = [&failed](const std::exception_ptr&) { failed = true; };
    auto server = http::Server::listen(loop, Endpoint::loopback_v4(0), make_handler(), options);
    if (!server) return "no memory";
    TaskScope client(loop);
    client.set_exception_handler([&failed](const std::exception_ptr&) { failed = true; });
    client.spawn(talk(server->endpoint(), received));
    bool late = false;
    Timer limit(loop, [&late] { late = true; });
    limit.start(1min);
    while (!late && (!client.empty() || server->connections() > 0)) loop.run_once();
    EXPECT_FALSE(late);
    static_cast<void>(metrics::format_metrics(registry));
    if (failed) return "no memory";
  } catch (const std::bad_alloc&) {
    return "no memory";
  }
  return received;
}

TEST(HttpMiddlewareMemory, allocations_may_fail_at_any_point) {
  EventLoop loop;
  const std::string expected = exchange(loop);
  for (const char* text :
       {"HTTP/1.1 103 Early Hints\r\n", "X-Request-Id: x\r\n", "number 1", "304 Not Modified",
        "<p>the parameter \"id\" must be", "<p>the query parameter \"limit\" must be",
        "HTTP/1.1 401 Unauthorized\r\n"})
    ASSERT_NE(expected.find(text), std::string::npos) << text << " in " << expected;
  test::refuse_each_allocation([&] { return exchange(loop); },
                               [](const std::string& received) {
                                 // recover() has answered some with 500.
                                 EXPECT_TRUE(received == "no memory" || received.empty() ||
                                             received.starts_with("HTTP/1.1 "))
                                     << received;
                               });
  EXPECT_EQ(exchange(loop).size(), expected.size());
}

}  // namespace
}  // namespace tambour::http_middleware_test
