// An echo server for datagrams with callbacks, and a client as a task. With an address, it serves
// there until it is interrupted:
//
//   build/examples/udp_echo 127.0.0.1:7000
//
// Without an address, it serves a client of its own on a free port and ends.
#include <chrono>
#include <cstdio>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;

/// Sends several requests in one batch and waits for the responses. Datagrams may be lost; the
/// client then sends the requests again.
Task<> ask(Endpoint server, int questions) {
  EventLoop& loop = *(co_await this_task).loop;
  auto socket = UdpSocket::bind(loop, Endpoint::loopback_v4(0));
  if (!socket || !socket->connect(server)) co_return;
  DatagramBatch batch;
  int answers = 0;
  for (int tries = 0; tries < 5 && answers < questions; ++tries) {
    batch.clear();
    for (int i = answers; i < questions; ++i) {
      const std::string text = "question " + std::to_string(i);
      if (!batch.add(std::as_bytes(std::span(text)))) break;
    }
    if (!co_await socket->send(batch)) continue;
    // Receives all available datagrams at once.
    while (answers < questions) {
      const auto receive = [](UdpSocket& from, DatagramBatch& into) -> Task<Result<std::size_t>> {
        co_return co_await from.receive(into);
      };
      const auto got = co_await timeout(std::chrono::seconds(1), receive(*socket, batch));
      if (!got) break;
      answers += static_cast<int>(*got);
    }
  }
  std::printf("%s: %d answers\n", server.to_string().c_str(), answers);
}

int main(int argc, char** argv) {
  const auto at = Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:0");
  if (!at) return std::fprintf(stderr, "%s: %s\n", argv[1], at.error().message().c_str()), 2;
  EventLoop loop;
  // With pktinfo, a response is sent from the address that received the request.
  auto server = UdpSocket::bind(loop, *at, {.pktinfo = true});
  if (!server) return std::fprintf(stderr, "%s\n", server.error().message().c_str()), 1;
  const auto served = server->serve({.on_datagrams = [](UdpSocket& socket, DatagramBatch& batch) {
    // Sends each datagram back to its source. If the socket buffer is full, datagrams are dropped.
    static_cast<void>(socket.try_send(batch));
  }});
  if (!served) return 1;
  if (argc < 2) {
    spawn(loop, [](UdpSocket& udp_socket, Endpoint to) -> Task<> {
      co_await ask(to, 10);
      udp_socket.close();
    }(*server, or_throw(server->local_endpoint())));
  }
  loop.run();
}
