// The tests of the tutorial "A web service in an hour": the service and its client in a simulation,
// where an hour takes no time, and the network is as bad as we want it.
#include <netinet/in.h>

#include <chrono>
#include <cstdio>
#include <string>

#include <tambour/tambour.h>

#include "notes.h"

using namespace tambour;
using namespace std::chrono_literals;

int failures = 0;

void expect(bool holds, const char* text) {
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "failed: %s\n", text);
}

/// Sends a request, and returns the status and the body.
Task<std::string> ask(http::Client& client, http::ClientRequest request) {
  auto response = co_await client.send(std::move(request));
  if (!response) co_return response.error().message();
  const auto body = co_await response->read_text();
  co_return std::to_string(http::code_of(response->status())) + " " + body.value_or("cut off");
}

http::ClientRequest request(http::Method method, const std::string& path,
                            std::string_view body = {}) {
  return {method, "http://10.0.0.1" + path, Buffer(body)};
}

Task<> use_the_service(EventLoop& loop, bool& done) {
  using http::Method;
  http::Client client(loop);
  expect(co_await ask(client, request(Method::get, "/notes")) == "200 []\n", "no notes at first");
  expect(co_await ask(client, request(Method::post, "/notes", R"({"text":"buy milk"})")) ==
             "201 {\"id\":1,\"text\":\"buy milk\"}\n",
         "a note is added");
  expect(co_await ask(client, request(Method::get, "/notes/1")) ==
             "200 {\"id\":1,\"text\":\"buy milk\"}\n",
         "a note is found");
  for (const char* body : {"", "{", "[]", R"({"text":1})"}) {
    const std::string answer = co_await ask(client, request(Method::post, "/notes", body));
    expect(answer.starts_with("400 "), "malformed notes are refused");
  }
  const std::string spaces(20'000, ' ');
  const std::string large = co_await ask(client, request(Method::post, "/notes", spaces));
  expect(large.starts_with("413 "), "a large note is refused");
  expect(co_await ask(client, request(Method::delete_, "/notes/1")) == "204 ", "a note is removed");
  const std::string gone = co_await ask(client, request(Method::get, "/notes/1"));
  expect(gone.starts_with("404 "), "a removed note is missing");
  done = true;
}

/// Each seed is another run: with other delays and, if `is_rough`, with short reads and writes.
void run(std::uint64_t seed, bool is_rough) {
  sim::Options network;
  if (is_rough) network.short_read = network.short_write = 0.5;
  sim::Simulation simulation(seed, network);
  sim::Host& host = simulation.add_host("server");  // 10.0.0.1
  EventLoop server_loop(host.loop_options());
  EventLoop client_loop(simulation.add_host("client").loop_options());
  Notes notes;
  http::Router router;
  notes.add_routes(router);
  auto server = or_throw(http::Server::listen(server_loop, or_throw(Endpoint::parse("10.0.0.1:80")),
                                              std::move(router).handler()));
  bool done = false;
  spawn(client_loop, use_the_service(client_loop, done));
  simulation.run_for(1h);
  expect(done, "the client has ended");
  expect(server.connections() == 0, "no connection is left");
}

int main() {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) run(seed, seed > 10);
  std::printf("%d failures in 100 runs\n", failures);
  return failures == 0 ? 0 : 1;
}
