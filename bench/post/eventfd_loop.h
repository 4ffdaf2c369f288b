// A minimal hand-written loop: an eventfd in an epoll instance, as a loop with other descriptors
// would have. The queue of tasks belongs to the subject.
#pragma once

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "common/program.h"

namespace bench {

class EventfdLoop {
 public:
  EventfdLoop() {
    epoll_event event{.events = EPOLLIN, .data = {.fd = event_}};
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, event_, &event) != 0) fail_errno("epoll_ctl");
  }
  ~EventfdLoop() {
    close(event_);
    close(epoll_);
  }
  EventfdLoop(const EventfdLoop&) = delete;
  EventfdLoop& operator=(const EventfdLoop&) = delete;

  void wake() {
    const std::uint64_t one = 1;
    if (write(event_, &one, sizeof one) != sizeof one) fail_errno("eventfd");
  }

  /// Calls `run_all` after each wakeup, until stop().
  template <class RunAll>
  void run(const RunAll& run_all) {
    while (!stopped_) {
      epoll_event event;
      if (epoll_wait(epoll_, &event, 1, -1) != 1) continue;
      std::uint64_t count;
      if (read(event_, &count, sizeof count) != sizeof count) fail_errno("eventfd");
      run_all();
    }
  }
  void stop() { stopped_ = true; }

 private:
  int epoll_ = epoll_create1(EPOLL_CLOEXEC);
  int event_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  bool stopped_ = false;
};

}  // namespace bench
