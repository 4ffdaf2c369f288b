// A bare timerfd (timerfd_create(2)) in an edge-triggered epoll set, so that it need not be read.
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "sleep/sleep.h"

namespace {

class Floor {
 public:
  Floor() {
    epoll_event edges{.events = EPOLLIN | EPOLLET, .data = {}};
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, timer_, &edges) != 0) bench::fail_errno("epoll_ctl");
  }

  void sleep(std::int64_t length_ns) {
    const itimerspec once{.it_interval = {},
                          .it_value = {length_ns / 1'000'000'000, length_ns % 1'000'000'000}};
    if (timerfd_settime(timer_, 0, &once, nullptr) != 0) bench::fail_errno("timerfd_settime");
    epoll_event event;
    if (epoll_wait(epoll_, &event, 1, -1) != 1) bench::fail_errno("epoll_wait");
  }
  bench::SubjectInfo info() const { return {"floor", bench::kernel_release(), "timerfd"}; }

 private:
  int epoll_ = epoll_create1(EPOLL_CLOEXEC);
  int timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
};

}  // namespace

int main(int argc, char** argv) { return bench::run_sleep<Floor>(argc, argv); }
