// An echo server over TLS: echo.cpp with one argument more.
//
//   build/examples/tls_echo CERTIFICATE KEY ADDRESS:PORT [AUTHORITIES]
//
// The files are in PEM format. With AUTHORITIES, clients need a certificate that one of these has
// issued. Without an address, it serves a client of its own, which trusts CERTIFICATE.
#include <cstdio>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;

Task<> echo(TcpStream peer) {
  if (const auto certificate = peer.tls()->peer_certificate())
    std::printf("serving %s\n", certificate->subject.c_str());
  Buffer buffer;
  while (auto got = co_await peer.read(buffer)) {
    if (*got == 0 || !co_await peer.write(buffer)) co_return;
  }
}

Task<> ask(TcpServer& server, tls::ClientContext tls) {
  auto stream = co_await connect("localhost", server.endpoint().port(), tls);
  if (stream && co_await stream->write("hello\n")) {
    Buffer buffer;
    if (auto line = co_await read_line(*stream, buffer))
      std::printf("%s, with %s\n", line->to_string().c_str(),
                  std::string(stream->tls()->cipher()).c_str());
    static_cast<void>(co_await stream->shutdown_write());
    static_cast<void>(co_await stream->read(buffer));
  }
  co_await server.shut_down(std::chrono::seconds(1));
}

int main(int argc, char** argv) try {
  if (argc < 3) return std::fputs("tls_echo CERTIFICATE KEY [ADDRESS:PORT]\n", stderr), 2;
  const auto report = [](const tls::Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.message.c_str());
  };
  tls::ServerOptions options;
  options.identities = {{.certificate = tls::Pem::file(argv[1]), .key = tls::Pem::file(argv[2])}};
  options.on_failure = report;
  if (argc > 4) {
    options.authorities = tls::Pem::file(argv[4]);
    options.client_certificate = tls::PeerCertificate::required;
  }
  EventLoop loop;
  const Endpoint at = or_throw(Endpoint::parse(argc > 3 ? argv[3] : "127.0.0.1:0"));
  ListenOptions mode;
  mode.tls = or_throw(tls::ServerContext::create(options));
  auto server = or_throw(TcpServer::listen(loop, at, mode), "listen on " + at.to_string());
  server.serve(echo);
  std::printf("listening on %s\n", server.endpoint().to_string().c_str());
  std::fflush(stdout);
  if (argc < 4) {
    tls::ClientOptions trust;
    trust.authorities = tls::Pem::file(argv[1]);
    trust.on_failure = report;
    spawn(loop, ask(server, or_throw(tls::ClientContext::create(trust))));
  }
  loop.run();
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
