// On muduo's TcpServer, as its own ping-pong server is written.
#include <muduo/base/Logging.h>
#include <muduo/net/EventLoop.h>
#include <muduo/net/InetAddress.h>
#include <muduo/net/TcpServer.h>

#include <cstdlib>
#include <string>
#include <unordered_set>

#include "server/server.h"

namespace {

using muduo::net::TcpConnectionPtr;

class Muduo {
 public:
  explicit Muduo(const bench::ServerOptions& options)
      : server_(&loop_, muduo::net::InetAddress("127.0.0.1", options.port), "server") {
    // It would tell of each connection, on the standard output.
    muduo::Logger::setLogLevel(muduo::Logger::WARN);
    const bool spread = options.service == bench::Service::spread;
    server_.setConnectionCallback([this, spread](const TcpConnectionPtr& connection) {
      if (connection->connected()) {
        connection->setTcpNoDelay(true);
        if (spread) connections_.insert(connection);
      } else if (spread) {
        connections_.erase(connection);
      }
    });
    if (spread) {
      server_.setMessageCallback([this](auto&, muduo::net::Buffer* buffer, muduo::Timestamp) {
        const std::string message = buffer->retrieveAllAsString();
        for (const TcpConnectionPtr& each : connections_) each->send(message);
      });
    } else {
      server_.setMessageCallback([](const TcpConnectionPtr& connection, muduo::net::Buffer* buffer,
                                    muduo::Timestamp) { connection->send(buffer); });
    }
    server_.start();
  }

  void run() { loop_.loop(); }

  bench::About about() const {
    return {"muduo", "unknown", std::getenv("MUDUO_USE_POLL") != nullptr ? "poll" : "epoll"};
  }

 private:
  muduo::net::EventLoop loop_;
  muduo::net::TcpServer server_;
  std::unordered_set<TcpConnectionPtr> connections_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_server<Muduo>(argc, argv); }
