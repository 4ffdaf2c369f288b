// JSON of requests and responses with nlohmann's library: a body that is malformed, or not of the
// expected form, is answered with the reason.
//
//   build/examples/http_json 127.0.0.1:8080
//   curl -d '{"prices": [1.5, 2]}' http://127.0.0.1:8080/total
//
// Without an address, it serves a client of its own and ends.
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include <tambour/tambour.h>

using namespace tambour;
using nlohmann::json;

/// A type of the program, with its conversion from JSON.
struct Cart {
  std::vector<double> prices;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Cart, prices)

/// Reads the body as a T. Unless the handler answers, the server does: 400, 408, 413 or 415.
template <class T>
Task<Result<T>> read_json(http::Request& request) {
  if (request.headers().get("Content-Type").value_or("") != "application/json")
    co_return request.reject(http::ErrorCode::not_a_form, "the body must be application/json");
  const auto text = co_await request.body().read_text();
  if (!text) co_return std::unexpected(text.error());
  try {
    co_return json::parse(*text).template get<T>();
  } catch (const json::exception& exception) {
    co_return request.reject(http::ErrorCode::bad_parameter, exception.what());
  }
}

void send_json(http::Response& response, const json& value) {
  response.headers().set("Content-Type", "application/json");
  response.send(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

Task<> total(http::Request& request, http::Response& response) {
  const auto cart = co_await read_json<Cart>(request);
  if (!cart) co_return;
  double sum = 0;
  for (const double price : cart->prices) sum += price;
  json answer;
  answer["total"] = sum;
  send_json(response, answer);
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
  is_ok = sum == "{\"total\":3.5}" && json::parse(error)["status"] == 400;
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
