// JSON of requests with simdjson, which parses gigabytes a second. A body that is malformed, or not
// of the expected form, is answered with the reason.
//
//   build/examples/http_simdjson 127.0.0.1:8080
//   curl -d '{"prices": [1.5, 2]}' http://127.0.0.1:8080/total
//
// Without an address, it serves a client of its own and ends.
#include <simdjson.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include <tambour/tambour.h>

using namespace tambour;

/// The sum of "prices". No value if the body is malformed, or of another form.
std::optional<double> total_of(simdjson::dom::parser& parser, const std::string& body) {
  simdjson::dom::array prices;
  if (parser.parse(body)["prices"].get(prices) != simdjson::SUCCESS) return std::nullopt;
  double sum = 0;
  for (const simdjson::dom::element price : prices) {
    double number = 0;
    if (price.get(number) != simdjson::SUCCESS) return std::nullopt;
    sum += number;
  }
  return sum;
}

Task<> total(http::Request& request, http::Response& response) {
  const auto body = co_await request.body().read_text();
  if (!body) co_return;  // The server answers: 400, 408 or 413.
  // A parser keeps its memory. The handler does not wait while it uses the one of its thread.
  thread_local simdjson::dom::parser parser;
  const std::optional<double> sum = total_of(parser, *body);
  if (!sum) {
    response.send_error(http::Status::bad_request, "expected {\"prices\": [...]}");
    co_return;
  }
  response.headers().set("Content-Type", "application/json");
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), *sum).ptr;
  response.send("{\"total\":" + std::string(digits.begin(), end) + "}");
}

Task<std::string> post(EventLoop& loop, std::string url, std::string body) {
  http::Client client(loop);
  http::ClientRequest request(http::Method::post, std::move(url), Buffer(body));
  request.fields.set("Content-Type", "application/json");
  auto response = or_throw(co_await client.send(std::move(request)), "request");
  co_return or_throw(co_await response.body().read_text(), "body");
}

Task<> try_all(EventLoop& loop, std::string url, bool& is_ok) {
  const std::string sum = co_await post(loop, url, "{\"prices\": [1.5, 2]}");
  const std::string error = co_await post(loop, url, "{\"prices\": 1}");
  is_ok = sum == "{\"total\":3.5}" && error.starts_with("{\"status\":400");
  loop.stop();
}

int main(int argc, char** argv) try {
  const Endpoint at = or_throw(Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:0"));
  http::Router router;
  router.post("/total", total);
  http::ServerOptions options;
  options.error_renderer = http::render_json;
  EventLoop loop;
  auto server =
      or_throw(http::Server::listen(loop, at, std::move(router).handler(), std::move(options)));
  const std::string origin = "http://" + server.endpoint().to_string();
  std::fprintf(stderr, "listening on %s\n", origin.c_str());
  bool is_ok = argc > 1;
  if (!is_ok) spawn(loop, try_all(loop, origin + "/total", is_ok));
  loop.run();
  return is_ok ? 0 : 1;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
