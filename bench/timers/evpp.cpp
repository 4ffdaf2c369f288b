// Timers on evpp's TimerEventWatcher, whose interval cannot be changed: another interval needs
// another watcher.
//
// The loop uses an event_base of the program, because EventLoop::Run can be called only once.
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
    // An interval of zero means no timeout.
    const evpp::Duration interval(std::max(seconds, 1e-6));
    timers_[i].emplace(&loop_, [this] { ++expiries_.count; }, interval);
    timers_[i]->Init();
    timers_[i]->AsyncWait();
  }
  void reset(int i, double seconds) { arm(i, seconds); }
  void cancel(int i) { timers_[i].reset(); }
  void once(int i, double seconds) { arm(i, seconds); }
  void run_pending() { event_base_loop(base_.get(), EVLOOP_NONBLOCK); }

  bench::SubjectInfo info() const {
    return {"evpp", "unknown", event_base_get_method(base_.get())};
  }

 private:
  bench::Expiries& expiries_;
  std::unique_ptr<event_base, decltype(&event_base_free)> base_{event_base_new(), event_base_free};
  evpp::EventLoop loop_{base_.get()};
  std::vector<std::optional<evpp::TimerEventWatcher>> timers_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_timers<Evpp>(argc, argv); }
