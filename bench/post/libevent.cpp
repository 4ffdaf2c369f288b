// Posting on libevent: an eventfd and a queue with a mutex. Activating an event from another thread
// requires libevent's locks and its own wakeup, which cost more.
#include <sys/eventfd.h>
#include <unistd.h>

#include <event2/event.h>

#include "post/mutex_queue.h"
#include "post/post.h"

namespace {

class Libevent {
 public:
  Libevent() { event_add(wakeup_, nullptr); }
  ~Libevent() {
    event_free(wakeup_);
    event_base_free(base_);
    close(fd_);
  }
  Libevent(const Libevent&) = delete;
  Libevent& operator=(const Libevent&) = delete;

  void post(bench::Task task) {
    if (tasks_.push(task)) eventfd_write(fd_, 1);
  }
  void run() { event_base_dispatch(base_); }
  void stop() { event_base_loopbreak(base_); }
  bench::SubjectInfo info() const {
    return {"libevent", event_get_version(), event_base_get_method(base_)};
  }

 private:
  static void on_wakeup(evutil_socket_t fd, short, void* context) {
    eventfd_t count;
    eventfd_read(fd, &count);
    static_cast<Libevent*>(context)->tasks_.run_all();
  }

  int fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  event_base* base_ = event_base_new();
  event* wakeup_ = event_new(base_, fd_, EV_READ | EV_PERSIST, on_wakeup, this);
  bench::MutexQueue tasks_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_post<Libevent>(argc, argv); }
