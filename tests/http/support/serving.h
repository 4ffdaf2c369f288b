// An HTTP server and its clients in a simulation, with virtual time.
#pragma once

#include <netinet/in.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

namespace tambour::test {

/// Removes the lines with dates.
inline std::string without_dates(std::string text) {
  for (std::size_t at; (at = text.find("Date: ")) != std::string::npos;)
    text.erase(at, text.find('\n', at) + 1 - at);
  return text;
}

/// The response that send() makes of a text.
inline std::string response_of(std::string_view status, std::string_view body,
                               std::string_view more_fields = "") {
  std::string text = "HTTP/1.1 ";
  text.append(status).append("\r\nContent-Length: ").append(std::to_string(body.size()));
  return text.append("\r\n").append(more_fields).append("\r\n").append(body);
}

class Serving : public testing::Test {
 public:  // For tasks that are lambdas.
  Serving()
      : host_(simulation_.add_host("server")),
        client_host_(simulation_.add_host("client")),
        server_loop_(host_.loop_options()),
        loop_(client_host_.loop_options()) {}

  void serve(http::Handler handler, http::ServerOptions options = {}) {
    const sockaddr_in address = host_.endpoint(80);
    const Endpoint at =
        Endpoint::from(reinterpret_cast<const sockaddr*>(&address), sizeof address).value();
    server_.emplace(
        or_throw(http::Server::listen(server_loop_, at, std::move(handler), std::move(options))));
  }

  template <class T>
  T run(Task<T> task) {
    std::optional<T> result;
    spawn(loop_, store(std::move(task), result));
    while (!result && simulation_.run(std::chrono::hours(1)) == sim::End::stopped) {
    }
    return std::move(result).value();
  }
  void run(Task<> task) {
    run([](Task<> inner) -> Task<bool> {
      co_await std::move(inner);
      co_return true;
    }(std::move(task)));
  }

  Task<TcpStream> open() {
    auto stream = co_await TcpStream::connect(server_->endpoint());
    co_return or_throw(std::move(stream), "connect");
  }

  /// Reads until the end of the stream, or an error, which is appended.
  static Task<std::string> read_all(TcpStream& stream) {
    Buffer all;
    for (;;) {
      const auto got = co_await stream.read(all);
      if (!got) co_return without_dates(all.to_string()) + "error: " + got.error().message();
      if (*got == 0) co_return without_dates(all.to_string());
    }
  }
  /// Reads until the text has been received.
  static Task<bool> read_until(TcpStream& stream, Buffer& all, std::string_view text) {
    while (!all.find(text)) {
      const auto got = co_await stream.read(all);
      if (!got || *got == 0) co_return false;
    }
    co_return true;
  }

  /// Sends the pieces, a millisecond after each other, and returns everything that the server sends
  /// until it closes the connection.
  Task<std::string> exchange(std::vector<std::string> pieces) {
    TcpStream stream = co_await open();
    for (const std::string& piece : pieces) {
      if (!co_await stream.write(piece)) break;
      static_cast<void>(co_await sleep_for(std::chrono::milliseconds(1)));
    }
    co_return co_await read_all(stream);
  }
  std::string ask(std::string request) {
    std::vector<std::string> pieces;
    pieces.push_back(std::move(request));
    return run(exchange(std::move(pieces)));
  }
  std::string ask_in_pieces(std::vector<std::string> pieces) {
    return run(exchange(std::move(pieces)));
  }

  sim::Simulation simulation_;
  sim::Host& host_;
  sim::Host& client_host_;
  EventLoop server_loop_;
  EventLoop loop_;
  std::optional<http::Server> server_;

 private:
  template <class T>
  Task<> store(Task<T> task, std::optional<T>& into) {
    into.emplace(co_await std::move(task));
    simulation_.stop();
  }
};

}  // namespace tambour::test
