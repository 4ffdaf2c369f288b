// The echo server on standalone asio with an io_context per thread, like asio's example of a pool
// of contexts: one acceptor, and sockets that are distributed in turn.
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <asio/buffer.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/write.hpp>

#include "common/asio_version.h"
#include "server/server.h"

namespace {

using asio::ip::tcp;

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, std::size_t buffer_bytes)
      : socket_(std::move(socket)), buffer_(buffer_bytes) {
    socket_.set_option(tcp::no_delay(true));
  }

  void read() {
    socket_.async_read_some(asio::buffer(buffer_),
                            [self = shared_from_this()](auto error, std::size_t got) {
                              if (!error) self->write_back(got);
                            });
  }

 private:
  void write_back(std::size_t size) {
    asio::async_write(socket_, asio::buffer(buffer_, size),
                      [self = shared_from_this()](auto error, std::size_t) {
                        if (!error) self->read();
                      });
  }

  tcp::socket socket_;
  std::vector<char> buffer_;
};

class Asio {
 public:
  explicit Asio(const bench::ServerOptions& options) : options_(options) {
    for (int i = 0; i < options.loops; ++i) {
      contexts_.push_back(std::make_unique<asio::io_context>(1));
      guards_.push_back(asio::make_work_guard(*contexts_.back()));
    }
    acceptor_ = std::make_unique<tcp::acceptor>(
        *contexts_[0], tcp::endpoint(asio::ip::address_v4::loopback(), options.port));
    accept();
  }

  void run() {
    for (auto& entry : contexts_) threads_.emplace_back([&context = *entry] { context.run(); });
    for (std::thread& thread : threads_) thread.join();
  }

  bench::SubjectInfo info() const { return {"asio", bench::asio_version(), "epoll"}; }

 private:
  void accept() {
    asio::io_context& context = *contexts_[next_++ % contexts_.size()];
    acceptor_->async_accept(context, [this, &context](auto error, tcp::socket socket) {
      if (error) return;
      auto session = std::make_shared<Session>(std::move(socket), options_.buffer_bytes);
      asio::post(context, [session] { session->read(); });
      accept();
    });
  }

  bench::ServerOptions options_;
  std::vector<std::unique_ptr<asio::io_context>> contexts_;
  std::vector<asio::executor_work_guard<asio::io_context::executor_type>> guards_;
  std::unique_ptr<tcp::acceptor> acceptor_;
  std::vector<std::thread> threads_;
  std::size_t next_ = 0;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_server<Asio>(argc, argv); }
