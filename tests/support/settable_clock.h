// A wall clock that tests can set.
//
// A test must not set the machine's clock, and time namespaces do not virtualize CLOCK_REALTIME. So
// a program that includes this header replaces the system calls, in settable_clock.cpp, that are
// involved: the clock is the real one plus an offset, timers are converted accordingly, and setting
// the clock affects a timerfd as it does in the kernel.
#pragma once

#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdint>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "base/clock.h"
#include "support/on_every_backend.h"

namespace tambour {

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

extern SettableClock settable;

namespace {

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

  static WallTime wall_now() { return WallTime(Duration(detail::base::wall_ns())); }

  auto count() {
    return [this] { ++calls; };
  }

  int calls = 0;
};

}  // namespace
}  // namespace tambour
