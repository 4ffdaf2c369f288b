// Echo on standalone asio: one buffer a connection, async_read_some and async_write in turn.
#include <array>
#include <memory>
#include <string>
#include <utility>

#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/version.hpp>
#include <asio/write.hpp>

#include "throughput/throughput.h"

namespace {

using asio::ip::tcp;

class Asio {
 public:
  explicit Asio(std::uint16_t port)
      : acceptor_(context_, tcp::endpoint(asio::ip::address_v4::loopback(), port)) {
    accept();
  }

  void run() { context_.run(); }

  bench::About about() const {
    return {"asio",
            std::to_string(ASIO_VERSION / 100000) + "." +
                std::to_string(ASIO_VERSION / 100 % 1000) + "." +
                std::to_string(ASIO_VERSION % 100),
            "epoll"};
  }

 private:
  class Session : public std::enable_shared_from_this<Session> {
   public:
    Session(Asio& owner, tcp::socket socket) : owner_(owner), socket_(std::move(socket)) {
      socket_.set_option(tcp::no_delay(true));
    }
    ~Session() {
      if (--owner_.open_ == 0) owner_.context_.stop();
    }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    void read() {
      socket_.async_read_some(asio::buffer(place_),
                              [self = shared_from_this()](auto error, std::size_t got) {
                                if (!error) self->write(got);
                              });
    }

   private:
    void write(std::size_t size) {
      asio::async_write(socket_, asio::buffer(place_, size),
                        [self = shared_from_this()](auto error, std::size_t) {
                          if (!error) self->read();
                        });
    }

    Asio& owner_;
    tcp::socket socket_;
    std::array<char, 65536> place_;
  };

  void accept() {
    acceptor_.async_accept([this](auto error, tcp::socket socket) {
      if (error) return;
      ++open_;
      std::make_shared<Session>(*this, std::move(socket))->read();
      accept();
    });
  }

  int open_ = 0;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_throughput<Asio>(argc, argv); }
