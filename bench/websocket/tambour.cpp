// The server on Tambour: a task for each WebSocket, and a topic for broadcasts.
#include <tambour/tambour.h>

#include <string>
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

  http::Server listen(const bench::ServerOptions& options) {
    http::WebSocketOptions chosen;
    chosen.message_bytes_max = bench::websocket_message_bytes_max;
    chosen.frame_bytes_max = bench::websocket_message_bytes_max;
    if (options.deflate) chosen.compression.emplace();
    http::WebSocketFunction serve = &echo;
    if (options.service == bench::Service::broadcast)
      serve = [this](http::WebSocket& socket, http::Request&) { return broadcast(socket); };
    return tambour::or_throw(http::Server::listen(loop_,
                                                  tambour::Endpoint::loopback_v4(options.port),
                                                  http::serve_websocket(std::move(serve), chosen)));
  }

  tambour::EventLoop loop_;
  http::WebSocketTopic topic_;
  http::Server server_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_websocket<Tambour>(argc, argv); }
