// The server on Tambour: connections with callbacks, or, with TAMBOUR_BENCH_STYLE=tasks, a task per
// connection.
#include <tambour/tambour.h>

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "tls/tls.h"

namespace {

tambour::Task<> serve(tambour::TcpStream peer) {
  tambour::Buffer buffer;
  while (const auto got = co_await peer.read(buffer)) {
    if (*got == 0) break;
    const auto bytes = bench::requested_bytes(buffer.coalesce());
    if (!bytes) continue;
    buffer.clear();
    if (!co_await peer.write(bench::answer_of(*bytes))) break;
  }
}

tambour::ListenOptions with_tls(const bench::ServerOptions& options) {
  tambour::tls::ServerOptions tls;
  const auto pem = tambour::tls::Pem::file(options.folder + "/server.pem");
  for (int i = 0; i < options.names; ++i)
    tls.identities.push_back({.certificate = pem, .key = pem, .server_names = {bench::name_of(i)}});
  tambour::ListenOptions mode;
  mode.tls = tambour::or_throw(tambour::tls::ServerContext::create(tls));
  return mode;
}

template <class Server>
void serve_with(Server& server) {
  const char* style = std::getenv("TAMBOUR_BENCH_STYLE");
  if (style != nullptr && std::string_view(style) == "tasks") {
    server.serve(serve);
    return;
  }
  server.serve({.on_message = [](tambour::Connection& connection, tambour::Buffer& buffer) {
    const auto bytes = bench::requested_bytes(buffer.coalesce());
    if (!bytes) return;
    buffer.clear();
    connection.send(bench::answer_of(*bytes));
  }});
}

class Tambour {
 public:
  explicit Tambour(const bench::ServerOptions& options) {
    const auto at = tambour::Endpoint::loopback_v4(options.port);
    if (options.loops == 1) {
      server_ = tambour::or_throw(tambour::TcpServer::listen(loop_, at, with_tls(options)));
      serve_with(*server_);
      return;
    }
    group_.emplace(tambour::LoopGroupOptions{.threads = std::size_t(options.loops)});
    group_server_ =
        tambour::or_throw(tambour::TcpServerGroup::listen(*group_, at, with_tls(options)));
    serve_with(*group_server_);
  }

  void run() {
    if (group_) group_->join();
    loop_.run();
  }

  bench::SubjectInfo info() const {
    return {"tambour", std::string(tambour::version), std::string(loop_.backend().name)};
  }

 private:
  tambour::EventLoop loop_;
  std::optional<tambour::LoopGroup> group_;
  std::optional<tambour::TcpServer> server_;
  std::optional<tambour::TcpServerGroup> group_server_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_tls<Tambour>(argc, argv); }
