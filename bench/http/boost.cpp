// The server on Boost.Beast: a coroutine of Boost.Asio for each connection.
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <boost/asio.hpp>
#include <boost/beast.hpp>

#include "http/http.h"

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

class Boost {
 public:
  explicit Boost(const bench::ServerOptions& options)
      : bytes_(options.answer_bytes),
        body_(std::size_t(options.answer_bytes), 'b'),
        acceptor_(context_, {asio::ip::address_v4::loopback(), options.port}) {
    asio::co_spawn(context_, accept(), asio::detached);
  }

  void run() { context_.run(); }

  static bench::SubjectInfo info() { return {"boost", BOOST_BEAST_VERSION_STRING, "epoll"}; }

 private:
  asio::awaitable<void> accept() {
    while (true) {
      tcp::socket socket = co_await acceptor_.async_accept(asio::use_awaitable);
      asio::co_spawn(context_, serve(std::move(socket)), asio::detached);
    }
  }

  asio::awaitable<void> serve(tcp::socket socket) {
    socket.set_option(tcp::no_delay(true));
    boost::beast::flat_buffer buffer;
    try {
      while (true) {
        http::request_parser<http::string_body> parser;
        parser.body_limit(std::numeric_limits<std::uint64_t>::max());
        co_await http::async_read(socket, buffer, parser, asio::use_awaitable);
        auto response = answer(parser.get());
        co_await http::async_write(socket, response, asio::use_awaitable);
      }
    } catch (const boost::system::system_error&) {
      // The client has closed the connection.
    }
  }

  http::response<http::string_body> answer(const http::request<http::string_body>& request) const {
    http::response<http::string_body> response(http::status::ok, request.version());
    if (request.target() == bench::http_target) {
      response.set(http::field::content_type, "text/plain");
      response.body() = body_;
    } else if (request.target() == bench::json_target) {
      response.set(http::field::content_type, "application/json");
      response.body() = bench::json_text(bytes_);
    } else {
      response.body() = "ok";
    }
    response.prepare_payload();
    return response;
  }

  int bytes_;
  std::string body_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_http<Boost>(argc, argv); }
