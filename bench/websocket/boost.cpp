// The server on Boost.Beast: a coroutine of Boost.Asio for each WebSocket; for broadcasts, a queue
// and a second coroutine for each, as in Beast's chat example.
#include <deque>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>

#include <boost/asio.hpp>
#include <boost/beast.hpp>
#include <boost/beast/websocket.hpp>

#include "websocket/websocket.h"

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using asio::ip::tcp;

using Message = std::shared_ptr<const std::string>;

struct Session {
  explicit Session(tcp::socket socket) : stream(std::move(socket)) {}
  websocket::stream<tcp::socket> stream;
  std::deque<Message> queue;
};

class Boost {
 public:
  explicit Boost(const bench::ServerOptions& options)
      : options_(options), acceptor_(context_, {asio::ip::address_v4::loopback(), options.port}) {
    asio::co_spawn(context_, accept(), asio::detached);
  }

  void run() { context_.run(); }

  static bench::SubjectInfo info() { return {"boost", BOOST_BEAST_VERSION_STRING, "epoll"}; }

 private:
  asio::awaitable<void> accept() {
    while (true) {
      tcp::socket socket = co_await acceptor_.async_accept(asio::use_awaitable);
      socket.set_option(tcp::no_delay(true));
      auto session = std::make_shared<Session>(std::move(socket));
      asio::co_spawn(context_, serve(std::move(session)), asio::detached);
    }
  }

  asio::awaitable<void> serve(std::shared_ptr<Session> session) {
    auto& stream = session->stream;
    stream.read_message_max(bench::websocket_message_bytes_max);
    if (options_.deflate) {
      websocket::permessage_deflate deflate;
      deflate.server_enable = true;
      deflate.server_max_window_bits = 12;
      deflate.compLevel = 1;
      deflate.memLevel = 5;
      stream.set_option(deflate);
    }
    try {
      co_await stream.async_accept(asio::use_awaitable);
      sessions_.insert(session);
      beast::flat_buffer buffer;
      while (true) {
        co_await stream.async_read(buffer, asio::use_awaitable);
        stream.text(stream.got_text());
        if (options_.service == bench::Service::echo)
          co_await stream.async_write(buffer.data(), asio::use_awaitable);
        else
          publish(std::make_shared<const std::string>(beast::buffers_to_string(buffer.data())));
        buffer.consume(buffer.size());
      }
    } catch (const boost::system::system_error&) {
      // The client has closed the connection.
    }
    sessions_.erase(session);
  }

  void publish(const Message& message) {
    for (const std::shared_ptr<Session>& session : sessions_) {
      session->queue.push_back(message);
      if (session->queue.size() == 1) asio::co_spawn(context_, write(session), asio::detached);
    }
  }

  static asio::awaitable<void> write(std::shared_ptr<Session> session) {
    try {
      for (; !session->queue.empty(); session->queue.pop_front()) {
        session->stream.text(true);
        co_await session->stream.async_write(asio::buffer(*session->queue.front()),
                                             asio::use_awaitable);
      }
    } catch (const boost::system::system_error&) {
      // The client has closed the connection.
    }
  }

  bench::ServerOptions options_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  std::unordered_set<std::shared_ptr<Session>> sessions_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_websocket<Boost>(argc, argv); }
