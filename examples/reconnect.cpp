// A client that keeps a connection to a server which restarts twice: callbacks, with increasing
// delays between attempts. Client and server run on one loop.
#include <cstdio>
#include <optional>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

/// Answers each line and, at the third, stops serving.
class LineServer {
 public:
  explicit LineServer(EventLoop& loop) : loop_(loop), again_(loop, [this] { listen(); }) {
    listen();
  }
  [[nodiscard]] std::uint16_t port() const { return at_.port(); }

 private:
  void listen() {
    server_.emplace(TcpServer::listen(loop_, at_).value());
    at_ = server_->endpoint();
    lines_ = 0;
    server_->serve({.on_message = [this](Connection& peer, Buffer& bytes) {
      peer.send(std::move(bytes));
      if (++lines_ < 3) return;
      server_.reset();
      again_.start(30ms);
    }});
  }

  EventLoop& loop_;
  Endpoint at_ = Endpoint::loopback_v4(0);
  std::optional<TcpServer> server_;
  Timer again_;
  int lines_ = 0;
};

int main() {
  EventLoop loop;
  LineServer server(loop);
  int answers = 0;
  std::optional<StreamClient> client;
  client.emplace(
      loop, "127.0.0.1", server.port(),
      ConnectionCallbacks{.on_connection =
                              [](Connection& local) {
                                std::printf("connected\n");
                                local.send("line\n");
                              },
                          .on_message =
                              [&](Connection& connection, Buffer& bytes) {
                                bytes.clear();
                                if (++answers == 8) return loop.stop();
                                connection.send("line\n");
                              },
                          .on_close = [](Connection&, Error) { std::printf("disconnected\n"); }},
      StreamClientOptions{
          .retry = {.attempts_max = RetryPolicy::unlimited, .delay = 5ms, .delay_max = 20ms},
          .on_failure = [](const ConnectFailure& failure) {
            std::printf("attempt %u: %s\n", failure.attempts, failure.error.describe().c_str());
          }});
  client->start();
  loop.run();
  std::printf("%d answers\n", answers);
  return answers == 8 ? 0 : 1;
}
