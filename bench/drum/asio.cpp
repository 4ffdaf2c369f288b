// The drum on standalone asio, in its proactor style: each socket always has one pending read of
// one byte.
//
// This is 3 to 10 % faster than async_wait(wait_read) with a separate recv, and than a
// stream_descriptor, because each async_wait costs an epoll_ctl. The concurrency hint says that the
// loop runs on one thread, which disables its locks.
#include <chrono>
#include <cstdint>
#include <deque>

#include <asio/io_context.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/steady_timer.hpp>

#include "common/asio_version.h"
#include "drum/drum.h"

namespace {

class Asio {
 public:
  explicit Asio(bench::Ring& ring) : ring_(ring) {
    if (ring.pipes()) bench::fail("the program for asio reads with socket objects: no --pipes");
    for (int i = 0; i < ring.pairs(); ++i) pairs_.emplace_back(context_, ring.fd(i));
  }
  ~Asio() {
    // The ring owns the descriptors and closes them.
    for (Pair& pair : pairs_) pair.socket.release();
  }
  Asio(const Asio&) = delete;
  Asio& operator=(const Asio&) = delete;

  void restart(int i) {
    pairs_[i].socket.cancel();
    read(i);
    if (ring_.timeouts()) set_idle_timeout(i);
  }
  void run_pending() {
    context_.restart();
    context_.poll();
  }
  void run() {
    context_.restart();
    context_.run();
  }

  bench::SubjectInfo info() const { return {"asio", bench::asio_version(), "epoll"}; }

 private:
  struct Pair {
    Pair(asio::io_context& context, int fd)
        : socket(context, asio::local::stream_protocol(), fd), idle(context) {}
    asio::local::stream_protocol::socket socket;
    asio::steady_timer idle;
    char byte = 0;
  };

  void read(int i) {
    pairs_[i].socket.async_read_some(asio::buffer(&pairs_[i].byte, 1),
                                     [this, i](const asio::error_code& error, std::size_t) {
                                       if (!error) on_read(i);
                                     });
  }

  void on_read(int i) {
    ring_.received();
    if (ring_.timeouts()) set_idle_timeout(i);
    ring_.forward(i);
    if (ring_.finished()) context_.stop();
    read(i);
  }

  void set_idle_timeout(int i) {
    // Setting a new expiry cancels the pending wait.
    const auto idle = std::chrono::nanoseconds(std::int64_t(ring_.idle_seconds() * 1e9));
    pairs_[i].idle.expires_after(idle);
    pairs_[i].idle.async_wait([](const asio::error_code& error) {
      if (!error) bench::Ring::idle_timeout_expired();
    });
  }

  bench::Ring& ring_;
  asio::io_context context_{ASIO_CONCURRENCY_HINT_UNSAFE};
  std::deque<Pair> pairs_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_drum<Asio>(argc, argv); }
