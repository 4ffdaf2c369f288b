// A timer of muduo, which uses a timerfd with a minimum of 100 µs.
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
  bench::SubjectInfo info() const {
    return {"muduo", "unknown", std::getenv("MUDUO_USE_POLL") != nullptr ? "poll" : "epoll"};
  }

 private:
  muduo::net::EventLoop loop_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_sleep<Muduo>(argc, argv); }
