// Sends a text to a server and prints the answer:
//
//   build/examples/connect example.org:80 "GET / HTTP/1.0\r\n\r\n"
//   build/examples/connect unix:/run/server.sock "status"
//
// Without arguments, it asks a server of its own: over TCP, where the first of two addresses
// refuses the connection, and over a Unix-domain socket.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;

template <class S>
Task<> echo(S peer) {
  Buffer buffer;
  while (auto got = co_await peer.read(buffer)) {
    if (*got == 0 || !co_await peer.write(buffer)) co_return;
  }
}

template <class To>
Task<> ask(To to, std::string question, int& status) {
  ConnectOptions options;
  options.timeout = std::chrono::seconds(10);
  options.retry.attempts_max = 3;
  auto stream = co_await connect(std::move(to), options);
  if (!stream) {
    std::fprintf(stderr, "%s\n", stream.error().describe().c_str());
    co_return;
  }
  // Before the answer: a socket whose connection has ended has no peer.
  const std::string from = stream->peer_endpoint().value_or(Endpoint()).to_string();
  if (!co_await stream->write(question)) co_return;
  if (!co_await stream->shutdown_write()) co_return;
  Buffer answer;
  while (auto got = co_await stream->read(answer)) {
    if (*got == 0) break;
  }
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
  const std::string name = "@tambour-connect-" + std::to_string(::getpid());
  auto local_server = UnixServer::listen(loop, or_throw(Endpoint::unix_name(name)));
  if (!server || !local_server) return 1;
  server->serve(echo<TcpStream>);
  local_server->serve(echo<UnixStream>);
  spawn(loop, [](TcpServer& own_server, UnixServer& local, int& result) -> Task<> {
    const std::uint16_t port = own_server.endpoint().port();
    // Named first: GCC 12 takes no braces inside co_await.
    const std::vector<Endpoint> both{Endpoint::loopback_v6(port), own_server.endpoint()};
    co_await ask(both, "hello", result);
    int local_result = 1;
    const std::string local_name = local.endpoint().to_string();
    co_await ask(local_name, "hello", local_result);
    result |= local_result;
    co_await own_server.shut_down(std::chrono::seconds(1));
    co_await local.shut_down(std::chrono::seconds(1));
  }(*server, *local_server, status));
  loop.run();
  return status;
}
