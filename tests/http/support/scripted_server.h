// A server of HTTP/1.1 whose answers are texts that a test chooses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/net/tcp.h>

#include "http_message/h1/parser.h"

namespace tambour::test {

/// A request that has arrived.
struct Arrived {
  int connection = 0;  ///< The number of its connection, from 0.
  int request = 0;     ///< Its number on the connection, from 0.
  const http::RequestHead& head;
  std::string body;
};

struct Answer {
  Answer(const char* bytes) : text(bytes) {}             // NOLINT: implicit, for scripts.
  Answer(std::string bytes) : text(std::move(bytes)) {}  // NOLINT: implicit, for scripts.

  std::string text;
  bool closes = false;          ///< Closes the connection after the text.
  bool reads_the_rest = false;  ///< Then reads until the client closes the connection.
};

inline std::string ok(std::string_view body, std::string_view fields = "") {
  return "HTTP/1.1 200 OK\r\n" + std::string(fields) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}
inline Answer and_close(Answer answer) {
  answer.closes = true;
  return answer;
}

class ScriptedServer {
 public:
  using Script = std::function<Answer(const Arrived&)>;
  /// Called with the head, before the body is read. If it returns a text, the text is sent.
  using OnHead = std::function<Answer(const http::RequestHead&)>;

  explicit ScriptedServer(EventLoop& loop, Script script)
      : script_(std::move(script)),
        server_(or_throw(TcpServer::listen(loop, Endpoint::loopback_v4(0)))) {
    server_.serve([this](TcpStream stream) { return serve(std::move(stream), connections_++); });
  }

  [[nodiscard]] std::string url(std::string_view target = "/") const {
    return "http://" + authority() + std::string(target);
  }
  [[nodiscard]] std::string authority() const { return server_.endpoint().to_string(); }
  /// All connections that were accepted.
  [[nodiscard]] int connections() const noexcept { return connections_; }
  [[nodiscard]] int open() const noexcept { return open_; }
  [[nodiscard]] int most_open() const noexcept { return most_open_; }
  void set_on_head(OnHead on_head) { on_head_ = std::move(on_head); }

 private:
  struct Count {
    explicit Count(ScriptedServer& counted) : server(counted) {
      server.most_open_ = std::max(server.most_open_, ++server.open_);
    }
    Count(const Count&) = delete;
    Count& operator=(const Count&) = delete;
    ~Count() { --server.open_; }
    ScriptedServer& server;
  };

  Task<> serve(TcpStream stream, int connection) {
    const Count count(*this);
    http::detail::h1::RequestParser parser;
    Buffer input;
    for (int request = 0;; ++request) {
      for (;;) {
        const auto parsed = parser.parse_head(input);
        if (!parsed) co_return;
        if (*parsed) break;
        const auto got = co_await stream.read(input);
        if (!got || *got == 0) co_return;
      }
      if (on_head_) {
        Answer answer = on_head_(parser.head());
        if (!answer.text.empty() && !co_await stream.write(answer.text)) co_return;
        if (answer.closes) co_return;
        if (answer.reads_the_rest) co_return co_await discard(stream);
      }
      Buffer body;
      for (;;) {
        const auto moved = parser.read_body(input, body, SIZE_MAX);
        if (!moved) co_return;
        if (parser.is_complete()) break;
        if (*moved > 0) continue;
        const auto got = co_await stream.read(input);
        if (!got || *got == 0) co_return;
      }
      const Arrived arrived{connection, request, parser.head(), body.to_string()};
      Answer answer = script_(arrived);
      // The response to HEAD has no body.
      if (arrived.head.method == http::Method::head)
        answer.text.resize(answer.text.find("\r\n\r\n") + 4);
      if (!co_await stream.write(answer.text)) co_return;
      if (answer.closes) co_return;
      if (answer.reads_the_rest) co_return co_await discard(stream);
      parser.restart();
    }
  }

  static Task<> discard(TcpStream& stream) {
    for (;;) {
      Buffer bytes;
      const auto got = co_await stream.read(bytes);
      if (!got || *got == 0) co_return;
    }
  }

  Script script_;
  OnHead on_head_;
  int connections_ = 0;
  int open_ = 0;
  int most_open_ = 0;
  TcpServer server_;  ///< Destroyed before what its tasks use.
};

}  // namespace tambour::test
