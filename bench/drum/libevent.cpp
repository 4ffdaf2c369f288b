// The drum on libevent: persistent read events with the timeout of the event itself.
//
// event_add on an added event restarts its timeout without a system call. libev's published program
// calls event_del first, which costs two epoll_ctl(2) per event. With PUBLISHED_RESET, this program
// does the same, so that the published figures can be reproduced.
//
// The configuration is the default: epoll without its change list, which is opt-in because it does
// not work with duplicated descriptors.
#include <vector>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "common/timeval.h"
#include "drum/drum.h"

namespace {

#ifdef PUBLISHED_RESET
constexpr bool published_reset = true;
#else
constexpr bool published_reset = false;
#endif

class Libevent {
 public:
  explicit Libevent(bench::Ring& ring) : ring_(ring), pairs_(ring.pairs()) {
    for (int i = 0; i < ring.pairs(); ++i) {
      pairs_[i].self = this;
      pairs_[i].index = i;
      event_assign(&pairs_[i].event, base_, ring.fd(i), EV_READ | EV_PERSIST, on_event, &pairs_[i]);
    }
  }
  ~Libevent() {
    for (Pair& pair : pairs_) event_del(&pair.event);
    event_base_free(base_);
  }
  Libevent(const Libevent&) = delete;
  Libevent& operator=(const Libevent&) = delete;

  void restart(int i) {
    Pair& pair = pairs_[i];
    event_del(&pair.event);
    event_assign(&pair.event, base_, ring_.fd(i), EV_READ | EV_PERSIST, on_event, &pair);
    add(pair);
  }
  void run_pending() { event_base_loop(base_, EVLOOP_NONBLOCK); }
  void run() { event_base_dispatch(base_); }

  bench::SubjectInfo info() const {
    return {published_reset ? "libevent-published" : "libevent", event_get_version(),
            event_base_get_method(base_)};
  }

 private:
  struct Pair {
    struct event event;
    Libevent* self;
    int index;
  };

  void add(Pair& pair) {
    if (ring_.timeouts()) {
      const timeval idle = bench::to_timeval(ring_.idle_seconds());
      event_add(&pair.event, &idle);
    } else {
      event_add(&pair.event, nullptr);
    }
  }

  static void on_event(evutil_socket_t, short kind, void* argument) {
    if (kind & EV_TIMEOUT) bench::Ring::idle_timeout_expired();
    Pair& pair = *static_cast<Pair*>(argument);
    Libevent& self = *pair.self;
    if (!self.ring_.receive(pair.index)) return;
    if (self.ring_.timeouts()) {
      if (published_reset) event_del(&pair.event);
      self.add(pair);
    }
    self.ring_.forward(pair.index);
    if (self.ring_.finished()) event_base_loopbreak(self.base_);
  }

  bench::Ring& ring_;
  event_base* base_ = event_base_new();
  std::vector<Pair> pairs_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_drum<Libevent>(argc, argv); }
