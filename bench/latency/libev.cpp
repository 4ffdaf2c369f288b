// An ev_io on libev's default backend.
#include <string>

#include <ev.h>

#include "latency/latency.h"

namespace {

class Libev {
 public:
  explicit Libev(int fd) {
    ev_io_init(&io_, on_readable, fd, EV_READ);
    ev_io_start(loop_, &io_);
  }
  ~Libev() { ev_loop_destroy(loop_); }
  Libev(const Libev&) = delete;
  Libev& operator=(const Libev&) = delete;

  void run() { ev_run(loop_, 0); }
  bench::About about() const {
    return {"libev", std::to_string(ev_version_major()) + "." + std::to_string(ev_version_minor()),
            ev_backend(loop_) == EVBACKEND_EPOLL ? "epoll" : "other"};
  }

 private:
  static void on_readable(struct ev_loop* loop, ev_io* io, int) {
    if (!bench::echo_once(io->fd)) ev_break(loop, EVBREAK_ALL);
  }

  struct ev_loop* loop_ = ev_loop_new(EVFLAG_AUTO);
  ev_io io_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_latency<Libev>(argc, argv); }
