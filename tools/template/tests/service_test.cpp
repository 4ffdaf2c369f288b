// The tests of the service, in a simulation: the network delays bytes and cuts them into pieces as
// the seed decides, an hour takes no time, and each seed gives the same run again.
#include "service.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include <tambour/http/client.h>
#include <tambour/sim/simulation.h>
#include <tambour/task/scope.h>

using namespace tambour;
using namespace std::chrono_literals;

int failures = 0;

void expect(const std::string& got, const std::string& expected) {
  if (got == expected) return;
  ++failures;
  std::fprintf(stderr, "got %s, expected %s\n", got.c_str(), expected.c_str());
}

/// Sends a request, and returns the status and the body.
Task<std::string> ask(http::Client& client, http::ClientRequest request) {
  auto response = co_await client.send(std::move(request));
  if (!response) co_return response.error().message();
  const auto body = co_await response->read_text();
  co_return std::to_string(http::code_of(response->status())) + " " + body.value_or("cut off");
}

http::ClientRequest get(const std::string& path) {
  return {http::Method::get, "http://10.0.0.1" + path, {}};
}
http::ClientRequest post(const std::string& path, const std::string& body) {
  return {http::Method::post, "http://10.0.0.1" + path, Buffer(body)};
}

Task<> use_the_service(EventLoop& loop, Service& service, bool& done) {
  http::Client client(loop);
  expect(co_await ask(client, get("/hello/you")), "200 Hello, you!\n");
  expect(co_await ask(client, post("/echo", "a text")), "200 a text");
  const std::string large(100'000, 'x');
  const std::string refused = co_await ask(client, post("/echo", large));
  expect(refused.substr(0, 4), "413 ");

  expect(co_await ask(client, get(":9090/health")), "200 ok\n");
  service.drain();
  expect(co_await ask(client, get(":9090/health")), "503 draining\n");
  const std::string metrics = co_await ask(client, get(":9090/metrics"));
  const bool is_counted = metrics.find("route=\"/hello/{name}\"") != std::string::npos;
  expect(is_counted ? "counted" : metrics, "counted");
  done = true;
}

void run(std::uint64_t seed) {
  sim::Options network;
  network.short_read = network.short_write = 0.5;
  sim::Simulation simulation(seed, network);
  EventLoop server_loop(simulation.add_host("server").loop_options());  // 10.0.0.1
  EventLoop client_loop(simulation.add_host("client").loop_options());
  metrics::Registry registry;
  Service service(registry);
  const auto at = [](const char* text) { return or_throw(Endpoint::parse(text)); };
  auto server = or_throw(http::Server::listen(server_loop, at("10.0.0.1:80"), service.handler(),
                                              service.server_options()));
  auto operators =
      or_throw(http::Server::listen(server_loop, at("10.0.0.1:9090"), service.operator_handler()));
  bool done = false;
  spawn(client_loop, use_the_service(client_loop, service, done));
  simulation.run_for(1h);
  expect(done ? "done" : "not done", "done");
}

int main() {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) run(seed);
  std::printf("%d failures in 50 runs\n", failures);
  return failures == 0 ? 0 : 1;
}
