// A timer of libevent, with the flag for precise timers, which uses a timerfd. Its unit is
// microseconds; the length of a sleep is rounded up.
#include <event2/event.h>

#include "sleep/sleep.h"

namespace {

class Libevent {
 public:
  Libevent() {
    event_config* config = event_config_new();
    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    base_ = event_base_new_with_config(config);
    event_config_free(config);
    if (base_ == nullptr) bench::fail("event_base_new_with_config");
    timer_ = evtimer_new(base_, [](evutil_socket_t, short, void*) {}, nullptr);
  }
  ~Libevent() {
    event_free(timer_);
    event_base_free(base_);
  }
  Libevent(const Libevent&) = delete;
  Libevent& operator=(const Libevent&) = delete;

  void sleep(std::int64_t length_ns) {
    const std::int64_t length_us = (length_ns + 999) / 1000;
    const timeval length{length_us / 1'000'000, length_us % 1'000'000};
    evtimer_add(timer_, &length);
    event_base_dispatch(base_);
  }
  bench::SubjectInfo info() const {
    return {"libevent", event_get_version(), event_base_get_method(base_)};
  }

 private:
  event_base* base_ = nullptr;
  event* timer_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_sleep<Libevent>(argc, argv); }
