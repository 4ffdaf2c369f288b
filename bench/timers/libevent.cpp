// Timers on libevent: evtimer_add starts and restarts a timer.
//
// Common timeouts (event_base_init_common_timeout) replace the heap with queues, but only for many
// timers of the same length; here the lengths differ.
#include <vector>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "common/timeval.h"
#include "timers/timers.h"

namespace {

class Libevent {
 public:
  Libevent(int timers, bench::Expiries& expiries) : timers_(timers) {
    for (event& timer : timers_) evtimer_assign(&timer, base_, on_expiry, &expiries);
  }
  ~Libevent() {
    for (event& timer : timers_) evtimer_del(&timer);
    event_base_free(base_);
  }
  Libevent(const Libevent&) = delete;
  Libevent& operator=(const Libevent&) = delete;

  void arm(int i, double seconds) {
    const timeval timeout = bench::to_timeval(seconds);
    evtimer_add(&timers_[i], &timeout);
  }
  void reset(int i, double seconds) { arm(i, seconds); }
  void cancel(int i) { evtimer_del(&timers_[i]); }
  void once(int i, double seconds) { arm(i, seconds); }
  void run_pending() { event_base_loop(base_, EVLOOP_NONBLOCK); }

  bench::SubjectInfo info() const {
    return {"libevent", event_get_version(), event_base_get_method(base_)};
  }

 private:
  static void on_expiry(evutil_socket_t, short, void* expiries) {
    ++static_cast<bench::Expiries*>(expiries)->count;
  }

  event_base* base_ = event_base_new();
  std::vector<event> timers_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_timers<Libevent>(argc, argv); }
