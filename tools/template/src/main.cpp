// Serves the service until SIGTERM or SIGINT, and then drains it: the requests in progress are
// answered, new connections are refused.
//
//   @NAME@ [ADDRESS [ADDRESS OF METRICS AND HEALTH [SECONDS]]]
//
// SECONDS: how long /health reports the drain before the server stops accepting; 1 by default.
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <tambour/process/run_until_signal.h>
#include <tambour/task/sleep.h>

#include "service.h"

using namespace tambour;
using namespace std::chrono_literals;

/// When the process gets a signal, /health answers 503 before the server stops accepting, so that
/// load balancers notice. A second signal ends this time and the grace period.
struct Draining {
  Service& service;
  http::Server& server;
  Duration notice;

  Task<> shut_down(Duration grace) {
    service.drain();
    co_await sleep_for(notice);
    co_await server.shut_down(grace);
  }
};

static std::chrono::seconds parse_seconds(std::string_view text) {
  unsigned seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::invalid_argument("not a number of seconds: " + std::string(text));
  return std::chrono::seconds(seconds);
}

int main(int argc, char** argv) try {
  const Endpoint at = or_throw(Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:8080"), "address");
  const Endpoint operators =
      or_throw(Endpoint::parse(argc > 2 ? argv[2] : "127.0.0.1:9090"), "address of metrics");
  const std::chrono::seconds notice = argc > 3 ? parse_seconds(argv[3]) : 1s;

  EventLoop loop;
  metrics::Registry registry;
  Service service(registry);
  auto server =
      or_throw(http::Server::listen(loop, at, service.handler(), service.server_options()),
               "listen on " + at.to_string());
  const auto operator_server =
      or_throw(http::Server::listen(loop, operators, service.operator_handler()),
               "listen on " + operators.to_string());
  std::fprintf(stderr, "listening on %s, metrics on %s\n", server.endpoint().to_string().c_str(),
               operator_server.endpoint().to_string().c_str());

  Draining draining{service, server, notice};
  or_throw(run_until_signal(loop, 10s, draining));
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
