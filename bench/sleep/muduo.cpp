// A timer of muduo's: a timerfd, for 100 µs at least.
#include <muduo/net/EventLoop.h>

#include <cstdlib>

#include "sleep/sleep.h"

namespace {

class Muduo {
 public:
  void sleep(std::int64_t length_ns) {
    loop_.runAfter(double(length_ns) / 1e9, [this] { loop_.quit(); });
    loop_.loop();
  }
  bench::About about() const {
    return {"muduo", "unknown", std::getenv("MUDUO_USE_POLL") != nullptr ? "poll" : "epoll"};
  }

 private:
  muduo::net::EventLoop loop_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_sleep<Muduo>(argc, argv); }
