// A one-shot timer of libev.
#include <string>

#include <ev.h>

#include "sleep/sleep.h"

namespace {

class Libev {
 public:
  Libev() {
    ev_timer_init(&timer_, [](struct ev_loop*, ev_timer*, int) {}, 0., 0.);
  }

  void sleep(std::int64_t length_ns) {
    // Timers are relative to the loop's cached time, which is outdated here.
    ev_now_update(loop_);
    ev_timer_set(&timer_, double(length_ns) / 1e9, 0.);
    ev_timer_start(loop_, &timer_);
    ev_run(loop_, 0);
  }
  bench::SubjectInfo info() const {
    return {"libev", std::to_string(ev_version_major()) + "." + std::to_string(ev_version_minor()),
            "default"};
  }

 private:
  struct ev_loop* loop_ = ev_loop_new(EVFLAG_AUTO);
  ev_timer timer_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_sleep<Libev>(argc, argv); }
