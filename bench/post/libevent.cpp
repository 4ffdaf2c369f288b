// An eventfd in libevent, and tasks behind a mutex. To activate an event from another thread needs
// libevent's own locks and its own wake-up, which cost more.
#include <sys/eventfd.h>
#include <unistd.h>

#include <event2/event.h>

#include "post/guarded_tasks.h"
#include "post/post.h"

namespace {

class Libevent {
 public:
  Libevent() { event_add(woken_, nullptr); }
  ~Libevent() {
    event_free(woken_);
    event_base_free(base_);
    close(fd_);
  }
  Libevent(const Libevent&) = delete;
  Libevent& operator=(const Libevent&) = delete;

  void post(bench::Task task) {
    if (tasks_.add(task)) eventfd_write(fd_, 1);
  }
  void run() { event_base_dispatch(base_); }
  void stop() { event_base_loopbreak(base_); }
  bench::About about() const {
    return {"libevent", event_get_version(), event_base_get_method(base_)};
  }

 private:
  static void on_woken(evutil_socket_t fd, short, void* context) {
    eventfd_t count;
    eventfd_read(fd, &count);
    static_cast<Libevent*>(context)->tasks_.run_all();
  }

  int fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  event_base* base_ = event_base_new();
  event* woken_ = event_new(base_, fd_, EV_READ | EV_PERSIST, on_woken, this);
  bench::GuardedTasks tasks_;
};

}  // namespace

int main(int argc, char** argv) { return bench::play_post<Libevent>(argc, argv); }
