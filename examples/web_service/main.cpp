// The program of the tutorial "A web service in an hour": notes as JSON, static files, TLS, an
// access log, and a graceful end on SIGINT and SIGTERM.
//
//   web_service DIRECTORY 127.0.0.1:8080
//   web_service DIRECTORY 0.0.0.0:443 CERTIFICATE KEY     also redirects from port 80
//
// With --demo instead of an address, it serves a client of its own and ends.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include <tambour/tambour.h>

#include "notes.h"

using namespace tambour;
using namespace std::chrono_literals;

void write_log(const http::AccessRecord& record) {
  std::printf("%s %lld us\n", http::format_combined(record).c_str(),
              static_cast<long long>(record.time_total / 1us));
}

TlsServerContext tls_context(const char* certificate, const char* key) {
  TlsServerOptions tls;
  tls.identities.push_back({TlsPem::file(certificate), TlsPem::file(key)});
  return or_throw(TlsServerContext::create(tls), "certificate");
}

Task<> end(EventLoop& loop, http::Server& server) {
  co_await server.shut_down(10s);  // Requests in progress are answered.
  loop.stop();
}

Task<> demonstrate(EventLoop& loop, http::Server& server, bool& works) {
  http::Client client(loop);
  const std::string url = "http://" + server.endpoint().to_string();
  auto added = co_await client.post(url + "/notes", "application/json", Buffer(R"({"text":"hi"})"));
  works = added && added->status() == http::Status::created;
  auto page = co_await client.get(url + "/");
  works = works && page && page->status() == http::Status::ok;
  co_await end(loop, server);
}

int main(int argc, char** argv) try {
  if (argc != 3 && argc != 5)
    return std::fprintf(stderr, "usage: %s DIRECTORY ADDRESS [CERTIFICATE KEY]\n", argv[0]), 2;
  const bool is_demo = std::string_view(argv[2]) == "--demo";
  const Endpoint at = or_throw(Endpoint::parse(is_demo ? "127.0.0.1:0" : argv[2]), argv[2]);

  Notes notes;
  http::Router router;
  router.use(http::strict_transport_security());
  notes.add_routes(router);
  router.get("/{path...}", http::serve_files(argv[1], {.cache_control = "max-age=60"}));

  http::ServerOptions options;
  options.on_response = http::access_log(write_log);
  options.listen.connections_max = 10'000;
  if (argc == 5) options.listen.tls = tls_context(argv[3], argv[4]);

  EventLoop loop;
  auto server = or_throw(http::Server::listen(loop, at, std::move(router).handler(), options),
                         "listen on " + at.to_string());
  std::optional<http::Server> plain;
  if (argc == 5)
    plain = or_throw(http::Server::listen(loop, at.with_port(80), http::redirect_to_https()),
                     "listen on port 80");
  std::printf("listening on %s\n", server.endpoint().to_string().c_str());

  const auto shut_down = [&](int) { spawn(loop, end(loop, server)); };
  Signal interrupt(loop, SIGINT, shut_down);
  Signal terminate(loop, SIGTERM, shut_down);
  or_throw(interrupt.start());
  or_throw(terminate.start());
  bool works = !is_demo;
  if (is_demo) spawn(loop, demonstrate(loop, server, works));
  loop.run();
  return works ? 0 : 1;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
