// An echo server for WebSockets, and a client that measures the time to it and back.
//
//   build/examples/websocket_echo 127.0.0.1:8080     serves ws://127.0.0.1:8080/
//   build/examples/websocket_echo ws://127.0.0.1:8080/
//
// Without an argument, it does both and ends.
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

Task<> echo(http::WebSocket& socket, http::Request& /*request*/) {
  while (true) {
    Result<http::WebSocketMessage> message = co_await socket.receive();
    if (!message) co_return;
    const Result<> sent = co_await socket.send(std::move(*message));
    if (!sent) co_return;
  }
}

Task<> measure(EventLoop& loop, std::string url, int& echoes) {
  http::Client client(loop);
  Result<http::WebSocket> opened = co_await http::connect_websocket(client, url);
  if (!opened) {
    std::fprintf(stderr, "%s: %s\n", url.c_str(), opened.error().message().c_str());
    co_return loop.stop();
  }
  http::WebSocket socket = std::move(*opened);
  const auto begin = std::chrono::steady_clock::now();
  for (; echoes < 1000; ++echoes) {
    const Result<> sent = co_await socket.send_text("Hello");
    const Result<http::WebSocketMessage> message = co_await socket.receive();
    if (!sent || !message || message->data != "Hello") break;
  }
  const auto time = std::chrono::steady_clock::now() - begin;
  std::printf("%d messages, %.1f us each\n", echoes, double(time / 1ns) / 1000 / (echoes + 1));
  static_cast<void>(co_await socket.close());
  loop.stop();
}

int main(int argc, char** argv) try {
  const std::string argument = argc > 1 ? argv[1] : "127.0.0.1:0";
  EventLoop loop;
  int echoes = 0;
  if (argument.starts_with("ws")) {
    spawn(loop, measure(loop, argument, echoes));
    return loop.run(), echoes == 1000 ? 0 : 1;
  }
  const Endpoint at = or_throw(Endpoint::parse(argument));
  auto server = or_throw(http::Server::listen(loop, at, http::serve_websocket(echo)));
  const std::string url = "ws://" + server.endpoint().to_string() + "/";
  std::printf("%s\n", url.c_str());
  if (argc < 2) spawn(loop, measure(loop, url, echoes));
  loop.run();
  return echoes == 1000 ? 0 : 1;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
