// The echo server on evpp's TCPServer with a loop per thread; the loop of the main thread accepts.
#include <evpp/buffer.h>
#include <evpp/event_loop.h>
#include <evpp/tcp_conn.h>
#include <evpp/tcp_server.h>

#include <string>

#include "server/server.h"

namespace {

class Evpp {
 public:
  explicit Evpp(const bench::ServerOptions& options)
      : server_(&loop_, "127.0.0.1:" + std::to_string(options.port), "server",
                std::uint32_t(options.loops)) {
    server_.SetConnectionCallback([](const evpp::TCPConnPtr& connection) {
      if (connection->IsConnected()) connection->SetTCPNoDelay(true);
    });
    server_.SetMessageCallback(
        [](const evpp::TCPConnPtr& connection, evpp::Buffer* buffer) { connection->Send(buffer); });
    if (!server_.Init() || !server_.Start()) bench::fail("listening");
  }

  void run() { loop_.Run(); }

  bench::SubjectInfo info() const { return {"evpp", "unknown", "epoll"}; }

 private:
  evpp::EventLoop loop_;
  evpp::TCPServer server_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_server<Evpp>(argc, argv); }
