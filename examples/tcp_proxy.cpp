// A TCP proxy: forwards each connection to another address, and sends the client's address to it
// with the PROXY protocol (version 2).
//
//   build/examples/tcp_proxy 0.0.0.0:7000 127.0.0.1:8000
//
// Without arguments, it forwards to a server of its own, which responds with the client's address.
#include <cstdio>
#include <string>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

/// Forwards data until the end of the stream; an error on one side closes the other.
Task<> pass_on(Stream& from, Stream& to) {
  Buffer bytes;
  for (;;) {
    const auto got = co_await from.read(bytes);
    if (got && *got == 0) break;
    if (got && co_await to.write(bytes)) continue;
    from.close();
    to.close();
    co_return;
  }
  static_cast<void>(co_await to.shutdown_write());
}

Task<> proxy(TcpStream client, Endpoint target) {
  auto connected = co_await timeout(10s, TcpStream::connect(target));
  const auto source = client.peer_endpoint(), destination = client.local_endpoint();
  if (!connected || !source || !destination) co_return;
  TcpStream server = std::move(*connected);
  Buffer header;
  if (!append_proxy_header(header, {.source = *source, .destination = *destination})) co_return;
  if (!co_await server.write(header)) co_return;
  co_await when_all(pass_on(client, server), pass_on(server, client));
}

/// The server behind the proxy, used without arguments.
Task<> say_who(TcpStream stream) {
  const auto source = stream.peer_endpoint();
  if (!source || !co_await stream.write("you are " + source->to_string() + "\n")) co_return;
}

Task<> ask(TcpServer& front, TcpServer& back, bool& is_right) {
  if (auto stream = co_await TcpStream::connect(front.endpoint())) {
    Buffer in;
    auto answer = co_await timeout(5s, read_line(*stream, in));
    const std::string address = stream->local_endpoint()->to_string();
    std::printf("%s: %s\n", address.c_str(), answer ? answer->to_string().c_str() : "no answer");
    is_right = answer && *answer == "you are " + address;
  }
  co_await when_all(front.shut_down(1s), back.shut_down(1s));
}

int main(int argc, char** argv) {
  const bool is_demo = argc < 3;
  const auto at = Endpoint::parse(is_demo ? "127.0.0.1:0" : argv[1]);
  auto target = Endpoint::parse(is_demo ? "127.0.0.1:0" : argv[2]);
  if (!at || !target) return std::fputs("tcp_proxy ADDRESS:PORT TARGET:PORT\n", stderr), 2;
  EventLoop loop;
  auto front = TcpServer::listen(loop, *at);
  if (!front) return std::fprintf(stderr, "%s\n", front.error().message().c_str()), 1;
  bool is_right = !is_demo;
  Result<TcpServer> back = std::unexpected(Error());
  if (is_demo) {
    back = TcpServer::listen(loop, *target, {.proxy_protocol = ProxyProtocol::required});
    if (!back) return std::fprintf(stderr, "%s\n", back.error().message().c_str()), 1;
    back->serve(say_who);
    target = back->endpoint();
    spawn(loop, ask(*front, *back, is_right));
  }
  front->serve([&](TcpStream client) { return proxy(std::move(client), *target); });
  loop.run();
  return is_right ? 0 : 1;
}
