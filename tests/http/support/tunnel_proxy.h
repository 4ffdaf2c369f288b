// A proxy that opens tunnels, by CONNECT or by SOCKS 5, and records what it was asked for.
#pragma once

#include <arpa/inet.h>

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/tambour.h>

#include "http_message/h1/parser.h"

namespace tambour::test {

class TunnelProxy {
 public:
  explicit TunnelProxy(EventLoop& loop, const Endpoint& at = Endpoint::loopback_v4(0),
                       tls::ServerContext tls = {})
      : server_(or_throw(TcpServer::listen(loop, at, ignoring_exceptions(std::move(tls))))) {
    server_.serve([this](TcpStream stream) { return serve(std::move(stream)); });
  }

  [[nodiscard]] std::string authority() const { return server_.endpoint().to_string(); }
  [[nodiscard]] std::size_t connections() const noexcept { return server_.connections(); }

  /// A line for each tunnel: "CONNECT host:port authorization" or "SOCKS host:port user:password".
  std::string log;
  /// Where names lead; empty: to the host that was asked for.
  std::string host;
  bool requires_password = false;
  std::uint8_t reply = 0;     ///< Of SOCKS; not 0: no tunnel is opened.
  std::string http_answer{};  ///< Instead of opening a tunnel.

 private:
  /// Without it, the exception of a simulated lack of memory would end the loop.
  static ListenOptions ignoring_exceptions(tls::ServerContext tls) {
    ListenOptions options;
    options.tls = std::move(tls);
    options.on_error = [](const std::exception_ptr&) {};
    return options;
  }

  static Task<std::string> read(TcpStream& stream, std::size_t count) {
    Buffer bytes;
    while (bytes.size() < count) {
      const auto got = co_await stream.read(bytes, count - bytes.size());
      if (!got || *got == 0) co_return std::string();
    }
    co_return bytes.to_string();
  }

  static Task<> copy(Stream& from, Stream& to) {
    Buffer bytes;
    for (;;) {
      const auto got = co_await from.read(bytes);
      if (!got) break;
      if (*got == 0) {
        const auto shut = co_await to.shutdown_write();
        if (shut) co_return;
        break;
      }
      const auto written = co_await to.write(bytes);
      if (!written) break;
    }
    from.close();
    to.close();
  }

  Task<> relay(TcpStream& client, std::string target, std::uint16_t port, std::string success,
               std::string failed) {
    if (!host.empty()) target = host;
    auto server = co_await connect(std::move(target), port);
    const std::string& answer = server ? success : failed;
    const auto answered = co_await client.write(answer);
    if (!server || !answered) co_return;
    co_await when_all(copy(client, *server), copy(*server, client));
  }

  Task<> serve(TcpStream stream) {
    Buffer input;
    const auto got = co_await stream.read(input, 1);
    if (!got || *got == 0) co_return;
    if (input[0] == std::byte{5}) {
      co_await serve_socks(stream);
    } else {
      co_await serve_http(stream, std::move(input));
    }
  }

  Task<> serve_http(TcpStream& stream, Buffer input) {
    http::detail::h1::RequestParser parser;
    for (;;) {
      const auto parsed = parser.parse_head(input);
      if (!parsed) co_return;
      if (*parsed) break;
      const auto got = co_await stream.read(input);
      if (!got || *got == 0) co_return;
    }
    const std::string target = parser.head().target;
    log += std::string(parser.head().method.name()) + " " + target + " " +
           std::string(parser.head().fields.get("Proxy-Authorization").value_or("")) + "\n";
    if (!http_answer.empty()) {
      static_cast<void>(co_await stream.write(http_answer));
      co_return;
    }
    const std::size_t colon = target.rfind(':');
    std::string name = target.substr(0, colon);
    if (name.starts_with('[')) name = name.substr(1, name.size() - 2);
    co_await relay(stream, name, static_cast<std::uint16_t>(std::stoi(target.substr(colon + 1))),
                   "HTTP/1.1 200 Tunnel\r\nVia: test\r\n\r\n",
                   "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
  }

  Task<> serve_socks(TcpStream& stream) {
    const std::string count = co_await read(stream, 1);
    if (count.empty()) co_return;
    const std::string methods = co_await read(stream, static_cast<unsigned char>(count[0]));
    const char method = requires_password ? '\2' : '\0';
    const bool may_be = methods.find(method) != std::string::npos;
    const std::string chosen{'\5', may_be ? method : '\xff'};
    if (!co_await stream.write(chosen) || !may_be) co_return;
    std::string user;
    if (requires_password) {
      user = co_await read_credentials(stream);
      const std::string verdict{'\1', user == "me:secret" ? '\0' : '\1'};
      if (!co_await stream.write(verdict) || user != "me:secret") co_return;
    }
    const std::string head = co_await read(stream, 4);
    if (head.size() < 4) co_return;
    std::string name = co_await read_name(stream, head[3]);
    const std::string port = co_await read(stream, 2);
    if (port.size() < 2) co_return;
    const int number =
        static_cast<unsigned char>(port[0]) << 8 | static_cast<unsigned char>(port[1]);
    log += "SOCKS " + name + ":" + std::to_string(number) + " " + user + "\n";
    const std::string rest("\0\1\0\0\0\0\0\0", 8);
    if (reply != 0) {
      const std::string refused = std::string("\5") + static_cast<char>(reply) + rest;
      static_cast<void>(co_await stream.write(refused));
      co_return;
    }
    co_await relay(stream, std::move(name), static_cast<std::uint16_t>(number),
                   std::string("\5\0", 2) + rest, std::string("\5\5", 2) + rest);
  }

  static Task<std::string> read_credentials(TcpStream& stream) {
    const std::string head = co_await read(stream, 2);
    if (head.size() < 2 || head[0] != '\1') co_return std::string();
    std::string user = co_await read(stream, static_cast<unsigned char>(head[1]));
    const std::string length = co_await read(stream, 1);
    if (length.empty()) co_return std::string();
    const std::string password = co_await read(stream, static_cast<unsigned char>(length[0]));
    co_return user + ":" + password;
  }

  static Task<std::string> read_name(TcpStream& stream, char type) {
    if (type == '\3') {
      const std::string length = co_await read(stream, 1);
      if (length.empty()) co_return std::string();
      co_return co_await read(stream, static_cast<unsigned char>(length[0]));
    }
    const bool is_ipv6 = type == '\4';
    const std::size_t size = is_ipv6 ? 16 : 4;
    const std::string bytes = co_await read(stream, size);
    char digits[INET6_ADDRSTRLEN] = "";
    if (!bytes.empty())
      ::inet_ntop(is_ipv6 ? AF_INET6 : AF_INET, bytes.data(), digits, sizeof digits);
    co_return std::string(digits);
  }

  TcpServer server_;  ///< Destroyed before what its tasks use.
};

}  // namespace tambour::test
