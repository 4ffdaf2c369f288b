// A loop inside an io_context of asio, with EventLoop::fd(), next_deadline() and run_ready(). The
// loops of other libraries are hosts in the same way.
//
//   build/examples/asio_host
#include <cstdio>

#include <asio.hpp>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

/// Thread: the one that runs the io_context, which is the loop's. asio has no hook before its wait:
/// its handlers use the loop in tasks that they give to EventLoop::post().
class AsioHost {
 public:
  AsioHost(EventLoop& loop, asio::io_context& context)
      : loop_(loop), events_(context, or_throw(loop.fd())), timer_(context) {
    wait();
  }
  AsioHost(const AsioHost&) = delete;
  AsioHost& operator=(const AsioHost&) = delete;
  /// The descriptor belongs to the loop.
  ~AsioHost() { events_.release(); }

 private:
  void wait() {
    timer_.expires_at(loop_.next_deadline());  // Ends the former wait.
    timer_.async_wait([this](const asio::error_code& error) {
      if (!error) run();
    });
    if (is_waiting_) return;
    is_waiting_ = true;
    events_.async_wait(events_.wait_read, [this](const asio::error_code& error) {
      if (error) return;
      is_waiting_ = false;
      run();
    });
  }
  void run() {
    loop_.run_ready();
    wait();
  }

  EventLoop& loop_;
  asio::posix::stream_descriptor events_;
  asio::steady_timer timer_;
  bool is_waiting_ = false;
};

Task<> count(asio::io_context& context) {
  for (int i = 1; i <= 3; ++i) {
    or_throw(co_await sleep_for(15ms));
    std::printf("task: %d\n", i);
  }
  context.stop();
}

int main() {
  EventLoop loop;
  asio::io_context context(1);
  const AsioHost host(loop, context);
  asio::steady_timer timer(context, 20ms);
  timer.async_wait([&](const asio::error_code&) {
    std::puts("timer of asio");
    loop.post([] { std::puts("task that asio has posted"); });
  });
  loop.post([&] { spawn(loop, count(context)); });
  context.run();
}
