// The drum on libev's C interface.
//
// Idle timeouts use ev_timer_again, which libev's documentation recommends for timers that are
// postponed often: it starts or restarts the timer with one move in the heap instead of two.
// ev_io_stop, ev_io_modify and ev_io_start only record the change; libev passes it to the kernel in
// the next iteration. ev_io_set instead of ev_io_modify implies that the descriptor may have
// changed, which costs one system call per watcher in the next iteration. libev's published program
// uses ev_io_set (PUBLISHED_SET).
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
  void run_pending() { ev_run(loop_, EVRUN_NOWAIT); }
  void run() { ev_run(loop_, 0); }

  bench::SubjectInfo info() const {
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
    ring.forward(pair->index);
    if (ring.finished()) ev_break(loop, EVBREAK_ONE);
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

int main(int argc, char** argv) { return bench::run_drum<Libev>(argc, argv); }
