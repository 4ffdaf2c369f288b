// http::Server in simulations with resets, delays, short reads and writes, and failing system
// calls: no response is wrong, none belongs to another request, and nothing is left.
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/support/client.h"
#include "support/scale.h"

namespace tambour::faults_test {
namespace {

using namespace std::chrono_literals;
using http::Request;
using http::Response;
using test::read_reply;

Task<> answer(Request& request, Response& response) {
  auto body = co_await request.body().read_all();
  if (!body) co_return;
  const std::string text = std::string(request.path()) + " " + body->to_string();
  if (text.size() % 3 == 0) static_cast<void>(co_await sleep_for(10ms));
  if (text.size() % 2 == 0) {
    response.send(text);
    co_return;
  }
  for (std::size_t at = 0; at < text.size(); at += 100) {
    const auto written = co_await response.write(std::string_view(text).substr(at, 100));
    if (!written) co_return;
  }
}

/// Repeats each request until it is answered.
Task<> ask(sim::Simulation& simulation, Endpoint to, int client, int& answered) {
  TcpStream stream;
  Buffer in;
  for (int number = 0; number < 5;) {
    if (!stream.is_open()) {
      auto connected = co_await TcpStream::connect(to);
      if (!connected) {
        if (!co_await sleep_for(100ms)) co_return;
        continue;
      }
      stream = std::move(*connected);
      in.clear();
    }
    const std::string path = "/" + std::to_string(client) + "/" + std::to_string(number);
    const std::string body(simulation.random(3000), 'x');
    const std::string request =
        "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
        "\r\n\r\n" + body;
    const auto written = co_await stream.write(std::string_view(request));
    auto reply = Result<test::Reply>(std::unexpected(system_error(EPIPE)));
    if (written) reply = co_await timeout(100s, read_reply(stream, in));
    // A server without memory or descriptors may answer 500, and a slow network 408.
    const bool is_refused = reply && http::class_of(reply->status) >= 4;
    if (!reply || is_refused) {
      stream.close();
      if (!co_await sleep_for(100ms)) co_return;
      continue;
    }
    if (reply->body != path + " " + body) simulation.fail("a wrong response to " + path);
    if (!reply->is_persistent) stream.close();
    ++number;
    ++answered;
  }
}

TEST(HttpServerFaults, no_response_is_wrong_or_lost) {
  const auto scenario = [](sim::Simulation& simulation) {
    sim::Host& host = simulation.add_host("server");
    sim::Host& client_host = simulation.add_host("client");
    EventLoop server_loop(host.loop_options());
    EventLoop loop(client_host.loop_options());
    const sockaddr_in address = host.endpoint(80);
    const Endpoint at =
        Endpoint::from(reinterpret_cast<const sockaddr*>(&address), sizeof address).value();
    http::ServerOptions options;
    options.listen.on_error = [](const std::exception_ptr&) {};
    Result<http::Server> server = http::Server::listen(server_loop, at, answer, options);
    while (!server) server = http::Server::listen(server_loop, at, answer, options);
    int answered = 0;
    TaskScope clients(loop);
    for (int i = 0; i < 3; ++i) clients.spawn(ask(simulation, at, i, answered));
    simulation.run_for(60s);
    const sim::Options calm;
    simulation.options() = calm;
    simulation.run_for(30min);
    if (answered != 15) simulation.fail("answered: " + std::to_string(answered));
    if (server->connections() != 0) simulation.fail("connections are left");
  };
  const auto failure = sim::simulate({.count = test::scaled(1000)}, scenario);
  ASSERT_FALSE(failure) << failure->report();
}

}  // namespace
}  // namespace tambour::faults_test
