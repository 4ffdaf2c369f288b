// The routes of the service.
#include "service.h"

#include <cstddef>
#include <string>
#include <utility>

#include <tambour/http/error_renderer.h>
#include <tambour/http/router.h>
#include <tambour/http/time_limit.h>

using namespace tambour;

namespace {

/// What a client can make grow needs a limit.
constexpr std::size_t body_bytes_max = 64 * 1024;

void hello(http::Request& request, http::Response& response) {
  response.send("Hello, " + std::string(request.parameter("name")) + "!\n");
}

Task<> echo(http::Request& request, http::Response& response) {
  auto body = co_await request.body().read_all(body_bytes_max);
  if (!body) co_return;  // The server answers: 400, 408 or 413.
  // Without these, a browser could take what a client has sent for a page of this site.
  response.headers().set("Content-Type", "text/plain; charset=utf-8");
  response.headers().set("X-Content-Type-Options", "nosniff");
  response.send(body->to_string());
}

}  // namespace

Service::Service(metrics::Registry& registry) : registry_(registry), requests_(registry) {}

http::Handler Service::handler() {
  http::Router router;
  router.get("/hello/{name}", hello);
  router.post("/echo", echo);
  return std::move(router).handler();
}

http::Handler Service::operator_handler() {
  http::Router router;
  router.get("/metrics", http::metrics_handler(registry_));
  router.get("/health", [this](http::Request&, http::Response& response) {
    if (is_draining_) response.set_status(http::Status::service_unavailable);
    response.send(is_draining_ ? "draining\n" : "ok\n");
  });
  return std::move(router).handler();
}

http::ServerOptions Service::server_options() {
  http::ServerOptions options;
  options.error_renderer = http::render_json;
  options.on_response = [this](const http::Request& request, const http::Response& response) {
    requests_.record(request, response);
  };
  return options;
}
