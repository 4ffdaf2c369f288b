// The drum on libev's emulation of libevent 1.4: the third curve of libev's page.
//
// As in the program that libev published, which is that of libevent compiled with the other
// event.h: an event that resets its timeout is deleted and added.
#include <vector>

#include "common/timeval.h"
#include "drum/drum.h"
// libev's event.h cannot be installed beside libevent's. These are its declarations.
#include "libev/emulation.h"

namespace {

class LibevEmulation {
 public:
  explicit LibevEmulation(bench::Ring& ring) : ring_(ring), pairs_(ring.pairs()) {
    for (int i = 0; i < ring.pairs(); ++i) {
      pairs_[i].self = this;
      pairs_[i].index = i;
      set(pairs_[i]);
    }
  }
  ~LibevEmulation() {
    for (Pair& pair : pairs_) event_del(&pair.event);
    event_base_free(base_);
  }
  LibevEmulation(const LibevEmulation&) = delete;
  LibevEmulation& operator=(const LibevEmulation&) = delete;

  void restart(int i) {
    Pair& pair = pairs_[i];
    event_del(&pair.event);
    set(pair);
    add(pair);
  }
  void run_pending() { event_base_loop(base_, EVRUN_NOWAIT); }
  void run() {
    // event_base_loopexit() of the emulation takes effect with the next iteration.
    while (!ring_.finished()) event_base_loop(base_, EVRUN_ONCE);
  }

  bench::SubjectInfo info() const {
    return {"libev-emulation", event_get_version(), event_base_get_method(base_)};
  }

 private:
  static constexpr short persist = 0x10;

  struct Pair {
    struct event event;
    LibevEmulation* self;
    int index;
  };

  void set(Pair& pair) {
    event_set(&pair.event, ring_.fd(pair.index), EV_READ | persist, on_event, &pair);
    event_base_set(base_, &pair.event);
  }

  void add(Pair& pair) {
    if (ring_.timeouts()) {
      timeval idle = bench::to_timeval(ring_.idle_seconds());
      event_add(&pair.event, &idle);
    } else {
      event_add(&pair.event, nullptr);
    }
  }

  static void on_event(int, short kind, void* argument) {
    if (kind & EV_READ) {
      Pair& pair = *static_cast<Pair*>(argument);
      LibevEmulation& self = *pair.self;
      if (!self.ring_.receive(pair.index)) return;
      if (self.ring_.timeouts()) {
        event_del(&pair.event);
        self.add(pair);
      }
      self.ring_.forward(pair.index);
    } else {
      bench::Ring::idle_timeout_expired();
    }
  }

  bench::Ring& ring_;
  event_base* base_ = event_base_new();
  std::vector<Pair> pairs_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_drum<LibevEmulation>(argc, argv); }
