// The server on standalone asio, written like the SSL server of asio's examples: a session that
// keeps itself alive, async_handshake, then async_read_some and async_write in alternation.
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ssl.hpp>
#include <asio/write.hpp>

#include "common/asio_version.h"
#include "tls/tls.h"

namespace {

using asio::ip::tcp;

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, asio::ssl::context& tls) : stream_(std::move(socket), tls) {
    stream_.next_layer().set_option(tcp::no_delay(true));
  }

  void start() {
    stream_.async_handshake(asio::ssl::stream_base::server,
                            [self = shared_from_this()](auto error) {
                              if (!error) self->read();
                            });
  }

 private:
  void read() {
    stream_.async_read_some(asio::buffer(buffer_.data() + received_, buffer_.size() - received_),
                            [self = shared_from_this()](auto error, std::size_t got) {
                              if (error) return;
                              self->received_ += got;
                              const auto bytes =
                                  bench::requested_bytes({self->buffer_.data(), self->received_});
                              if (bytes) return self->answer(*bytes);
                              self->read();
                            });
  }

  void answer(int bytes) {
    received_ = 0;
    asio::async_write(stream_, asio::buffer(bench::answer_of(bytes)),
                      [self = shared_from_this()](auto error, std::size_t) {
                        if (!error) self->read();
                      });
  }

  asio::ssl::stream<tcp::socket> stream_;
  std::array<char, 1024> buffer_;
  std::size_t received_ = 0;
};

class Asio {
 public:
  explicit Asio(const bench::ServerOptions& options)
      : tls_(asio::ssl::context::tls_server),
        acceptor_(context_, tcp::endpoint(asio::ip::address_v4::loopback(), options.port)) {
    const std::string pem = options.folder + "/server.pem";
    tls_.use_certificate_chain_file(pem);
    tls_.use_private_key_file(pem, asio::ssl::context::pem);
    accept();
  }

  void run() { context_.run(); }

  bench::SubjectInfo info() const { return {"asio", bench::asio_version(), "epoll"}; }

 private:
  void accept() {
    acceptor_.async_accept([this](auto error, tcp::socket socket) {
      if (error) return;
      std::make_shared<Session>(std::move(socket), tls_)->start();
      accept();
    });
  }

  asio::io_context context_{1};
  asio::ssl::context tls_;
  tcp::acceptor acceptor_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_tls<Asio>(argc, argv); }
