// Sends what is said to a server that is named, and prints the answer:
//
//   connect example.org:80 "GET / HTTP/1.0\r\n\r\n"
//
// Without arguments, it asks a server of its own, by way of an address where nobody listens.
#include <chrono>
#include <cstdio>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;

Task<> echo(TcpStream peer) {
  Buffer buffer;
  while (auto got = co_await peer.read(buffer)) {
    if (*got == 0 || !co_await peer.write(buffer)) co_return;
  }
}

template <class To>
Task<> ask(To to, std::string question, int& status) {
  auto stream = co_await connect(std::move(to), {.timeout = std::chrono::seconds(10), .rounds = 3});
  if (!stream) {
    std::fprintf(stderr, "%s\n", stream.error().message().c_str());
    co_return;
  }
  if (!co_await stream->write(question) || !stream->finish()) co_return;
  Buffer answer;
  while (auto got = co_await stream->read(answer)) {
    if (*got == 0) break;
  }
  const std::string from = stream->peer_endpoint().value_or(Endpoint()).to_string();
  std::printf("%s: %s\n", from.c_str(), answer.to_string().c_str());
  status = answer.empty() ? 1 : 0;
}

int main(int argc, char** argv) {
  EventLoop loop;
  int status = 1;
  if (argc > 2) {
    spawn(loop, ask(std::string(argv[1]), argv[2], status));
    loop.run();
    return status;
  }
  auto server = TcpServer::listen(loop, Endpoint::loopback_v4(0));
  if (!server) return 1;
  server->serve(echo);
  spawn(loop, [](TcpServer& own, int& result) -> Task<> {
    const std::uint16_t port = own.endpoint().port();
    // Named first: GCC 12 takes no braces inside co_await.
    const std::vector<Endpoint> both{Endpoint::loopback_v6(port), own.endpoint()};
    co_await ask(both, "hello", result);
    co_await own.shut_down(std::chrono::seconds(1));
  }(*server, status));
  loop.run();
  return status;
}
