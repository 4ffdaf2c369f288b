// A chat over WebSockets: what one visitor writes, all of them see. A visitor that reads too slowly
// is disconnected, and delays no other.
//
//   build/examples/websocket_chat 127.0.0.1:8080     then open http://127.0.0.1:8080 twice
//
// Without an address, it serves two clients of its own and ends.
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

const char* const page = R"(<!DOCTYPE html><title>Chat</title>
<form onsubmit="chat.send(text.value); text.value = ''; return false">
<input id="text" autofocus></form><ul id="list"></ul>
<script>
  const chat = new WebSocket('ws://' + location.host + '/chat');
  chat.onmessage = (event) => {
    list.appendChild(document.createElement('li')).textContent = event.data;
  };
</script>
)";

Task<> serve(http::WebSocketTopic& room, http::WebSocket& visitor) {
  room.subscribe(visitor);
  while (true) {
    Result<http::WebSocketMessage> message = co_await visitor.receive();
    if (!message) co_return;
    const Result<> published = room.try_publish(std::move(*message));
    if (!published) std::puts("The server is overloaded: a message was lost.");
  }
}

Task<> visit(http::Client& client, std::string url) {
  http::WebSocket alice = or_throw(co_await http::connect_websocket(client, url));
  http::WebSocket bob = or_throw(co_await http::connect_websocket(client, url));
  const Result<> sent = co_await alice.send_text("Hello, Bob!");
  const Result<http::WebSocketMessage> heard = co_await bob.receive();
  if (sent && heard) std::printf("Bob has heard: %s\n", heard->to_string().c_str());
  static_cast<void>(co_await alice.close());
  static_cast<void>(co_await bob.close());
}

int main(int argc, char** argv) {
  EventLoop loop;
  http::WebSocketTopicOptions room_options;
  room_options.backlog_bytes_max = 64 * 1024;  // A visitor that has not read as much is closed.
  http::WebSocketTopic room(loop, room_options);
  http::WebSocketOptions options;
  options.message_bytes_max = 4096;
  http::Router router;
  router.get("/", [](http::Request&, http::Response& response) {
    static_cast<void>(response.headers().set("Content-Type", "text/html; charset=utf-8"));
    response.send(page);
  });
  router.get("/chat",
             http::serve_websocket(
                 [&room](http::WebSocket& visitor, http::Request&) { return serve(room, visitor); },
                 options));

  const Endpoint at = or_throw(Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:0"));
  auto server = or_throw(http::Server::listen(loop, at, std::move(router).handler()));
  if (argc > 1) {
    std::printf("http://%s/\n", server.endpoint().to_string().c_str());
    loop.run();
    return 0;
  }
  http::Client client(loop);
  const std::string url = "ws://" + server.endpoint().to_string() + "/chat";
  spawn(loop, [&]() -> Task<> {
    co_await visit(client, url);
    loop.stop();
  });
  loop.run();
}
