// Timers on muduo: runAfter and cancel. A timer cannot be rescheduled, so a reset calls both.
//
// The loop cannot run without waiting: even if it is asked to quit, it waits once. The program
// therefore wakes it first and makes it quit at the end of its first iteration.
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
  void run_pending() {
    loop_.queueInLoop([this] { loop_.quit(); });
    loop_.wakeup();
    loop_.loop();
  }

  bench::SubjectInfo info() const {
    return {"muduo", "unknown", std::getenv("MUDUO_USE_POLL") != nullptr ? "poll" : "epoll"};
  }

 private:
  bench::Expiries& expiries_;
  muduo::net::EventLoop loop_;
  std::vector<muduo::net::TimerId> timers_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_timers<Muduo>(argc, argv); }
