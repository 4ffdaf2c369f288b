// The server on Tambour: connections with callbacks, or, with TAMBOUR_BENCH_STYLE=tasks, a task per
// connection.
#include <tambour/tambour.h>

#include <cstdlib>
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

class Tambour {
 public:
  explicit Tambour(const bench::ServerOptions& options) : server_(listen(loop_, options)) {
    const char* style = std::getenv("TAMBOUR_BENCH_STYLE");
    if (style != nullptr && std::string_view(style) == "tasks") {
      server_.serve(serve);
      return;
    }
    server_.serve({.on_message = [](tambour::Connection& connection, tambour::Buffer& buffer) {
      const auto bytes = bench::requested_bytes(buffer.coalesce());
      if (!bytes) return;
      buffer.clear();
      connection.send(bench::answer_of(*bytes));
    }});
  }

  void run() { loop_.run(); }

  bench::SubjectInfo info() const {
    return {"tambour", std::string(tambour::version), std::string(loop_.backend().name)};
  }

 private:
  static tambour::TcpServer listen(tambour::EventLoop& loop, const bench::ServerOptions& options) {
    tambour::TlsServerOptions tls;
    const auto pem = tambour::TlsPem::file(options.folder + "/server.pem");
    for (int i = 0; i < options.names; ++i)
      tls.identities.push_back(
          {.certificate = pem, .key = pem, .server_names = {bench::name_of(i)}});
    tambour::ListenOptions how;
    how.tls = tambour::or_throw(tambour::TlsServerContext::create(tls));
    const auto at = tambour::Endpoint::loopback_v4(options.port);
    auto server = tambour::TcpServer::listen(loop, at, how);
    if (!server) bench::fail("listening: " + server.error().message());
    return std::move(*server);
  }

  tambour::EventLoop loop_;
  tambour::TcpServer server_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_tls<Tambour>(argc, argv); }
