// The service of evhttp_before.cpp with Tambour: see docs/coming-from-evhttp.md.
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;
using http::Request;
using http::Response;

void hello(Request& request, Response& response) {
  const auto parameters = http::parse_query(request.query().value_or(""));
  if (!parameters) {  // More than 1,000.
    response.send(http::Status::bad_request);
    return;
  }
  std::string text = "Hello, ";
  for (const auto& [name, value] : *parameters) {
    if (name == "name") text += value;
  }
  response.headers().set("Content-Type", "text/plain");
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

/// Invoked with the exceptions of handlers.
void log_exception(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
}

int main() {
  EventLoop loop;
  http::Router router;
  router.get("/hello", hello).post("/echo", echo).get("/ticks", send_ticks);
  http::ServerOptions options;
  options.listen.on_error = log_exception;
  auto server = or_throw(
      http::Server::listen(loop, Endpoint::loopback_v4(0), std::move(router).handler(), options));
  std::printf("http://%s\n", server.endpoint().to_string().c_str());
  std::fflush(stdout);
  loop.run();
}
