// Timers on evpp's TimerEventWatcher, which keeps the interval it was made with: another interval
// takes another watcher.
//
// The loop is built on an event_base of our own, because EventLoop::Run works once in a lifetime.
#include <evpp/event_loop.h>
#include <evpp/event_watcher.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include <event2/event.h>

#include "timers/timers.h"

namespace {

class Evpp {
 public:
  Evpp(int timers, bench::Expiries& expiries) : expiries_(expiries), timers_(timers) {}

  void arm(int i, double seconds) {
    // An interval of zero would be taken as none at all.
    const evpp::Duration interval(std::max(seconds, 1e-6));
    timers_[i].emplace(&loop_, [this] { ++expiries_.count; }, interval);
    timers_[i]->Init();
    timers_[i]->AsyncWait();
  }
  void reset(int i, double seconds) { arm(i, seconds); }
  void cancel(int i) { timers_[i].reset(); }
  void once(int i, double seconds) { arm(i, seconds); }
  void turn() { event_base_loop(base_.get(), EVLOOP_NONBLOCK); }

  bench::About about() const { return {"evpp", "unknown", event_base_get_method(base_.get())}; }

 private:
  bench::Expiries& expiries_;
  std::unique_ptr<event_base, decltype(&event_base_free)> base_{event_base_new(), event_base_free};
  evpp::EventLoop loop_{base_.get()};
  std::vector<std::optional<evpp::TimerEventWatcher>> timers_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_timers<Evpp>(argc, argv); }
