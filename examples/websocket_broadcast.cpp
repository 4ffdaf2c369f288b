// Sends the time to many WebSockets, on every loop of a group. The message is serialized once, and
// a client that reads too slowly misses times, and delays no other.
//
//   build/examples/websocket_broadcast 127.0.0.1:8080     serves ws://127.0.0.1:8080/
//
// Without an address, it serves 100 clients of its own and ends.
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

http::WebSocketTopicOptions topic_options() {
  http::WebSocketTopicOptions options;
  options.when_slow = http::WhenSubscriberSlow::drop_oldest;  // An old time is worth nothing.
  options.backlog_bytes_max = 64 * 1024;
  return options;
}

/// Until the client closes the WebSocket, or the server shuts down.
Task<> serve(http::WebSocketTopic& times, http::WebSocket& socket) {
  times.subscribe(socket);
  while (true) {
    const Result<http::WebSocketMessage> message = co_await socket.receive();
    if (!message) co_return;
  }
}

Task<> listen(http::Client& client, std::string url, int& received) {
  http::WebSocket socket = or_throw(co_await http::connect_websocket(client, url));
  for (int i = 0; i < 3; ++i) {
    const Result<http::WebSocketMessage> message = co_await socket.receive();
    if (message) ++received;
  }
  static_cast<void>(co_await socket.close());
}

Task<> demonstrate(EventLoop& loop, std::string url, int& received) {
  http::ClientOptions options;
  options.connections_per_origin_max = 100;
  http::Client client(loop, options);
  TaskScope listeners(loop);
  for (int i = 0; i < 100; ++i) listeners.spawn(listen(client, url, received));
  co_await listeners.join();
  Signal::feed(loop, SIGTERM);
}

int main(int argc, char** argv) try {
  LoopGroup group;
  http::WebSocketTopic times(group, topic_options());
  const auto serve_times = [&times](http::WebSocket& socket, http::Request&) {
    return serve(times, socket);
  };
  const Endpoint at = or_throw(Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:0"));
  auto server = or_throw(http::ServerGroup::listen(group, at, http::serve_websocket(serve_times)));
  EventLoop loop;
  const Duration interval = argc > 1 ? 1s : 20ms;
  Timer clock(loop, [&times] {
    const auto seconds = std::chrono::system_clock::now().time_since_epoch() / 1s;
    // Fails only if a loop is so busy that it has not taken the times before.
    static_cast<void>(times.try_publish(http::WebSocketMessage(std::to_string(seconds))));
  });
  clock.start(interval, interval);
  int received = 0;
  if (argc < 2)
    spawn(loop, demonstrate(loop, "ws://" + server.endpoint().to_string() + "/", received));
  or_throw(run_until_signal(loop, 10s, server));
  const http::WebSocketTopicStats stats = times.stats();
  std::printf("%d times published, %d sent, %d dropped\n", static_cast<int>(stats.published),
              static_cast<int>(stats.sent), static_cast<int>(stats.dropped));
  return argc > 1 || received == 300 ? 0 : 1;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
