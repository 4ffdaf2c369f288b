// The proxy is http::ReverseProxy.
#include <tambour/tambour.h>

#include <string>
#include <utility>

#include "http_proxy/http_proxy.h"

namespace {

namespace http = tambour::http;

class Tambour {
 public:
  explicit Tambour(const bench::ServerOptions& options)
      : proxy_(tambour::or_throw(http::ReverseProxy::create(loop_, proxy_options(options)))),
        server_(tambour::or_throw(http::Server::listen(
            loop_, tambour::Endpoint::loopback_v4(options.port), proxy_.handler()))) {}

  void run() { loop_.run(); }

  bench::SubjectInfo info() const {
    return {"tambour", std::string(tambour::version), std::string(loop_.backend().name)};
  }

 private:
  static http::ReverseProxyOptions proxy_options(const bench::ServerOptions& options) {
    http::ReverseProxyOptions mode;
    mode.upstreams = {{"http://127.0.0.1:" + std::to_string(options.upstream_port)}};
    mode.idle_connections_max = 1024;
    return mode;
  }

  tambour::EventLoop loop_;
  http::ReverseProxy proxy_;
  http::Server server_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_http_proxy<Tambour>(argc, argv); }
