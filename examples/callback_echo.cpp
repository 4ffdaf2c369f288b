// The echo server with callbacks, as in muduo or libevent. A connection that is idle for ten
// seconds is closed. While a client does not read, the server does not read from it either;
// limits.cpp shows the other limits.
//
//   build/examples/callback_echo 127.0.0.1:7000
//
// Without an address, it serves a client of its own on a free port, and ends.
#include <cstdio>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

ConnectionCallbacks echo() {
  return {
      .on_message = [](Connection& peer, Buffer& bytes) { peer.send(std::move(bytes)); },
      .on_close =
          [](Connection&, Error error) {
            std::printf("closed: %s\n", error ? error.message().c_str() : "by the peer");
          },
      .limits = {.idle_timeout = 10s},
  };
}

Task<> ask(TcpServer& server) {
  if (auto stream = co_await TcpStream::connect(server.endpoint())) {
    Buffer answer;
    if (co_await stream->write("hello") && co_await stream->read(answer))
      std::printf("%s\n", answer.to_string().c_str());
  }
  co_await server.shut_down(1s);
}

int main(int argc, char** argv) {
  const auto at = Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:0");
  if (!at) return std::fprintf(stderr, "%s: %s\n", argv[1], at.error().message().c_str()), 2;
  EventLoop loop;
  auto server = TcpServer::listen(loop, *at);
  if (!server) return std::fprintf(stderr, "%s\n", server.error().message().c_str()), 1;
  server->serve(echo());
  if (argc < 2) spawn(loop, ask(*server));
  loop.run();
}
