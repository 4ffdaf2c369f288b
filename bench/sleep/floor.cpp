// A bare epoll_pwait2(2) on an empty set.
#include <sys/epoll.h>

#include "sleep/sleep.h"

namespace {

class Floor {
 public:
  void sleep(std::int64_t length_ns) {
    const timespec length{length_ns / 1'000'000'000, length_ns % 1'000'000'000};
    epoll_event event;
    if (epoll_pwait2(epoll_, &event, 1, &length, nullptr) < 0) bench::fail_errno("epoll_pwait2");
  }
  bench::About about() const { return {"floor", bench::kernel_release(), "epoll_pwait2"}; }

 private:
  int epoll_ = epoll_create1(EPOLL_CLOEXEC);
};

}  // namespace

int main(int argc, char** argv) { return bench::play_sleep<Floor>(argc, argv); }
