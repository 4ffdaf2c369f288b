// A proxy that terminates TLS: decrypts each connection and forwards it to another server, on all
// processors. It loads a renewed certificate when its files change; a bad one is reported, and the
// proxy goes on with the former one.
//
//   tls_proxy CERTIFICATE KEY 0.0.0.0:443 127.0.0.1:80 [PROXY]
//
// With PROXY, it begins each connection with a header that describes the client and its TLS.
#include <cstdio>
#include <expected>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

/// Forwards data until the end of the stream; an error on one side closes the other.
Task<> pass_on(Stream& from, Stream& to) {
  Buffer bytes;
  for (;;) {
    const auto got = co_await from.read(bytes);
    if (got && *got == 0) break;
    if (got && co_await to.write(bytes)) continue;
    from.close();
    to.close();
    co_return;
  }
  static_cast<void>(co_await to.shutdown_write());
}

Task<> proxy(TcpStream client, Endpoint target, bool describes) {
  auto connected = co_await timeout(10s, TcpStream::connect(target));
  if (!connected) co_return;
  TcpStream server = std::move(*connected);
  const auto described = describe_client(client);
  if (!described) co_return;
  Buffer header;
  if (describes && !append_proxy_header(header, *described)) co_return;
  if (!co_await server.write(header)) co_return;
  co_await when_all(pass_on(client, server), pass_on(server, client));
}

void report(const tls::Failure& failure) { std::fprintf(stderr, "%s\n", failure.message.c_str()); }

void report_reload(const Result<void, tls::Failure>& result) {
  if (!result) return report(result.error());
  std::puts("loaded the certificate");
  std::fflush(stdout);
}

int main(int argc, char** argv) try {
  if (argc < 5) return std::fputs("tls_proxy CERTIFICATE KEY ADDRESS TARGET [PROXY]\n", stderr), 2;
  const Endpoint at = or_throw(Endpoint::parse(argv[3]), argv[3]);
  const Endpoint target = or_throw(Endpoint::parse(argv[4]), argv[4]);
  tls::ServerOptions options;
  options.identities = {{.certificate = tls::Pem::file(argv[1]), .key = tls::Pem::file(argv[2])}};
  options.on_failure = report;
  options.on_reload = report_reload;
  const auto tls = or_throw(tls::ServerContext::create(options));
  ListenOptions mode;
  mode.tls = tls;

  LoopGroup group;
  auto server = or_throw(TcpServerGroup::listen(group, at, mode), "listen on " + at.to_string());
  const bool describes = argc > 5;
  server.serve([=](TcpStream client) { return proxy(std::move(client), target, describes); });
  std::printf("listening on %s\n", server.endpoint().to_string().c_str());
  std::fflush(stdout);

  or_throw(run_until_signal(10s, server));
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
