// The echo server on muduo's TcpServer with a loop per thread; the loop of the main thread accepts.
#include <muduo/base/Logging.h>
#include <muduo/net/EventLoop.h>
#include <muduo/net/InetAddress.h>
#include <muduo/net/TcpServer.h>

#include "server/server.h"

namespace {

using muduo::net::TcpConnectionPtr;

class Muduo {
 public:
  explicit Muduo(const bench::ServerOptions& options)
      : server_(&loop_, muduo::net::InetAddress("127.0.0.1", options.port), "server") {
    // muduo would log each connection to standard output.
    muduo::Logger::setLogLevel(muduo::Logger::WARN);
    server_.setThreadNum(options.loops);
    server_.setConnectionCallback([](const TcpConnectionPtr& connection) {
      if (connection->connected()) connection->setTcpNoDelay(true);
    });
    server_.setMessageCallback([](const TcpConnectionPtr& connection, muduo::net::Buffer* buffer,
                                  muduo::Timestamp) { connection->send(buffer); });
    server_.start();
  }

  void run() { loop_.loop(); }

  bench::SubjectInfo info() const { return {"muduo", "unknown", "epoll"}; }

 private:
  muduo::net::EventLoop loop_;
  muduo::net::TcpServer server_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_server<Muduo>(argc, argv); }
