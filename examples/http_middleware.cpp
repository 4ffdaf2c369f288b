// A service behind a reverse proxy, with the middleware that such a service needs:
// docs/middleware.md explains each step.
//
//   build/examples/http_middleware 127.0.0.1:8080
//   curl -u ann:secret http://127.0.0.1:8080/notes/7
//   curl http://127.0.0.1:8080/metrics
//
// Without an address, it serves a client of its own and ends.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;
using http::Request;
using http::Response;

void log_exception(const Request& request, const std::exception_ptr& thrown) try {
  std::rethrow_exception(thrown);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s: %s\n", std::string(http::request_id_of(request)).c_str(), error.what());
}

/// Prints the time that each route takes.
Task<> measure(Request& request, Response& response, const http::Handler& next) {
  const auto begin = std::chrono::steady_clock::now();
  co_await next.run(request, response);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
  std::printf("%s took %.1f ms\n", std::string(request.route()).c_str(), time.count());
}

struct Notes {
  std::string text = "buy milk";
  std::uint64_t version = 1;

  void show(Request& request, Response& response) const {
    const auto id = request.parameter_as<std::uint32_t>("id");
    if (!id) return;  // The server answers: 400 with the name of the parameter.
    if (*id != 7) return static_cast<void>(response.send_error(http::Status::not_found));
    const bool is_answered =
        http::evaluate_preconditions(request, response, {.tag = std::to_string(version)});
    if (!is_answered) response.send(text);
  }

  Task<> change(Request& request, Response& response) {
    const auto changed = co_await request.body().read_text();
    if (!changed) co_return;  // The server answers: 400, 408 or 413.
    http::ResourceVersion current;
    current.tag = std::to_string(version);
    if (http::evaluate_preconditions(request, response, current)) co_return;
    text = *changed;
    ++version;
    response.send(http::Status::no_content);
  }
};

http::Handler make_handler(Notes& notes, const metrics::Registry& registry) {
  http::Router router;
  const auto proxies = or_throw(IpNetwork::parse("127.0.0.0/8"));
  router.use(or_throw(http::client_address({.trusted = {proxies}})));
  router.use(or_throw(http::request_id({.trusted = {proxies}})));
  router.use(http::recover({.on_exception = log_exception}));
  router.use(or_throw(http::RateLimiter::create({.requests = 600, .period = 1min})).middleware());
  router.use(or_throw(http::time_limit(5s)));
  router.use(http::body_limit(100'000));
  router.use(measure);

  http::Router api;
  api.use(
      or_throw(http::basic_authentication("notes", http::fixed_credentials({{"ann", "secret"}}))));
  api.get("/{id}", [&](Request& request, Response& response) { notes.show(request, response); });
  api.put("/{id}", http::with_middleware({http::body_limit(1'000)},
                                         [&](Request& request, Response& response) {
                                           return notes.change(request, response);
                                         }));
  router.mount("/notes", std::move(api));

  router.get("/metrics", http::metrics_handler(registry));
  return std::move(router).handler();
}

Task<http::Status> change(http::Client& client, std::string url, std::string authorization) {
  http::ClientRequest request(http::Method::put, std::move(url), Buffer("buy bread"));
  request.fields.set("If-Match", "\"1\"");
  if (!authorization.empty()) request.fields.set("Authorization", authorization);
  auto response = co_await client.send(std::move(request));
  co_return or_throw(std::move(response), "request").status();
}

Task<> try_all(EventLoop& loop, std::string url, bool& is_ok) {
  http::BasicCredentials credentials;
  credentials.user = "ann";
  credentials.password = "secret";
  const std::string ann = or_throw(http::format_basic_credentials(credentials));
  http::Client client(loop);
  const http::Status anonymous = co_await change(client, url, "");
  const http::Status first = co_await change(client, url, ann);
  const http::Status second = co_await change(client, url, ann);
  is_ok = anonymous == http::Status::unauthorized && first == http::Status::no_content &&
          second == http::Status::precondition_failed;
  loop.stop();
}

int main(int argc, char** argv) try {
  const Endpoint at = or_throw(Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:0"));
  Notes notes;
  metrics::Registry registry;
  http::Metrics metrics(registry);
  http::ServerOptions options;
  options.error_renderer = http::render_negotiated;
  options.on_response = [&](const Request& request, const Response& response) {
    metrics.record(request, response);
  };
  EventLoop loop;
  auto server = or_throw(http::Server::listen(loop, at, make_handler(notes, registry), options));
  const std::string origin = "http://" + server.endpoint().to_string();
  std::fprintf(stderr, "listening on %s\n", origin.c_str());
  bool is_ok = argc > 1;
  if (!is_ok) spawn(loop, try_all(loop, origin + "/notes/7", is_ok));
  loop.run();
  return is_ok ? 0 : 1;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
