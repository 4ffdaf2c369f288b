// A proxy that opens tunnels (CONNECT), and a client that connects through it.
//
//   build/examples/tunnel 127.0.0.1:3128
//   curl --proxytunnel --proxy http://127.0.0.1:3128 http://example.org/
//
// Without an address, a client of its own connects through the proxy to an echo server.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

template <class From, class To>
Task<> pass_on(From& from, To& to) {
  Buffer bytes;
  for (;;) {
    const auto got = co_await from.read(bytes);
    if (!got) break;
    if (*got == 0) co_return static_cast<void>(co_await to.shutdown_write());
    if (!co_await to.write(bytes)) break;
  }
  from.close();
  to.close();
}

Task<> serve(http::Request& request, http::Response& response) {
  // The client is not trusted: the target must not name a Unix socket.
  const std::string target(request.head().target);
  const std::size_t colon = std::min(target.rfind(':'), target.size());
  const std::string host = target.substr(0, colon);
  std::uint16_t port = 0;
  const std::string digits = target.substr(std::min(colon + 1, target.size()));
  std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (request.method() != http::Method::connect) {
    response.set_status(http::Status::method_not_allowed);
    co_return;
  }
  auto server = co_await connect(host, port);
  if (!server) {
    std::fprintf(stderr, "%s: %s\n", target.c_str(), server.error().describe().c_str());
    response.set_status(http::Status::bad_gateway);
    co_return;
  }
  auto client = co_await response.upgrade();
  if (!client) co_return;
  co_await when_all(pass_on(*client, *server), pass_on(*server, *client));
}

Task<> ask(http::Server& proxy, TcpServer& echo, bool& is_right) {
  ConnectOptions options;
  options.proxy = "http://" + proxy.endpoint().to_string();
  options.timeout = 10s;
  auto stream = co_await connect("localhost", echo.endpoint().port(), options);
  if (stream) {
    Buffer in;
    static_cast<void>(co_await stream->write("hello\n"));
    const auto answer = co_await read_line(*stream, in);
    is_right = answer && *answer == "hello";
    stream->close();
  }
  std::puts(is_right ? "through the proxy" : "not through the proxy");
  co_await when_all(proxy.shut_down(1s), echo.shut_down(1s));
}

int main(int argc, char** argv) {
  const auto at = Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:0");
  if (!at) return std::fprintf(stderr, "%s: %s\n", argv[1], at.error().message().c_str()), 2;
  EventLoop loop;
  auto proxy = or_throw(http::Server::listen(loop, *at, serve));
  auto echo = or_throw(TcpServer::listen(loop, Endpoint::loopback_v4(0)));
  echo.serve([](TcpStream stream) -> Task<> { co_await pass_on(stream, stream); });
  bool is_right = argc > 1;
  if (argc < 2) spawn(loop, ask(proxy, echo, is_right));
  loop.run();
  return is_right ? 0 : 1;
}
