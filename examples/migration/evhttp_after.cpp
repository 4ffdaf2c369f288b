// The service of evhttp_before.cpp with Tambour: see docs/migrating-from-evhttp.md.
#include <chrono>
#include <cstdio>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;
using http::Request;
using http::Response;

void hello(Request& request, Response& response) {
  std::string text = "Hello, ";
  for (const auto& [name, value] : or_throw(http::parse_query(request.query().value_or("")))) {
    if (name == "name") text += value;
  }
  response.fields().set("Content-Type", "text/plain");
  response.send(text + "\n");
}

Task<> echo(Request& request, Response& response) {
  auto body = co_await request.body().read_all(1'000'000);
  if (!body) co_return;  // The server answers, for example with 413.
  response.send(std::move(*body));
}

Task<> send_ticks(Request& /*request*/, Response& response) {
  for (int sent = 0; sent < 3; ++sent) {
    const auto written = co_await response.write("tick " + std::to_string(sent) + "\n");
    if (!written || !co_await sleep_for(std::chrono::milliseconds(10))) co_return;
  }
}

int main() {
  EventLoop loop;
  http::Router router;
  router.get("/hello", hello).post("/echo", echo).get("/ticks", send_ticks);
  auto server =
      or_throw(http::Server::listen(loop, Endpoint::loopback_v4(0), std::move(router).handler()));
  std::printf("http://%s\n", server.endpoint().to_string().c_str());
  std::fflush(stdout);
  loop.run();
}
