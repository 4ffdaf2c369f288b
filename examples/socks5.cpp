// A SOCKS proxy, version 5 (RFC 1928): CONNECT to IPv4 and IPv6 addresses, without authentication.
// Names of hosts are refused (reply 8): it does not look them up.
//
//   socks5 127.0.0.1:1080        and then:        curl --socks5 127.0.0.1:1080 http://192.0.2.1/
//
// Without an address, a client of its own goes through it to an echo server of its own.
#include <netinet/in.h>

#include <cstdio>
#include <cstring>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::literals;

Task<> pass_on(Stream& from, Stream& to, Buffer bytes = {}) {
  while (bytes.empty() || co_await to.write(bytes)) {
    const auto got = co_await from.read(bytes);
    if (!got) break;
    if (*got == 0) co_return static_cast<void>(to.finish());
  }
  from.close();
  to.close();
}

/// Where the client wants to go. EAFNOSUPPORT, EOPNOTSUPP: not there, not in that way.
Task<Result<Endpoint>> read_target(Stream& client, Buffer& in) {
  const auto head = co_await read_exactly(client, in, 4);  // Version, command, 0, type of address.
  if (!head) co_return std::unexpected(head.error());
  const bool is_v4 = (*head)[3] == std::byte{1};
  if (!is_v4 && (*head)[3] != std::byte{4}) co_return std::unexpected(system_error(EAFNOSUPPORT));
  const auto place = co_await read_exactly(client, in, is_v4 ? 6 : 18);
  if (!place) co_return std::unexpected(place.error());
  if ((*head)[1] != std::byte{1}) co_return std::unexpected(system_error(EOPNOTSUPP));
  const std::string bytes = place->to_string();
  sockaddr_in v4{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}};
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  std::memcpy(is_v4 ? static_cast<void*>(&v4.sin_addr) : &v6.sin6_addr, bytes.data(),
              bytes.size() - 2);
  std::memcpy(is_v4 ? &v4.sin_port : &v6.sin6_port, &bytes[bytes.size() - 2], 2);
  co_return is_v4 ? Endpoint::from(reinterpret_cast<sockaddr*>(&v4), sizeof v4)
                  : Endpoint::from(reinterpret_cast<sockaddr*>(&v6), sizeof v6);
}

std::string reply_to(const Error& error) {
  char reply = error ? 1 : 0;
  if (error == system_error(ENETUNREACH)) reply = 3;
  if (error == system_error(EHOSTUNREACH) || error == system_error(ETIMEDOUT)) reply = 4;
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
  if (!co_await client.write(may_come ? "\5\0"sv : "\5\xff"sv) || !may_come) co_return;
  const auto target = co_await timeout(10s, read_target(client, in));
  Result<TcpStream> server = std::unexpected(target ? Error() : target.error());
  if (target) server = co_await timeout(10s, TcpStream::connect(*target));
  if (!co_await client.write(reply_to(server ? Error() : server.error())) || !server) co_return;
  co_await when_all(pass_on(client, *server, std::move(in)), pass_on(*server, client));
}

Task<> ask(TcpServer& proxy, TcpServer& echo, bool& is_right) {
  auto stream = co_await TcpStream::connect(proxy.endpoint());
  const std::uint16_t port = echo.endpoint().port();
  const std::string there = "\5\1\0\5\1\0\1\x7f\0\0\1"s + char(port >> 8) + char(port & 255);
  if (stream && co_await stream->write(there + "hello\n")) {
    Buffer in;
    const auto replies = co_await timeout(5s, read_exactly(*stream, in, 12));
    auto answer = co_await timeout(5s, read_line(*stream, in));
    is_right = replies && (*replies)[3] == std::byte{0} && answer && *answer == "hello";
    std::puts(is_right ? "through the proxy: hello" : "nothing came through the proxy");
  }
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
  echo->serve([](TcpStream own) -> Task<> { co_await pass_on(own, own); });
  bool is_right = argc > 1;
  if (argc < 2) spawn(loop, ask(*server, *echo, is_right));
  loop.run();
  return is_right ? 0 : 1;
}
