// The echo server again, with callbacks: for those who come from muduo or libevent. Whoever says
// nothing for ten seconds is closed, and whoever does not read is read from no more.
//
//   callback_echo 127.0.0.1:7000
//
// Without an address, it serves a client of its own on a free port, and ends.
#include <cstdio>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

ConnectionCallbacks echo() {
  return {
      .on_connection = [](Connection& peer) { peer.set_idle_timeout(10s); },
      .on_message = [](Connection& peer, Buffer& bytes) { peer.send(std::move(bytes)); },
      .on_write_complete = [](Connection& peer) { peer.resume_reading(); },
      .on_high_water = [](Connection& peer, std::size_t) { peer.pause_reading(); },
      .high_water_bytes = 1'000'000,
      .on_close =
          [](Connection&, Error error) {
            std::printf("closed: %s\n", error ? error.message().c_str() : "by the peer");
          },
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
