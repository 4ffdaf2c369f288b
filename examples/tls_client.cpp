// A client with mutual TLS: verifies the server, and proves its own identity with a certificate.
//
//   build/examples/tls_client HOST PORT AUTHORITIES CLIENT TEXT
//
// AUTHORITIES contains the certificates that are trusted, CLIENT the certificate of the client and
// its key; both are in PEM format. Sends TEXT as a line and prints the line that the server
// answers.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

Task<> talk(std::string host, int port, tls::ClientContext tls, std::string text, bool& done) {
  ConnectOptions options(tls);
  options.timeout = 10s;
  auto stream = co_await connect(host, port, options);
  if (!stream) {
    std::fprintf(stderr, "%s: %s\n", host.c_str(), stream.error().describe().c_str());
    co_return;
  }
  const auto server = stream->tls()->peer_certificate();
  std::printf("connected to %s%s\n", server->subject.c_str(),
              stream->tls()->is_resumed() ? ", resumed" : "");
  Buffer buffer;
  if (!co_await stream->write(text + "\n")) co_return;
  // In TLS 1.3, the server verifies the client after the client's handshake is complete. So the
  // first read reports that the server has refused the certificate.
  auto line = co_await timeout(10s, read_line(*stream, buffer));
  if (!line) {
    std::fprintf(stderr, "%s: %s\n", line.error().message().c_str(),
                 stream->tls()->failure().c_str());
    co_return;
  }
  std::printf("%s\n", line->to_string().c_str());
  // close() without it would look like truncation to the server.
  done = (co_await stream->shutdown_write()).has_value();
  static_cast<void>(co_await timeout(1s, stream->read(buffer)));
}

int main(int argc, char** argv) try {
  if (argc < 6) return std::fputs("tls_client HOST PORT AUTHORITIES CLIENT TEXT\n", stderr), 2;
  tls::ClientOptions options;
  options.authorities = tls::Pem::file(argv[3]);
  options.identities = {{.certificate = tls::Pem::file(argv[4])}};
  options.on_failure = [](const tls::Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.message.c_str());
  };
  const auto tls = or_throw(tls::ClientContext::create(options));
  EventLoop loop;
  bool done = false;
  spawn(loop, talk(argv[1], std::atoi(argv[2]), tls, argv[5], done));
  loop.run();
  return done ? 0 : 1;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
