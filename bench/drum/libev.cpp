// The drum on libev's own C interface.
//
// Idle timeouts use ev_timer_again, which its documentation recommends for timers that are pushed
// back all the time: it starts the timer or starts it anew, with one move in the heap in place of
// two. ev_io_stop, ev_io_modify and ev_io_start only note the change; the kernel hears of it in the
// next turn. ev_io_set in the place of ev_io_modify says that the descriptor may be another one,
// which costs a system call for each in the next turn; the program that libev published uses it
// (PUBLISHED_SET).
#include <string>
#include <vector>

#include <ev.h>

#include "drum/drum.h"

namespace {

class Libev {
 public:
  explicit Libev(bench::Ring& ring) : ring_(ring), pairs_(ring.pairs()) {
    ev_set_userdata(loop_, this);
    for (int i = 0; i < ring.pairs(); ++i) {
      ev_io_init(&pairs_[i].io, on_readable, ring.fd(i), EV_READ);
      ev_timer_init(&pairs_[i].idle, on_idle, 0., 0.);
      pairs_[i].io.data = &pairs_[i];
      pairs_[i].index = i;
    }
  }
  ~Libev() { ev_loop_destroy(loop_); }
  Libev(const Libev&) = delete;
  Libev& operator=(const Libev&) = delete;

  void restart(int i) {
    Pair& pair = pairs_[i];
    ev_io_stop(loop_, &pair.io);
#ifdef PUBLISHED_SET
    ev_io_set(&pair.io, ring_.fd(i), EV_READ);
#else
    ev_io_modify(&pair.io, EV_READ);
#endif
    ev_io_start(loop_, &pair.io);
    if (ring_.timeouts()) {
      pair.idle.repeat = ring_.idle_seconds();
      ev_timer_again(loop_, &pair.idle);
    }
  }
  void settle() { ev_run(loop_, EVRUN_NOWAIT); }
  void run() { ev_run(loop_, 0); }

  bench::About about() const {
    return {"libev", std::to_string(ev_version_major()) + "." + std::to_string(ev_version_minor()),
            backend_name()};
  }

 private:
  struct Pair {
    ev_io io;
    ev_timer idle;
    int index;
  };

  static void on_readable(struct ev_loop* loop, ev_io* io, int) {
    auto* self = static_cast<Libev*>(ev_userdata(loop));
    auto* pair = static_cast<Pair*>(io->data);
    bench::Ring& ring = self->ring_;
    if (!ring.receive(pair->index)) return;
    if (ring.timeouts()) {
      pair->idle.repeat = ring.idle_seconds();
      ev_timer_again(loop, &pair->idle);
    }
    ring.pass_on(pair->index);
    if (ring.over()) ev_break(loop, EVBREAK_ONE);
  }
  static void on_idle(struct ev_loop*, ev_timer*, int) { bench::Ring::idle_timeout_expired(); }

  const char* backend_name() const {
    switch (ev_backend(loop_)) {
      case EVBACKEND_EPOLL:
        return "epoll";
      case EVBACKEND_LINUXAIO:
        return "linuxaio";
      case EVBACKEND_IOURING:
        return "io_uring";
      case EVBACKEND_POLL:
        return "poll";
      case EVBACKEND_SELECT:
        return "select";
      default:
        return "unknown";
    }
  }

  bench::Ring& ring_;
  struct ev_loop* loop_ = ev_loop_new(EVFLAG_AUTO);
  std::vector<Pair> pairs_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_drum<Libev>(argc, argv); }
