// The drum on muduo's Channel, as in muduo's published version of this benchmark.
//
// An enabled channel is restarted by enabling it again: one EPOLL_CTL_MOD. Disabling it first would
// remove it from epoll and cost six times as much; muduo's program does not do that either.
#include <muduo/net/Channel.h>
#include <muduo/net/EventLoop.h>

#include <deque>

#include "drum/drum.h"

namespace {

class Muduo {
 public:
  explicit Muduo(bench::Ring& ring) : ring_(ring) {
    for (int i = 0; i < ring.pairs(); ++i) pairs_.emplace_back(&loop_, ring.fd(i));
  }
  ~Muduo() {
    for (Pair& pair : pairs_) {
      pair.channel.disableAll();
      pair.channel.remove();
    }
  }
  Muduo(const Muduo&) = delete;
  Muduo& operator=(const Muduo&) = delete;

  void restart(int i) {
    muduo::net::Channel& channel = pairs_[i].channel;
    channel.setReadCallback([this, i](muduo::Timestamp) { on_readable(i); });
    channel.enableReading();
    if (ring_.timeouts()) set_idle_timeout(i);
  }
  void run_pending() {}  // muduo passes every change to the kernel at once.
  void run() { loop_.loop(); }

  bench::SubjectInfo info() const {
    return {"muduo", "unknown", std::getenv("MUDUO_USE_POLL") != nullptr ? "poll" : "epoll"};
  }

 private:
  struct Pair {
    Pair(muduo::net::EventLoop* loop, int fd) : channel(loop, fd) {}
    muduo::net::Channel channel;
    muduo::net::TimerId idle;
  };

  void on_readable(int i) {
    if (!ring_.receive(i)) return;
    if (ring_.timeouts()) set_idle_timeout(i);
    ring_.forward(i);
    if (ring_.finished()) loop_.quit();
  }

  void set_idle_timeout(int i) {
    // A timer cannot be rescheduled. Cancelling a default-constructed TimerId is allowed.
    loop_.cancel(pairs_[i].idle);
    pairs_[i].idle = loop_.runAfter(ring_.idle_seconds(), bench::Ring::idle_timeout_expired);
  }

  bench::Ring& ring_;
  muduo::net::EventLoop loop_;
  std::deque<Pair> pairs_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_drum<Muduo>(argc, argv); }
