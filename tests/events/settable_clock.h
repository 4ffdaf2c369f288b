// A wall clock that tests can set.
//
// A test must not set the machine's clock, and time namespaces do not virtualize CLOCK_REALTIME. So
// the program that includes this header, in exactly one source file, replaces the system calls
// involved: the clock is the real one plus an offset, timers are converted accordingly, and setting
// the clock affects a timerfd as it does in the kernel.
#pragma once

#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "base/clock.h"
#include "support/on_every_backend.h"

namespace tambour {
namespace {

/// The program's clock, and the one timerfd that is notified of changes.
struct SettableClock {
  std::int64_t offset_ns = 0;
  int timerfd = -1;
  bool was_set = false;            ///< The timerfd has not reported the change yet.
  bool set_before_arming = false;  ///< The next timerfd_settime(2) finds that the clock was set.

  void set_by(Duration time) {
    offset_ns += time.count();
    if (timerfd < 0) return;
    was_set = true;
    // Makes the timerfd readable immediately, like the kernel.
    itimerspec now{};
    now.it_value.tv_nsec = 1;
    ::syscall(SYS_timerfd_settime, timerfd, 0, &now, nullptr);
  }
};

SettableClock settable;

}  // namespace
}  // namespace tambour

using tambour::settable;

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const auto outcome = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  if (clock == CLOCK_REALTIME && outcome == 0 && settable.offset_ns != 0) {
    *now = tambour::base::to_timespec(std::int64_t{now->tv_sec} * tambour::base::ns_per_s +
                                      now->tv_nsec + settable.offset_ns);
  }
  return outcome;
}

int timerfd_settime(int fd, int flags, const itimerspec* wanted, itimerspec* old) noexcept {
  settable.timerfd = fd;
  itimerspec real = *wanted;
  const std::int64_t wanted_ns =
      std::int64_t{wanted->it_value.tv_sec} * tambour::base::ns_per_s + wanted->it_value.tv_nsec;
  if (wanted_ns != tambour::base::end_of_time_ns)
    real.it_value =
        tambour::base::to_timespec(std::max<std::int64_t>(wanted_ns - settable.offset_ns, 1));
  const auto outcome = static_cast<int>(::syscall(SYS_timerfd_settime, fd, flags, &real, old));
  // Reports the change, so that read(2) does not report it again.
  if (!settable.set_before_arming && !settable.was_set) return outcome;
  settable.set_before_arming = settable.was_set = false;
  errno = ECANCELED;
  return -1;
}

ssize_t read(int fd, void* into, std::size_t size) {
  const ssize_t outcome = ::syscall(SYS_read, fd, into, size);
  if (fd != settable.timerfd || !settable.was_set) return outcome;
  settable.was_set = false;
  errno = ECANCELED;
  return -1;
}

}  // extern "C"

namespace tambour {
namespace {

WallTime wall_now() { return WallTime(Duration(base::wall_ns())); }

/// Wall-clock timers on a settable clock.
class SettableClockTest : public test::OnEveryBackend {
 protected:
  void SetUp() override {
    settable = {};
    OnEveryBackend::SetUp();
  }
  void TearDown() override {
    OnEveryBackend::TearDown();
    settable = {};
  }

  auto count() {
    return [this] { ++calls; };
  }

  int calls = 0;
};

}  // namespace
}  // namespace tambour
