// The server on Boost.Beast: a coroutine of Boost.Asio for each connection.
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <boost/asio.hpp>
#include <boost/beast.hpp>

#include "http/arena.h"
#include "http/http.h"

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

class Boost {
 public:
  explicit Boost(const bench::ServerOptions& options)
      : folder_(options.folder),
        bytes_(options.answer_bytes),
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
        const auto& request = parser.get();
        if (target_of(request).starts_with(bench::files_target)) {
          co_await send_file(socket, request);
          continue;
        }
        auto response = answer(request);
        co_await http::async_write(socket, response, asio::use_awaitable);
      }
    } catch (const boost::system::system_error&) {
      // The client has closed the connection.
    }
  }

  static std::string_view target_of(const http::request<http::string_body>& request) {
    return {request.target().data(), request.target().size()};
  }

  /// As Beast's examples do: each response opens the file.
  asio::awaitable<void> send_file(tcp::socket& socket,
                                  const http::request<http::string_body>& request) const {
    boost::beast::error_code error;
    http::file_body::value_type file;
    const std::string path = folder_ + "/files" + std::string(target_of(request));
    file.open(path.c_str(), boost::beast::file_mode::scan, error);
    if (error) bench::fail("cannot open " + path);
    http::response<http::file_body> response(std::piecewise_construct,
                                             std::make_tuple(std::move(file)),
                                             std::make_tuple(http::status::ok, request.version()));
    response.set(http::field::content_type, "text/plain");
    response.prepare_payload();
    co_await http::async_write(socket, response, asio::use_awaitable);
  }

  http::response<http::string_body> answer(const http::request<http::string_body>& request) const {
    http::response<http::string_body> response(http::status::ok, request.version());
    const std::string_view target = target_of(request);
    const char* type = "text/plain";
    if (target == bench::http_target) {
      response.body() = body_;
    } else if (target == bench::json_target) {
      type = "application/json";
      response.body() = bench::json_text(bytes_);
    } else if (target.starts_with(bench::items_target)) {
      type = "application/json";
      response.body() = bench::arena_json(target.substr(bench::items_target.size()));
    } else if (target.starts_with(bench::sum_target)) {
      response.body() =
          std::to_string(bench::sum_of_query(target) + std::atol(request.body().c_str()));
    } else if (target == bench::ok_target) {
      response.body() = "ok";
    } else {
      response.body() = std::to_string(request.body().size());
    }
    response.set(http::field::content_type, type);
    response.prepare_payload();
    return response;
  }

  std::string folder_;
  int bytes_;
  std::string body_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_http<Boost>(argc, argv); }
