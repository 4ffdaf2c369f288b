// Echo on Tambour: connections in the callback style, or, with TAMBOUR_BENCH_STYLE=tasks, a task
// for each.
#include <tambour/tambour.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "throughput/throughput.h"

namespace {

class Tambour {
 public:
  explicit Tambour(std::uint16_t port)
      : server_(listen(loop_, tambour::Endpoint::loopback_v4(port))) {
    const char* style = std::getenv("TAMBOUR_BENCH_STYLE");
    if (style != nullptr && std::string_view(style) == "tasks") {
      server_.serve([this](tambour::TcpStream peer) { return echo(std::move(peer)); });
    } else {
      server_.serve(
          {.on_message = [](tambour::Connection& connection,
                            tambour::Buffer& buffer) { connection.send(std::move(buffer)); },
           .on_close = [this](auto&, auto) { note_end(); }});
    }
  }

  void run() { loop_.run(); }

  bench::About about() const {
    return {"tambour", std::string(tambour::version), std::string(loop_.backend().name)};
  }

 private:
  static tambour::TcpServer listen(tambour::EventLoop& loop, const tambour::Endpoint& at) {
    auto server = tambour::TcpServer::listen(loop, at);
    if (!server) bench::fail("listening: " + server.error().message());
    return std::move(*server);
  }

  tambour::Task<> echo(tambour::TcpStream peer) {
    tambour::Buffer buffer;
    while (const auto got = co_await peer.read(buffer)) {
      if (*got == 0 || !co_await peer.write(buffer)) break;
    }
    note_end();
  }

  /// A connection has ended; it is still counted where it is a task.
  void note_end() {
    if (++ended_ == server_.accepted()) loop_.stop();
  }

  tambour::EventLoop loop_;
  tambour::TcpServer server_;
  std::uint64_t ended_ = 0;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_throughput<Tambour>(argc, argv); }
