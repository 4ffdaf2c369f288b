// The server on muduo's TcpServer, written like muduo's ping-pong server.
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
    // muduo would log each connection to standard output.
    muduo::Logger::setLogLevel(muduo::Logger::WARN);
    const bool broadcast = options.service == bench::Service::broadcast;
    server_.setConnectionCallback([this, broadcast](const TcpConnectionPtr& connection) {
      if (connection->connected()) {
        connection->setTcpNoDelay(true);
        if (broadcast) connections_.insert(connection);
      } else if (broadcast) {
        connections_.erase(connection);
      }
    });
    if (broadcast) {
      server_.setMessageCallback([this](auto&, muduo::net::Buffer* buffer, muduo::Timestamp) {
        const std::string message = buffer->retrieveAllAsString();
        for (const TcpConnectionPtr& tcp_connection_ptr : connections_)
          tcp_connection_ptr->send(message);
      });
    } else {
      server_.setMessageCallback([](const TcpConnectionPtr& connection, muduo::net::Buffer* buffer,
                                    muduo::Timestamp) { connection->send(buffer); });
    }
    server_.start();
  }

  void run() { loop_.loop(); }

  bench::SubjectInfo info() const {
    return {"muduo", "unknown", std::getenv("MUDUO_USE_POLL") != nullptr ? "poll" : "epoll"};
  }

 private:
  muduo::net::EventLoop loop_;
  muduo::net::TcpServer server_;
  std::unordered_set<TcpConnectionPtr> connections_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_server<Muduo>(argc, argv); }
