// The server on Tambour: connections with callbacks, or, with TAMBOUR_BENCH_STYLE=tasks, a task per
// connection. TAMBOUR_BENCH_SPIN_US, if set, is the time for which the loop spins, in microseconds.
#include <tambour/tambour.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "common/observed.h"
#include "server/server.h"

namespace {

tambour::LoopOptions loop_options() {
  tambour::LoopOptions options;
  if (const char* spin_us = std::getenv("TAMBOUR_BENCH_SPIN_US"))
    options.spin = std::chrono::microseconds(std::atoi(spin_us));
  return options;
}

tambour::Task<> echo(tambour::TcpStream peer) {
  tambour::Buffer buffer;
  while (const auto got = co_await peer.read(buffer)) {
    if (*got == 0 || !co_await peer.write(buffer)) break;
  }
}

class Tambour {
 public:
  explicit Tambour(const bench::ServerOptions& options)
      : observed_(loop_, options.metrics_port),
        server_(listen(loop_, tambour::Endpoint::loopback_v4(options.port))) {
    const char* style = std::getenv("TAMBOUR_BENCH_STYLE");
    if (style != nullptr && std::string_view(style) == "tasks") {
      if (options.service != bench::Service::echo)
        bench::fail("TAMBOUR_BENCH_STYLE=tasks supports only echo workloads");
      server_.serve(echo);
    } else if (options.service == bench::Service::echo) {
      server_.serve({.on_message = [](tambour::Connection& connection, tambour::Buffer& buffer) {
        connection.send(std::move(buffer));
      }});
    } else {
      server_.serve(
          {.on_connection = [this](tambour::Connection& entry) { all_.add(entry); },
           .on_message =
               [this](auto&, tambour::Buffer& buffer) { all_.send(std::exchange(buffer, {})); }});
    }
  }

  void run() { loop_.run(); }

  bench::SubjectInfo info() const {
    return {"tambour", std::string(tambour::version), std::string(loop_.backend().name)};
  }

 private:
  static tambour::TcpServer listen(tambour::EventLoop& loop, const tambour::Endpoint& at) {
    auto server = tambour::TcpServer::listen(loop, at);
    if (!server) bench::fail("listening: " + server.error().message());
    return std::move(*server);
  }

  tambour::EventLoop loop_{loop_options()};
  bench::Observed observed_;
  tambour::TcpServer server_;
  tambour::ConnectionGroup all_{loop_};
};

}  // namespace

int main(int argc, char** argv) { return bench::run_server<Tambour>(argc, argv); }
