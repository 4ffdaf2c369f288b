// An echo server as a coroutine. With an address, it serves there until it is interrupted:
//
//   build/examples/echo 127.0.0.1:7000
//
// Without an address, it serves a client of its own on a free port and ends.
#include <cstdio>

#include <tambour/tambour.h>

using namespace tambour;

Task<> echo(TcpStream peer) {
  Buffer buffer;
  while (auto got = co_await peer.read(buffer)) {
    if (*got == 0 || !co_await peer.write(buffer)) co_return;
  }
}

Task<> ask(Endpoint server, const char* question) {
  auto stream = co_await TcpStream::connect(server);
  if (!stream || !co_await stream->write(question)) co_return;
  const auto ended = co_await stream->shutdown_write();
  if (!ended) co_return;
  Buffer answer;
  while (auto got = co_await stream->read(answer)) {
    if (*got == 0) break;
  }
  std::printf("%s: %s\n", server.to_string().c_str(), answer.to_string().c_str());
}

int main(int argc, char** argv) {
  const auto at = Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:0");
  if (!at) return std::fprintf(stderr, "%s: %s\n", argv[1], at.error().message().c_str()), 2;
  EventLoop loop;
  auto server = TcpServer::listen(loop, *at);
  if (!server) return std::fprintf(stderr, "%s\n", server.error().message().c_str()), 1;
  server->serve(echo);
  if (argc < 2) {
    spawn(loop, [](TcpServer& local) -> Task<> {
      co_await ask(local.endpoint(), "hello");
      co_await local.shut_down(std::chrono::seconds(1));
    }(*server));
  }
  loop.run();
}
