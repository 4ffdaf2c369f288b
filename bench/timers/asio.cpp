// Timers on standalone asio. To reset a timer, the program sets a new expiry, which cancels the
// pending wait, and waits again. The handler of the cancelled wait still runs, in the next
// iteration.
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
  void run_pending() {
    context_.restart();
    context_.poll();
  }

  bench::SubjectInfo info() const { return {"asio", bench::asio_version(), "epoll"}; }

 private:
  bench::Expiries& expiries_;
  asio::io_context context_{ASIO_CONCURRENCY_HINT_UNSAFE};
  std::deque<asio::steady_timer> timers_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_timers<Asio>(argc, argv); }
