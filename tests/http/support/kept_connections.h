// A server of HTTP/1.1 that answers each request with the number of its connection, from 0, and
// gives a test its streams.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/tambour.h>

#include "http_message/h1/parser.h"

namespace tambour::test {

class KeptConnections {
 public:
  explicit KeptConnections(EventLoop& loop, const ListenOptions& options = {})
      : server_(or_throw(TcpServer::listen(loop, Endpoint::loopback_v4(0), options))) {
    server_.serve([this](TcpStream stream) { return serve(std::move(stream)); });
  }

  [[nodiscard]] std::string url(std::string_view scheme = "http") const {
    return std::string(scheme) + "://localhost:" + std::to_string(server_.endpoint().port()) + "/";
  }
  [[nodiscard]] std::size_t connections() const noexcept { return streams_.size(); }
  /// Valid while the connection is open.
  [[nodiscard]] TcpStream& stream(std::size_t index) { return *streams_[index]; }

 private:
  Task<> serve(TcpStream stream) {
    const std::string number = std::to_string(streams_.size());
    streams_.push_back(&stream);
    Buffer input;
    for (;;) {
      http::detail::h1::RequestParser parser;
      for (;;) {
        const auto parsed = parser.parse_head(input);
        if (!parsed) co_return;
        if (*parsed) break;
        const auto got = co_await stream.read(input);
        if (!got || *got == 0) co_return;
      }
      const std::string answer =
          "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(number.size()) + "\r\n\r\n" +
          number;
      const auto written = co_await stream.write(answer);
      if (!written) co_return;
    }
  }

  std::vector<TcpStream*> streams_;
  TcpServer server_;  ///< Destroyed before what its tasks use.
};

}  // namespace tambour::test
