// Timers on standalone asio: to push a timer back is to set a new expiry, which aborts the wait for
// the old one, and to wait again. The handler of an aborted wait still runs, in the next turn.
#include <chrono>
#include <cstdint>
#include <deque>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "common/asio_version.h"
#include "timers/timers.h"

namespace {

class Asio {
 public:
  Asio(int timers, bench::Expiries& expiries) : expiries_(expiries) {
    for (int i = 0; i < timers; ++i) timers_.emplace_back(context_);
  }

  void arm(int i, double seconds) {
    timers_[i].expires_after(std::chrono::nanoseconds(std::int64_t(seconds * 1e9)));
    timers_[i].async_wait([this](const asio::error_code& error) {
      if (!error) ++expiries_.count;
    });
  }
  void reset(int i, double seconds) { arm(i, seconds); }
  void cancel(int i) { timers_[i].cancel(); }
  void once(int i, double seconds) { arm(i, seconds); }
  void turn() {
    context_.restart();
    context_.poll();
  }

  bench::About about() const { return {"asio", bench::asio_version(), "epoll"}; }

 private:
  bench::Expiries& expiries_;
  asio::io_context context_{ASIO_CONCURRENCY_HINT_UNSAFE};
  std::deque<asio::steady_timer> timers_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_timers<Asio>(argc, argv); }
