// A hand-written loop over epoll(7).
#include <sys/epoll.h>

#include "latency/latency.h"

namespace {

class Epoll {
 public:
  explicit Epoll(int fd) : fd_(fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) bench::fail_errno("epoll_ctl");
  }
  void run() {
    epoll_event event;
    do {
      if (epoll_wait(epoll_, &event, 1, -1) != 1) bench::fail_errno("epoll_wait");
    } while (bench::echo_once(fd_));
  }
  bench::About about() const { return {"epoll", bench::kernel_release(), "epoll"}; }

 private:
  int fd_;
  int epoll_ = epoll_create1(EPOLL_CLOEXEC);
};

}  // namespace

int main(int argc, char** argv) { return bench::play_latency<Epoll>(argc, argv); }
