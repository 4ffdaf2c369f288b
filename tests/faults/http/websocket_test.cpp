// Each allocation of two WebSockets and a topic fails once, and each with the two after it.
#include <chrono>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "faults/allocations.h"

namespace tambour::websocket_test {
namespace {

using namespace std::chrono_literals;
using http::WebSocket;
using http::WebSocketMessage;

/// Subscribes, and sends each message to the peer, and to the subscribers. Closes at "restart".
Task<> serve(WebSocket& socket, http::WebSocketTopics& topics) {
  const Result<> subscribed = topics.subscribe(socket, "news");
  if (!subscribed) co_return;
  for (;;) {
    Result<WebSocketMessage> message = co_await socket.receive();
    if (!message) co_return;
    if (message->data == "restart") {
      static_cast<void>(co_await socket.close(http::CloseCode::service_restart));
      co_return;
    }
    const Result<> published =
        co_await topics.publish_except(socket, "news", WebSocketMessage(message->to_string()));
    if (!published) co_return;
    const Result<> sent = co_await socket.send(std::move(*message));
    if (!sent) co_return;
  }
}

http::WebSocketOptions socket_options() {
  http::WebSocketOptions options;
  options.compression.emplace();
  options.subprotocols = {"v1.a-subprotocol-that-no-short-string-holds"};
  options.close_timeout = 100ms;
  return options;
}

/// Counts the messages that come back.
Task<> talk(http::Client& client, std::string url, int& messages) {
  Result<WebSocket> opened = co_await http::connect_websocket(client, url, socket_options());
  if (!opened) co_return;
  WebSocket socket = std::move(*opened);
  for (const std::size_t size : {std::size_t{10}, std::size_t{2000}}) {
    const Result<> sent = co_await socket.send_text(std::string(size, 'x'));
    if (!sent) co_return;
    const Result<WebSocketMessage> message = co_await socket.receive();
    if (!message) co_return;
    ++messages;
  }
  const Result<> part = co_await socket.send_part(Buffer("begin "), false, true);
  if (!part) co_return;
  const Result<> end = co_await socket.send_part(Buffer("end"), true);
  if (!end || !socket.ping("payload")) co_return;
  const Result<WebSocketMessage> message = co_await socket.receive();
  if (message) ++messages;
  static_cast<void>(co_await socket.close(http::CloseCode::normal, "done"));
}

/// Counts the messages of two connections.
Task<> follow(http::Client& client, std::string url, int& messages) {
  http::WebSocketClientOptions options;
  options.websocket = socket_options();
  options.retry.attempts_max = 3;
  options.retry.delay = 1ms;
  options.on_open = [](WebSocket& socket) {
    const Result<> sent = socket.try_send(WebSocketMessage("a message that no short string holds"));
    if (!sent) socket.abort();
  };
  http::WebSocketClient follower(client, std::move(url), std::move(options));
  for (int i = 0; i < 2; ++i) {
    const Result<WebSocketMessage> message = co_await follower.receive();
    if (!message) co_return;
    ++messages;
    const Result<> sent = co_await follower.send_text("restart");
    if (!sent) co_return;
  }
  static_cast<void>(co_await follower.close());
}

Task<> use(http::Client& client, std::string url, int& messages) {
  co_await talk(client, url, messages);
  co_await follow(client, url, messages);
}

/// Returns the number of messages, or -1 if memory was exhausted outside the connections.
int exchange(EventLoop& loop) {
  int messages = 0;
  try {
    bool failed = false;
    http::WebSocketTopicsOptions options;
    options.options_for = [](std::string_view) {
      http::WebSocketTopicOptions chosen;
      chosen.when_slow = http::WhenSubscriberSlow::delay_publisher;
      chosen.compression.emplace();
      return chosen;
    };
    http::WebSocketTopics topics(loop, options);
    http::ServerOptions server_options;
    server_options.listen.on_error = [&failed](const std::exception_ptr&) { failed = true; };
    http::Handler handler = http::serve_websocket(
        [&topics](WebSocket& socket, http::Request&) { return serve(socket, topics); },
        socket_options());
    auto server = http::Server::listen(loop, Endpoint::loopback_v4(0), std::move(handler),
                                       std::move(server_options));
    if (!server) return -1;
    http::Client client(loop);
    TaskScope clients(loop);
    clients.set_exception_handler([&failed](const std::exception_ptr&) { failed = true; });
    clients.spawn(use(client, "ws://" + server->endpoint().to_string() + "/", messages));
    bool late = false;
    Timer limit(loop, [&late] { late = true; });
    limit.start(1min);
    while (!late && (!clients.empty() || server->connections() > 0)) loop.run_once();
    EXPECT_FALSE(late);
    EXPECT_EQ(topics.size(), 0);
    if (failed) return -1;
  } catch (const std::bad_alloc&) {
    return -1;
  }
  return messages;
}

TEST(WebSocketMemory, allocations_may_fail_at_any_point) {
  EventLoop loop;
  ASSERT_EQ(exchange(loop), 5);
  test::refuse_each_allocation([&] { return exchange(loop); }, [](auto) {});
  EXPECT_EQ(exchange(loop), 5);
}

}  // namespace
}  // namespace tambour::websocket_test
