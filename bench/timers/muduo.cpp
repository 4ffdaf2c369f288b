// Timers on muduo: runAfter and cancel. A timer cannot be moved, so to push one back is both.
//
// The loop has no way to run without waiting: one that is asked to quit still waits once. It is
// woken first, therefore, and told to quit at the end of its first turn.
#include <muduo/net/EventLoop.h>
#include <muduo/net/TimerId.h>

#include <cstdlib>
#include <vector>

#include "timers/timers.h"

namespace {

class Muduo {
 public:
  Muduo(int timers, bench::Expiries& expiries) : expiries_(expiries), timers_(timers) {}

  void arm(int i, double seconds) {
    timers_[i] = loop_.runAfter(seconds, [this] { ++expiries_.count; });
  }
  void reset(int i, double seconds) {
    cancel(i);
    arm(i, seconds);
  }
  void cancel(int i) { loop_.cancel(timers_[i]); }
  void once(int i, double seconds) { arm(i, seconds); }
  void turn() {
    loop_.queueInLoop([this] { loop_.quit(); });
    loop_.wakeup();
    loop_.loop();
  }

  bench::About about() const {
    return {"muduo", "unknown", std::getenv("MUDUO_USE_POLL") != nullptr ? "poll" : "epoll"};
  }

 private:
  bench::Expiries& expiries_;
  muduo::net::EventLoop loop_;
  std::vector<muduo::net::TimerId> timers_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_timers<Muduo>(argc, argv); }
