// On evpp's TCPServer, as its own throughput server is written, without threads beside the loop's.
#include <evpp/buffer.h>
#include <evpp/event_loop.h>
#include <evpp/tcp_conn.h>
#include <evpp/tcp_server.h>

#include <string>
#include <unordered_set>

#include "server/server.h"

namespace {

class Evpp {
 public:
  explicit Evpp(const bench::ServerOptions& options)
      : server_(&loop_, "127.0.0.1:" + std::to_string(options.port), "server", 0) {
    const bool spread = options.service == bench::Service::spread;
    server_.SetConnectionCallback([this, spread](const evpp::TCPConnPtr& connection) {
      if (connection->IsConnected()) {
        connection->SetTCPNoDelay(true);
        if (spread) connections_.insert(connection);
      } else if (spread) {
        connections_.erase(connection);
      }
    });
    if (spread) {
      server_.SetMessageCallback([this](auto&, evpp::Buffer* buffer) {
        const std::string message = buffer->NextAllString();
        for (const evpp::TCPConnPtr& each : connections_) each->Send(message);
      });
    } else {
      server_.SetMessageCallback([](const evpp::TCPConnPtr& connection, evpp::Buffer* buffer) {
        connection->Send(buffer);
      });
    }
    if (!server_.Init() || !server_.Start()) bench::fail("listening");
  }

  void run() { loop_.Run(); }

  bench::About about() const { return {"evpp", "unknown", "epoll"}; }

 private:
  evpp::EventLoop loop_;
  evpp::TCPServer server_;
  std::unordered_set<evpp::TCPConnPtr> connections_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_server<Evpp>(argc, argv); }
