// The echo server on Tambour with a loop per thread: a TcpServerGroup.
#include <tambour/tambour.h>

#include <cstddef>
#include <string>
#include <utility>

#include "server/server.h"

namespace {

class Tambour {
 public:
  explicit Tambour(const bench::ServerOptions& options)
      : group_({.threads = std::size_t(options.loops)}),
        server_(listen(group_, tambour::Endpoint::loopback_v4(options.port))) {
    server_.serve({.on_message = [](tambour::Connection& connection, tambour::Buffer& buffer) {
      connection.send(std::move(buffer));
    }});
  }

  void run() { group_.join(); }

  bench::SubjectInfo info() const {
    return {"tambour", std::string(tambour::version), std::string(group_[0].backend().name)};
  }

 private:
  static tambour::TcpServerGroup listen(tambour::LoopGroup& group, const tambour::Endpoint& at) {
    auto server = tambour::TcpServerGroup::listen(group, at);
    if (!server) bench::fail("listening: " + server.error().message());
    return std::move(*server);
  }

  tambour::LoopGroup group_;
  tambour::TcpServerGroup server_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_server<Tambour>(argc, argv); }
