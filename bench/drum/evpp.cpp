// The drum on evpp's FdChannel, with a TimerEventWatcher for each idle timeout.
//
// evpp's EventLoop::Run can be called only once, but the benchmark runs many rounds. The program
// therefore runs an event_base of its own, for which evpp has a constructor. The interval of a
// TimerEventWatcher cannot be changed, so a new interval needs a new watcher. That is cheaper than
// InvokeTimer, which also creates one.
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
  void run_pending() { event_base_loop(base_.get(), EVLOOP_NONBLOCK); }
  void run() { event_base_dispatch(base_.get()); }

  bench::SubjectInfo info() const {
    return {"evpp", "unknown", event_base_get_method(base_.get())};
  }

 private:
  struct Pair {
    Pair(evpp::EventLoop* loop, int fd) : channel(loop, fd, false, false) {}
    evpp::FdChannel channel;
    std::optional<evpp::TimerEventWatcher> idle;
  };

  void on_readable(int i) {
    if (!ring_.receive(i)) return;
    if (ring_.timeouts()) set_idle_timeout(i);
    ring_.forward(i);
    if (ring_.finished()) event_base_loopbreak(base_.get());
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

int main(int argc, char** argv) { return bench::run_drum<Evpp>(argc, argv); }
