// The program of the tutorial "A web service in an hour", docs/web-service.md: notes as JSON,
// static files, an access log, TLS, and a graceful shutdown on SIGINT and SIGTERM. Serves the files
// of the directory www, and redirects from port 80 if it serves HTTPS on port 443:
//
//   build/examples/web_service [ADDRESS [CERTIFICATE KEY]]
#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <utility>

#include <tambour/tambour.h>

#include "notes.h"

using namespace tambour;
using namespace std::chrono_literals;

/// Invoked with the exceptions of handlers.
void log_exception(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
}

void log_response(const http::AccessRecord& record) {
  std::printf("%s\n", http::format_combined(record).c_str());
}

tls::ServerContext tls_context(const char* certificate, const char* key) {
  tls::ServerOptions tls;
  tls.identities.push_back({tls::Pem::file(certificate), tls::Pem::file(key)});
  return or_throw(tls::ServerContext::create(tls), "certificate");
}

int main(int argc, char** argv) try {
  const Endpoint at = or_throw(Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:8080"), "address");

  Notes notes;
  http::Router router;
  router.use(http::strict_transport_security());
  notes.add_routes(router);
  router.get("/{path...}", http::serve_files("www", {.cache_control = "max-age=60"}));

  http::ServerOptions options;
  options.listen.on_error = log_exception;
  options.listen.connections_max = 10'000;
  options.on_response = http::access_log(log_response);
  options.error_renderer = http::render_json;
  if (argc > 3) options.listen.tls = tls_context(argv[2], argv[3]);

  EventLoop loop;
  auto server = or_throw(http::Server::listen(loop, at, std::move(router).handler(), options),
                         "listen on " + at.to_string());
  std::optional<http::Server> redirect;
  if (argc > 3 && at.port() == 443)
    redirect = or_throw(http::Server::listen(loop, at.with_port(80), http::redirect_to_https()),
                        "listen on port 80");
  std::fprintf(stderr, "listening on %s\n", server.endpoint().to_string().c_str());

  // Requests in progress are answered.
  or_throw(run_until_signal(loop, 10s, server, redirect));
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
