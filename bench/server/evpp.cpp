// The server on evpp's TCPServer, written like evpp's throughput server, without extra threads.
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
    const bool broadcast = options.service == bench::Service::broadcast;
    server_.SetConnectionCallback([this, broadcast](const evpp::TCPConnPtr& connection) {
      if (connection->IsConnected()) {
        connection->SetTCPNoDelay(true);
        if (broadcast) connections_.insert(connection);
      } else if (broadcast) {
        connections_.erase(connection);
      }
    });
    if (broadcast) {
      server_.SetMessageCallback([this](auto&, evpp::Buffer* buffer) {
        const std::string message = buffer->NextAllString();
        for (const evpp::TCPConnPtr& tcp_conn_ptr : connections_) tcp_conn_ptr->Send(message);
      });
    } else {
      server_.SetMessageCallback([](const evpp::TCPConnPtr& connection, evpp::Buffer* buffer) {
        connection->Send(buffer);
      });
    }
    if (!server_.Init() || !server_.Start()) bench::fail("listening");
  }

  void run() { loop_.Run(); }

  bench::SubjectInfo info() const { return {"evpp", "unknown", "epoll"}; }

 private:
  evpp::EventLoop loop_;
  evpp::TCPServer server_;
  std::unordered_set<evpp::TCPConnPtr> connections_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_server<Evpp>(argc, argv); }
