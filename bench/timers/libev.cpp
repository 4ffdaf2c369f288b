// Timers on libev: idle timeouts are repeating timers that ev_timer_again starts and restarts, as
// libev's documentation recommends.
#include <string>
#include <vector>

#include <ev.h>

#include "timers/timers.h"

namespace {

class Libev {
 public:
  Libev(int timers, bench::Expiries& expiries) : timers_(timers) {
    ev_set_userdata(loop_, &expiries);
    for (ev_timer& timer : timers_) ev_timer_init(&timer, on_expiry, 0., 0.);
  }
  ~Libev() { ev_loop_destroy(loop_); }
  Libev(const Libev&) = delete;
  Libev& operator=(const Libev&) = delete;

  void arm(int i, double seconds) {
    timers_[i].repeat = seconds;
    ev_timer_again(loop_, &timers_[i]);
  }
  void reset(int i, double seconds) { arm(i, seconds); }
  void cancel(int i) { ev_timer_stop(loop_, &timers_[i]); }
  void once(int i, double seconds) {
    ev_timer_set(&timers_[i], seconds, 0.);
    ev_timer_start(loop_, &timers_[i]);
  }
  void run_pending() { ev_run(loop_, EVRUN_NOWAIT); }

  bench::SubjectInfo info() const {
    return {"libev", std::to_string(ev_version_major()) + "." + std::to_string(ev_version_minor()),
            ev_backend(loop_) == EVBACKEND_EPOLL ? "epoll" : "other"};
  }

 private:
  static void on_expiry(struct ev_loop* loop, ev_timer*, int) {
    ++static_cast<bench::Expiries*>(ev_userdata(loop))->count;
  }

  struct ev_loop* loop_ = ev_loop_new(EVFLAG_AUTO);
  std::vector<ev_timer> timers_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_timers<Libev>(argc, argv); }
