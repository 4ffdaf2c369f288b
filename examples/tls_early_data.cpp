// Early data (0-RTT): a client that resumes a session sends its request with its first packets. The
// server answers a request that does no harm if it is repeated at once, and others only when the
// handshake is complete, because an attacker can replay early data.
//
//   build/examples/tls_early_data CERTIFICATE KEY
//
// The files are in PEM format. The program serves clients of its own, which trust CERTIFICATE.
#include <cstdio>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

bool is_idempotent(const Buffer& request) { return request.to_string().starts_with("GET "); }

Task<> answer(TcpStream stream) {
  Buffer request;
  if (!co_await timeout(10s, tls::read_early(stream, request))) co_return;
  if (!is_idempotent(request) && !co_await tls::complete_handshake(stream)) co_return;
  // If the line is not complete, this completes the handshake.
  const auto line = co_await timeout(10s, read_line(stream, request));
  if (!line) co_return;
  std::string text = line->to_string();
  text += stream.tls()->is_handshake_complete() ? " after" : " before";
  if (!co_await stream.write(text + " the handshake\n")) co_return;
  // The end of a stream requires a complete handshake.
  if (!co_await tls::complete_handshake(stream)) co_return;
  if (!co_await stream.shutdown_write()) co_return;
  static_cast<void>(co_await timeout(10s, stream.read(request)));
}

/// `request` must do no harm if the server gets it twice.
Task<> ask(Endpoint server, tls::ClientContext tls, std::string request) {
  auto stream = co_await TcpStream::connect(server);
  if (!stream) co_return;
  const auto done = co_await tls::connect(*stream, tls, "localhost", tls::Replayable(request));
  if (!done) co_return;
  // Without a session, or if the server has rejected the early data, it has not seen the request.
  const bool is_sent = stream->tls()->early_data() == tls::EarlyData::accepted;
  if (!is_sent && !co_await stream->write(request)) co_return;
  Buffer buffer;
  while (auto line = co_await read_line(*stream, buffer)) std::puts(line->to_string().c_str());
  static_cast<void>(co_await stream->shutdown_write());
}

Task<> ask_all(TcpServer& server, tls::ClientContext tls) {
  for (const char* const request : {"GET one\n", "GET two\n", "PUT three\n"})
    co_await ask(server.endpoint(), tls, request);
  co_await server.shut_down(1s);
}

int main(int argc, char** argv) try {
  if (argc < 3) return std::fputs("tls_early_data CERTIFICATE KEY\n", stderr), 2;
  tls::ServerOptions options;
  options.identities = {{.certificate = tls::Pem::file(argv[1]), .key = tls::Pem::file(argv[2])}};
  options.early_data_bytes_max = 4096;
  tls::ClientOptions trust;
  trust.authorities = tls::Pem::file(argv[1]);

  EventLoop loop;
  ListenOptions mode;
  mode.tls = or_throw(tls::ServerContext::create(options));
  mode.tls_early_data = true;
  auto server = or_throw(TcpServer::listen(loop, Endpoint::loopback_v4(0), mode));
  server.serve(answer);
  spawn(loop, ask_all(server, or_throw(tls::ClientContext::create(trust))));
  loop.run();
  const tls::Stats stats = mode.tls.stats();
  std::printf("%llu handshakes, %llu with early data\n", (unsigned long long)stats.handshakes,
              (unsigned long long)stats.early_data_accepted);
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
