// The server on Tambour: callbacks, or, with TAMBOUR_BENCH_STYLE=tasks, a task for each WebSocket;
// and a topic for broadcasts.
#include <tambour/tambour.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "websocket/websocket.h"

namespace {

namespace http = tambour::http;
using tambour::Result;
using tambour::Task;

class Tambour {
 public:
  explicit Tambour(const bench::ServerOptions& options)
      : topic_(loop_, topic_options(options)), server_(listen(options)) {}

  void run() { loop_.run(); }

  bench::SubjectInfo info() const {
    return {"tambour", std::string(tambour::version), std::string(loop_.backend().name)};
  }

 private:
  static Task<> echo(http::WebSocket& socket, http::Request& /*request*/) {
    while (true) {
      Result<http::WebSocketMessage> message = co_await socket.receive();
      if (!message) co_return;
      const Result<> sent = co_await socket.send(std::move(*message));
      if (!sent) co_return;
    }
  }

  Task<> broadcast(http::WebSocket& socket) {
    topic_.subscribe(socket);
    while (true) {
      Result<http::WebSocketMessage> message = co_await socket.receive();
      if (!message) co_return;
      const Result<> published = topic_.try_publish(std::move(*message));
      if (!published) co_return;
    }
  }

  static http::WebSocketTopicOptions topic_options(const bench::ServerOptions& options) {
    http::WebSocketTopicOptions chosen;
    if (options.deflate) chosen.compression.emplace();
    return chosen;
  }

  http::Handler tasks(bool is_broadcast, const http::WebSocketOptions& options) {
    http::WebSocketFunction serve = &echo;
    if (is_broadcast)
      serve = [this](http::WebSocket& socket, http::Request&) { return broadcast(socket); };
    return http::serve_websocket(std::move(serve), options);
  }

  http::Handler callbacks(bool is_broadcast, const http::WebSocketOptions& options) {
    http::WebSocketCallbacks serve;
    if (is_broadcast) {
      serve.on_open = [this](http::WebSocket& socket, http::Request&) { topic_.subscribe(socket); };
      serve.on_message = [this](http::WebSocket& socket, http::WebSocketMessage message) {
        if (!topic_.try_publish(std::move(message))) socket.abort();
      };
    } else {
      serve.on_message = [](http::WebSocket& socket, http::WebSocketMessage message) {
        if (!socket.try_send(std::move(message))) socket.abort();
      };
    }
    return http::serve_websocket(std::move(serve), options);
  }

  http::Server listen(const bench::ServerOptions& options) {
    http::WebSocketOptions chosen;
    chosen.message_bytes_max = bench::websocket_message_bytes_max;
    chosen.frame_bytes_max = bench::websocket_message_bytes_max;
    // A client with several large messages in flight does not read before it has sent them.
    chosen.unsent_bytes_max = std::size_t{4} * bench::websocket_message_bytes_max;
    if (options.deflate) chosen.compression.emplace();
    const char* const style = std::getenv("TAMBOUR_BENCH_STYLE");
    const bool uses_tasks = style != nullptr && std::string_view(style) == "tasks";
    const bool is_broadcast = options.service == bench::Service::broadcast;
    return tambour::or_throw(http::Server::listen(
        loop_, tambour::Endpoint::loopback_v4(options.port),
        uses_tasks ? tasks(is_broadcast, chosen) : callbacks(is_broadcast, chosen)));
  }

  tambour::EventLoop loop_;
  http::WebSocketTopic topic_;
  http::Server server_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_websocket<Tambour>(argc, argv); }
