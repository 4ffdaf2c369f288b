// A service with problems, and an inspector that shows them: docs/observing.md explains how.
//
//   build/examples/inspector 127.0.0.1:8080 127.0.0.1:8081
//   curl http://127.0.0.1:8080/report     (or /news)
//   chromium http://127.0.0.1:8081/
//
// Without addresses, it asks itself and ends.
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;
using http::Request;
using http::Response;

/// Problem: computes on the thread of the loop, which serves nothing else meanwhile.
void send_report(Request& /*request*/, Response& response) {
  std::this_thread::sleep_for(120ms);
  response.send("a report\n");
}

/// Problem: a timer that does little, too often.
Task<> poll_for_work() {
  for (;;) {
    const Result<> slept = co_await sleep_for(1ms);
    if (!slept) co_return;
  }
}

/// Problem: asks a name server that does not answer.
Task<> update_prices(dns::Resolver& resolver) {
  for (;;) {
    static_cast<void>(co_await resolver.query("prices.example", dns::Type::a));
    const Result<> slept = co_await sleep_for(1s);
    if (!slept) co_return;
  }
}

/// Problem: waits for something that never happens, and keeps its connection.
Task<> wait_for_news(Request& /*request*/, Response& response) {
  const Result<> slept = co_await sleep_for(24h);
  if (slept) response.send("no news\n");
}

http::Handler make_handler() {
  http::Router router;
  router.get("/", [](Request&, Response& response) { response.send("hello\n"); });
  router.get("/report", send_report);
  router.get("/news", wait_for_news);
  return std::move(router).handler();
}

Task<std::string> ask(EventLoop& loop, std::string url) {
  http::Client client(loop);
  auto response = co_await client.get(std::move(url));
  if (!response) co_return response.error().message();
  auto text = co_await response->read_text();
  co_return text ? *text : text.error().message();
}

int main(int argc, char** argv) {
  const bool is_demo = argc < 3;
  const auto at = or_throw(Endpoint::parse(is_demo ? "127.0.0.1:0" : argv[1]));
  const auto debug_at = or_throw(Endpoint::parse(is_demo ? "127.0.0.1:0" : argv[2]));
  metrics::Registry registry;
  http::Metrics requests(registry);
  http::ServerOptions options;
  options.on_response = [&](const Request& request, const Response& response) {
    requests.record(request, response);
  };
  LoopGroup loops({.threads = 2});
  EventLoop loop;
  auto server =
      or_throw(http::ServerGroup::listen(loops, at, make_handler(), std::move(options)), "listen");

  auto silent = or_throw(UdpSocket::bind(loop, Endpoint::loopback_v4(0)));
  dns::Resolver resolver(loop, {.servers = {or_throw(silent.local_endpoint())}});
  spawn(loop, update_prices(resolver));

  inspector::Collector collector(registry);
  collector.add(loops, "web");
  collector.add(server, "api");
  collector.add(loop, resolver, "prices");
  const inspector::Inspector inspector(loops, {.title = "notes", .collector = &collector});
  auto debug = or_throw(inspector.listen(loop, debug_at), "listen");
  loops[1].post([&] { spawn(loops[1], poll_for_work()); });

  if (!is_demo) return or_throw(run_until_signal(loop, 1s, server, debug));
  const std::string url = "http://" + server.endpoint().to_string();
  const std::string debug_url = "http://" + debug.endpoint().to_string();
  for (const std::string& page : {url + "/report", debug_url + "/callbacks", debug_url + "/health"})
    std::printf("%s\n", block_on(loop, ask(loop, page)).c_str());
}
