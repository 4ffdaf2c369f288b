// The server on uWebSockets: its handlers, and its topics for broadcasts.
#include <uwebsockets/App.h>

#include <string_view>

#include "websocket/websocket.h"

namespace {

struct Session {};

class UWebSockets {
 public:
  explicit UWebSockets(const bench::ServerOptions& options) {
    const bool is_broadcast = options.service == bench::Service::broadcast;
    app_.ws<Session>(
        "/*", {.compression = options.deflate ? uWS::SHARED_COMPRESSOR : uWS::DISABLED,
               .maxPayloadLength = bench::websocket_message_bytes_max,
               .maxBackpressure = 4 * bench::websocket_message_bytes_max,
               .open =
                   [is_broadcast](auto* socket) {
                     if (is_broadcast) socket->subscribe("all");
                   },
               .message =
                   [this, is_broadcast](auto* socket, std::string_view message, uWS::OpCode code) {
                     const bool compress = message.size() >= 64;
                     if (is_broadcast)
                       app_.publish("all", message, code, compress);
                     else
                       socket->send(message, code, compress);
                   }});
    app_.listen("127.0.0.1", options.port, [](auto* listening) {
      if (listening == nullptr) bench::fail("uWebSockets does not listen");
    });
  }

  void run() { app_.run(); }

  static bench::SubjectInfo info() { return {"uwebsockets", "unknown", "epoll"}; }

 private:
  uWS::App app_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_websocket<UWebSockets>(argc, argv); }
