// A web service: routes with parameters, bodies that stream in both directions, an access log, and
// a graceful shutdown on SIGINT and SIGTERM.
//
//   build/examples/http_hello 127.0.0.1:8080
//   curl http://127.0.0.1:8080/hello/Ann
//   curl -T FILE http://127.0.0.1:8080/count
//
// Without an address, it serves a client of its own and ends.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;
using http::Request;
using http::Response;

void hello(Request& request, Response& response) {
  response.headers().set("Content-Type", "text/plain; charset=utf-8");
  response.send("Hello, " + std::string(request.parameter("name")) + "\n");
}

/// Counts the bytes of an upload of any size. Memory is used for one piece at a time.
Task<> count(Request& request, Response& response) {
  request.body().set_bytes_max(UINT64_MAX);
  std::uint64_t total = 0;
  while (!request.body().is_complete()) {
    const auto piece = co_await request.body().read();
    if (!piece) co_return;  // The server answers, for example with 408.
    total += piece->size();
  }
  response.send(std::to_string(total) + "\n");
}

/// Sends a line each 100 ms. write() waits for clients that read slowly.
Task<> ticks(Request&, Response& response) {
  for (int i = 0; i < 3; ++i) {
    const auto written = co_await response.write("tick " + std::to_string(i) + "\n");
    if (!written || !co_await sleep_for(std::chrono::milliseconds(100))) co_return;
  }
}

void log_response(const Request& request, const Response& response) {
  std::printf("%s %s: %d, %llu bytes\n", std::string(request.method().name()).c_str(),
              request.head().target.c_str(), http::code_of(response.status()),
              static_cast<unsigned long long>(response.body_bytes()));
}

/// Invoked with the exceptions of handlers, whose clients get 500.
void log_exception(const std::exception_ptr& thrown) try {
  std::rethrow_exception(thrown);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
}

/// Asks the server, and ends it as a signal would.
Task<> ask(http::Server& server, EventLoop& loop, bool& answered) {
  auto stream = or_throw(co_await TcpStream::connect(server.endpoint()), "connect");
  or_throw(
      co_await stream.write("GET /hello/world HTTP/1.1\r\nHost: test\r\n\r\n"
                            "PUT /count HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\n12345"
                            "GET /ticks HTTP/1.1\r\nHost: test\r\n\r\n"
                            "GET /missing HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"));
  Buffer received;
  while (or_throw(co_await stream.read(received), "read") > 0) {
  }
  answered = received.find("Hello, world") && received.find("\r\n\r\n5\n") &&
             received.find("tick 2") && received.find("404 Not Found");
  Signal::feed(loop, SIGTERM);
}

int main(int argc, char** argv) try {
  EventLoop loop;
  http::Router router;
  router.get("/hello/{name}", hello).put("/count", count).get("/ticks", ticks);
  const Endpoint at = or_throw(Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:0"));
  http::ServerOptions options;
  options.on_response = log_response;
  options.listen.on_error = log_exception;
  auto server = or_throw(http::Server::listen(loop, at, std::move(router).handler(), options),
                         "listen on " + at.to_string());
  std::fprintf(stderr, "listening on http://%s\n", server.endpoint().to_string().c_str());
  bool answered = argc > 1;
  if (!answered) spawn(loop, ask(server, loop, answered));
  or_throw(run_until_signal(loop, std::chrono::seconds(10), server));
  return answered ? 0 : 1;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
