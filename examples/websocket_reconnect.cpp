// A client of WebSockets that connects again, and continues after its last message. The server of
// this example closes each connection after three messages, as if it restarted.
//
//   build/examples/websocket_reconnect wss://example.org/numbers
//
// Without a URL, it serves itself and ends.
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

/// Sends the numbers after the last one that the client has received.
Task<> count(http::WebSocket& socket, http::Request& request) {
  const auto after = request.query_parameter("after");
  const int last = after ? std::stoi(*after) : 0;
  for (int number = last + 1; number <= last + 3; ++number) {
    const Result<> sent = co_await socket.send_text(std::to_string(number));
    if (!sent) co_return;
  }
  static_cast<void>(co_await socket.close(http::CloseCode::service_restart));
}

Task<> receive(EventLoop& loop, std::string url, int wanted, int& last) {
  http::Client client(loop);
  http::WebSocketClientOptions options;
  options.retry.delay = 10ms;
  options.on_failure = [](const http::WebSocketFailure& failure) {
    std::printf("disconnected: %s, code %d\n", failure.error.message().c_str(),
                static_cast<int>(failure.close_code));
  };
  // The id of the last message is part of each request.
  const auto request = [&] { return http::ClientRequest(url + "?after=" + std::to_string(last)); };
  http::WebSocketClient numbers(client, request, std::move(options));
  while (last < wanted) {
    const Result<http::WebSocketMessage> message = co_await numbers.receive();
    if (!message) {
      std::fprintf(stderr, "%s: %s\n", url.c_str(), message.error().message().c_str());
      break;
    }
    last = std::stoi(message->to_string());
    std::printf("%d\n", last);
  }
  static_cast<void>(co_await numbers.close());
  std::printf("%d connections\n", static_cast<int>(numbers.connections()));
  loop.stop();
}

int main(int argc, char** argv) try {
  EventLoop loop;
  int last = 0;
  if (argc > 1) {
    spawn(loop, receive(loop, argv[1], 1'000'000, last));
    return loop.run(), 0;
  }
  auto server =
      or_throw(http::Server::listen(loop, Endpoint::loopback_v4(0), http::serve_websocket(count)));
  spawn(loop, receive(loop, "ws://" + server.endpoint().to_string() + "/", 9, last));
  loop.run();
  return last == 9 ? 0 : 1;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
