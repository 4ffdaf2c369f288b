// An echo server with a loop on each processor. With an address, it serves there until it is
// interrupted:
//
//   build/examples/echo_on_all_processors 127.0.0.1:7000
//
// Without an address, it serves clients of its own on a free port and ends.
#include <csignal>
#include <cstdio>

#include <tambour/tambour.h>

using namespace tambour;

Task<> echo(TcpStream peer) {
  Buffer buffer;
  while (auto got = co_await peer.read(buffer)) {
    if (*got == 0 || !co_await peer.write(buffer)) co_return;
  }
}

Task<> ask(Endpoint server, int& answered) {
  auto stream = co_await TcpStream::connect(server);
  if (!stream || !co_await stream->write("hello")) co_return;
  const auto ended = co_await stream->shutdown_write();
  if (!ended) co_return;
  Buffer answer;
  while (auto got = co_await stream->read(answer)) {
    if (*got == 0) break;
  }
  if (answer == "hello") ++answered;
}

int main(int argc, char** argv) {
  const auto at = Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:0");
  if (!at) return std::fprintf(stderr, "%s: %s\n", argv[1], at.error().message().c_str()), 2;

  LoopGroup group({.pin = true, .name = "echo"});
  auto server = TcpServerGroup::listen(group, *at);
  if (!server) return std::fprintf(stderr, "%s\n", server.error().message().c_str()), 1;
  server->serve(echo);

  // The main thread has a loop of its own for signals.
  EventLoop loop;
  int answered = 0;
  constexpr int clients = 20;
  if (argc < 2) {
    spawn(loop, [](EventLoop& local, TcpServerGroup& served, int& count) -> Task<> {
      TaskScope asking(local);
      for (int i = 0; i < clients; ++i) asking.spawn(ask(served.endpoint(), count));
      co_await asking.join();
      Signal::feed(local, SIGTERM);
    }(loop, *server, answered));
  }
  if (!run_until_signal(loop, std::chrono::seconds(10), *server)) return 1;
  std::printf("served %llu\n", static_cast<unsigned long long>(server->accepted()));
  return argc < 2 && answered != clients ? 1 : 0;
}
