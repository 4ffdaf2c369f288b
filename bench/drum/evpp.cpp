// The drum on evpp's FdChannel, with a TimerEventWatcher for each idle timeout.
//
// evpp's EventLoop::Run works once in a lifetime, and a round is one of many. Its constructor for
// an event_base of one's own exists for programs that run libevent's loop themselves, as here. A
// TimerEventWatcher keeps the interval it was made with, so a new interval takes a new watcher; it
// is still cheaper than an InvokeTimer, which makes one too.
#include <evpp/event_loop.h>
#include <evpp/event_watcher.h>
#include <evpp/fd_channel.h>

#include <deque>
#include <memory>
#include <optional>

#include <event2/event.h>

#include "drum/drum.h"

namespace {

class Evpp {
 public:
  explicit Evpp(bench::Ring& ring) : ring_(ring) {
    for (int i = 0; i < ring.pairs(); ++i) pairs_.emplace_back(&loop_, ring.fd(i));
  }
  ~Evpp() {
    for (Pair& pair : pairs_) {
      pair.channel.DisableAllEvent();
      pair.channel.Close();
    }
  }
  Evpp(const Evpp&) = delete;
  Evpp& operator=(const Evpp&) = delete;

  void restart(int i) {
    evpp::FdChannel& channel = pairs_[i].channel;
    channel.DisableReadEvent();
    channel.SetReadCallback([this, i] { on_readable(i); });
    channel.EnableReadEvent();
    if (ring_.timeouts()) set_idle_timeout(i);
  }
  void settle() { event_base_loop(base_.get(), EVLOOP_NONBLOCK); }
  void run() { event_base_dispatch(base_.get()); }

  bench::About about() const { return {"evpp", "unknown", event_base_get_method(base_.get())}; }

 private:
  struct Pair {
    Pair(evpp::EventLoop* loop, int fd) : channel(loop, fd, false, false) {}
    evpp::FdChannel channel;
    std::optional<evpp::TimerEventWatcher> idle;
  };

  void on_readable(int i) {
    if (!ring_.receive(i)) return;
    if (ring_.timeouts()) set_idle_timeout(i);
    ring_.pass_on(i);
    if (ring_.over()) event_base_loopbreak(base_.get());
  }

  void set_idle_timeout(int i) {
    auto& idle = pairs_[i].idle;
    idle.emplace(&loop_, bench::Ring::idle_timeout_expired, evpp::Duration(ring_.idle_seconds()));
    idle->Init();
    idle->AsyncWait();
  }

  bench::Ring& ring_;
  std::unique_ptr<event_base, decltype(&event_base_free)> base_{event_base_new(), event_base_free};
  evpp::EventLoop loop_{base_.get()};
  std::deque<Pair> pairs_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_drum<Evpp>(argc, argv); }
