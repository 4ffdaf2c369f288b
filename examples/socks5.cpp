// A SOCKS 5 proxy (RFC 1928): CONNECT to addresses and host names, without authentication.
//
//   build/examples/socks5 127.0.0.1:1080
//   curl --socks5-hostname 127.0.0.1:1080 http://example.org/
//
// Without an address, a client of its own connects through the proxy to an echo server of its own.
#include <arpa/inet.h>

#include <cstdio>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::literals;

Task<> pass_on(Stream& from, Stream& to, Buffer bytes = {}) {
  for (;;) {
    if (!bytes.empty() && !co_await to.write(bytes)) break;
    const auto got = co_await from.read(bytes);
    if (!got) break;
    if (*got == 0) co_return static_cast<void>(co_await to.shutdown_write());
  }
  from.close();
  to.close();
}

/// Reads the requested target. Fails with EAFNOSUPPORT or EOPNOTSUPP for unsupported address types
/// and commands.
Task<Result<std::vector<Endpoint>>> read_target(Stream& client, Buffer& in) {
  const auto read = co_await read_exactly(client, in, 5);
  if (!read) co_return std::unexpected(read.error());
  const std::string head = read->to_string();  // Version, command, 0, type, first byte of address.
  // The number of bytes that follow; the first byte of a name is its length.
  const std::size_t size = head[3] == 1 ? 3 : head[3] == 4 ? 15 : std::uint8_t(head[4]);
  if (!"\1\3\4"sv.contains(head[3])) co_return std::unexpected(system_error(EAFNOSUPPORT));
  const auto rest = co_await read_exactly(client, in, size + 2);
  if (!rest) co_return std::unexpected(rest.error());
  if (head[1] != 1) co_return std::unexpected(system_error(EOPNOTSUPP));
  const auto port = std::uint8_t((*rest)[size]) << 8 | std::uint8_t((*rest)[size + 1]);
  std::string host = rest->to_string().substr(0, size);
  if (const int family = head[3] == 1 ? AF_INET : AF_INET6; head[3] != 3) {
    char digits[INET6_ADDRSTRLEN];
    host = ::inet_ntop(family, (head[4] + host).data(), digits, sizeof digits);
  }
  co_return co_await Resolver::system().resolve(host, std::uint16_t(port));
}

std::string reply_to(const Error& error) {
  char reply = error ? 1 : 0;
  if (error == system_error(ENETUNREACH)) reply = 3;
  if (error == system_error(EHOSTUNREACH) || error == system_error(ETIMEDOUT)) reply = 4;
  if (error.category() == resolver_category())
    reply = 4;  // Host unreachable: the name does not exist.
  if (error == system_error(ECONNREFUSED)) reply = 5;
  if (error == system_error(EOPNOTSUPP)) reply = 7;
  if (error == system_error(EAFNOSUPPORT)) reply = 8;
  return "\5"s + reply + "\0\1\0\0\0\0\0\0"s;
}

Task<> serve(TcpStream client) {
  Buffer in;
  const auto hello = co_await timeout(10s, read_exactly(client, in, 2));
  if (!hello || (*hello)[0] != std::byte{5}) co_return;
  const auto methods = co_await read_exactly(client, in, std::to_integer<std::size_t>((*hello)[1]));
  const bool may_come = methods && methods->find('\0');
  const auto method = may_come ? "\5\0"sv : "\5\xff"sv;
  if (!co_await client.write(method) || !may_come) co_return;
  const auto target = co_await timeout(10s, read_target(client, in));
  Result<SocketStream> server = std::unexpected(target ? Error() : target.error());
  ConnectOptions options;
  options.timeout = 10s;
  if (target) server = co_await connect(*target, options);
  const std::string reply = reply_to(server ? Error() : server.error());
  if (!co_await client.write(reply) || !server) co_return;
  co_await when_all(pass_on(client, *server, std::move(in)), pass_on(*server, client));
}

Task<bool> ask(TcpServer& proxy, std::uint16_t port, std::string host) {
  auto stream = co_await TcpStream::connect(proxy.endpoint());
  const std::string there = "\5\1\0\5\1\0"s + host + char(port >> 8) + char(port & 255);
  if (!stream || !co_await stream->write(there + "hello\n")) co_return false;
  Buffer in;
  const auto replies = co_await timeout(20s, read_exactly(*stream, in, 12));
  auto answer = co_await timeout(5s, read_line(*stream, in));
  co_return replies && (*replies)[3] == std::byte{0} && answer && *answer == "hello";
}

Task<> ask_both(TcpServer& proxy, TcpServer& echo, std::uint16_t port, bool& is_right) {
  const bool by_address = co_await ask(proxy, port, "\1\x7f\0\0\1"s);
  is_right = co_await ask(proxy, port, "\3\x09localhost"s) && by_address;
  std::puts(is_right ? "through the proxy, by address and name" : "not through the proxy");
  co_await when_all(proxy.shut_down(1s), echo.shut_down(1s));
}

int main(int argc, char** argv) {
  const auto at = Endpoint::parse(argc > 1 ? argv[1] : "127.0.0.1:0");
  if (!at) return std::fprintf(stderr, "%s: %s\n", argv[1], at.error().message().c_str()), 2;
  EventLoop loop;
  auto server = TcpServer::listen(loop, *at),
       echo = TcpServer::listen(loop, Endpoint::loopback_v4(0));
  if (!server || !echo) return std::fputs("cannot listen there\n", stderr), 1;
  server->serve(serve);
  echo->serve([](TcpStream stream) -> Task<> { co_await pass_on(stream, stream); });
  bool is_right = argc > 1;
  if (argc < 2) spawn(loop, ask_both(*server, *echo, echo->endpoint().port(), is_right));
  loop.run();
  return is_right ? 0 : 1;
}
