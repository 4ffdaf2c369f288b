// The server on standalone asio, written like asio's examples: a session that keeps itself alive, a
// buffer per session, async_read_some and async_write in alternation. For broadcasts, each session
// has a queue of messages to write.
#include <deque>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/write.hpp>

#include "common/asio_version.h"
#include "server/server.h"

namespace {

using asio::ip::tcp;

class Asio {
 public:
  explicit Asio(const bench::ServerOptions& options)
      : options_(options),
        acceptor_(context_, tcp::endpoint(asio::ip::address_v4::loopback(), options.port)) {
    accept();
  }

  void run() { context_.run(); }

  bench::SubjectInfo info() const { return {"asio", bench::asio_version(), "epoll"}; }

 private:
  class Session : public std::enable_shared_from_this<Session> {
   public:
    Session(Asio& owner, tcp::socket socket)
        : owner_(owner), socket_(std::move(socket)), buffer_(owner.options_.buffer_bytes) {
      socket_.set_option(tcp::no_delay(true));
    }

    void read() {
      socket_.async_read_some(
          asio::buffer(buffer_), [self = shared_from_this()](auto error, std::size_t got) {
            if (error) {
              self->owner_.sessions_.erase(self);
            } else if (self->owner_.options_.service == bench::Service::echo) {
              self->write_back(got);
            } else {
              self->owner_.broadcast(std::make_shared<std::string>(self->buffer_.data(), got));
              self->read();
            }
          });
    }

    void deliver(const std::shared_ptr<const std::string>& message) {
      outgoing_.push_back(message);
      if (outgoing_.size() == 1) write_next();
    }

   private:
    void write_back(std::size_t size) {
      asio::async_write(socket_, asio::buffer(buffer_, size),
                        [self = shared_from_this()](auto error, std::size_t) {
                          if (!error) self->read();
                        });
    }

    void write_next() {
      asio::async_write(socket_, asio::buffer(*outgoing_.front()),
                        [self = shared_from_this()](auto error, std::size_t) {
                          if (error) return;
                          self->outgoing_.pop_front();
                          if (!self->outgoing_.empty()) self->write_next();
                        });
    }

    Asio& owner_;
    tcp::socket socket_;
    std::vector<char> buffer_;
    std::deque<std::shared_ptr<const std::string>> outgoing_;
  };

  void accept() {
    acceptor_.async_accept([this](auto error, tcp::socket socket) {
      if (error) return;
      auto session = std::make_shared<Session>(*this, std::move(socket));
      if (options_.service == bench::Service::broadcast) sessions_.insert(session);
      session->read();
      accept();
    });
  }

  void broadcast(const std::shared_ptr<const std::string>& message) {
    for (const auto& session : sessions_) session->deliver(message);
  }

  bench::ServerOptions options_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  std::unordered_set<std::shared_ptr<Session>> sessions_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_server<Asio>(argc, argv); }
