// Wall-clock timers: never early, aligned, computed, and on time after the
// clock was set.
//
// Nobody may set the machine's clock for a test, and time namespaces leave
// CLOCK_REALTIME as it is. So the system calls that know of it are replaced in
// this program: the clock is the real one and an offset, timers are set by
// that, and setting it does to a timerfd what the kernel does.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "base/clock.h"
#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/random.h"
#include "support/scale.h"

namespace tambour {
namespace {

using namespace std::chrono_literals;

/// The clock that this program lives by, and the one timerfd that it can tell
/// of a change.
struct SettableClock {
  std::int64_t offset_ns = 0;
  int timerfd = -1;
  bool was_set = false;            ///< The timerfd has not told yet.
  bool set_before_arming = false;  ///< The next timerfd_settime finds that the clock was set.

  void set_by(Duration time) {
    offset_ns += time.count();
    if (timerfd < 0) return;
    was_set = true;
    // Readable at once, as the kernel makes it.
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
  // Tells what read(2) has not told yet, which then will not.
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

class WallTimers : public test::OnEveryBackend {
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

TAMBOUR_ON_EVERY_BACKEND(WallTimers);

TEST_P(WallTimers, it_is_called_once_and_not_before_its_time) {
  const WallTime time = wall_now() + 20ms;
  WallTimer timer(loop(), [&] {
    EXPECT_GE(wall_now(), time);
    ++calls;
  });
  EXPECT_EQ(timer.time(), WallTime::max());
  ASSERT_TRUE(timer.start_at(time));
  EXPECT_EQ(timer.time(), time);
  run_turns();
  EXPECT_EQ(calls, 0);
  loop().run();
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(timer.started());
}

TEST_P(WallTimers, what_is_past_is_due_in_the_next_turn) {
  for (const WallTime past :
       {wall_now(), wall_now() - 24h, WallTime(Duration(0)), WallTime::min()}) {
    WallTimer timer(loop(), count());
    ASSERT_TRUE(timer.start_at(past));
    calls = 0;
    EXPECT_TRUE(run_until([this] { return calls == 1; }));
  }
}

TEST_P(WallTimers, the_end_of_time_never_comes) {
  WallTimer timer(loop(), count());
  ASSERT_TRUE(timer.start_at(WallTime::max()));
  EXPECT_TRUE(sleeps_through(20ms));
  settable.set_by(24h * 365 * 100);
  run_turns();
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(timer.started());
}

TEST_P(WallTimers, intervals_are_aligned) {
  constexpr Duration interval = 10ms;
  for (const Duration offset : {Duration(3ms), Duration(-7ms), Duration(103ms)}) {
    WallTime previous;
    calls = 0;
    WallTimer timer(loop(), [&] {
      const WallTime now = wall_now();
      EXPECT_GE(now.time_since_epoch() - offset, Duration::zero());
      EXPECT_GT(timer.time(), previous);
      previous = timer.time();
      if (++calls == 4) timer.stop();
    });
    const WallTime before = wall_now();
    ASSERT_TRUE(timer.start_every(interval, offset));
    EXPECT_GT(timer.time(), before);
    EXPECT_LE(timer.time() - wall_now(), interval);
    while (timer.started()) {
      EXPECT_EQ((timer.time().time_since_epoch() - 3ms) % interval, Duration::zero());
      loop().run_once();
    }
    EXPECT_EQ(calls, 4);
  }
}

TEST_P(WallTimers, an_interval_has_to_be_positive) {
  WallTimer timer(loop(), count());
  EXPECT_EQ(timer.start_every(0s).error(), system_error(EINVAL));
  EXPECT_EQ(timer.start_every(-1s).error(), system_error(EINVAL));
  EXPECT_FALSE(timer.started());
  ASSERT_TRUE(timer.start_every(Duration::max(), Duration::min()));
  ASSERT_TRUE(timer.start_every(1ns));
  EXPECT_TRUE(run_until([this] { return calls == 3; }));
}

TEST_P(WallTimers, a_computed_one_asks_before_each_call) {
  std::vector<WallTime> asked_at;
  WallTimer timer(loop(), count());
  ASSERT_TRUE(timer.start_by([&](WallTime now) {
    asked_at.push_back(now);
    return asked_at.size() <= 3 ? now + 5ms : WallTime::max();
  }));
  EXPECT_EQ(asked_at.size(), 1U);
  EXPECT_TRUE(run_until([this] { return calls == 3; }));
  EXPECT_EQ(asked_at.size(), 4U);
  EXPECT_EQ(timer.time(), WallTime::max());
  EXPECT_TRUE(timer.started());
  for (std::size_t i = 1; i < asked_at.size(); ++i) EXPECT_GE(asked_at[i] - asked_at[i - 1], 5ms);
  timer.ask_again();
  run_turns();
  EXPECT_EQ(asked_at.size(), 5U);
  EXPECT_EQ(calls, 3);
}

TEST_P(WallTimers, what_the_calculation_throws_stops_the_timer) {
  bool throws = true;
  const auto next = [&throws](WallTime now) {
    if (throws) throw std::runtime_error("no more Fridays");
    return now;
  };
  WallTimer timer(loop(), count());
  EXPECT_THROW(static_cast<void>(timer.start_by(next)), std::runtime_error);
  EXPECT_FALSE(timer.started());
  throws = false;
  ASSERT_TRUE(timer.start_by(next));
  throws = true;
  EXPECT_THROW(loop().run(), std::runtime_error);
  EXPECT_FALSE(timer.started());
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(loop().stats().references, 0);
}

TEST_P(WallTimers, many_come_in_the_order_of_their_times) {
  TAMBOUR_TELL_SEED();
  test::Random random;
  const std::size_t number = 1000;
  std::vector<WallTimer> timers;
  std::vector<WallTime> times;
  WallTime latest;
  for (std::size_t i = 0; i < number; ++i) {
    timers.emplace_back(loop(), [&, i] {
      ++calls;
      EXPECT_GE(wall_now(), times[i]);
      // Those of one turn in order; the next turn's are later.
      EXPECT_GE(times[i], latest);
      latest = times[i];
    });
    times.push_back(wall_now() + 20ms + Duration(random.below(30'000'000)));
  }
  for (std::size_t i = 0; i < number; ++i) ASSERT_TRUE(timers[i].start_at(times[i]));
  for (std::size_t i = 0; i < number; i += 10) timers[i].stop();
  loop().run();
  EXPECT_EQ(calls, 900);
}

TEST_P(WallTimers, starting_it_anew_replaces_what_was) {
  WallTimer timer(loop(), count());
  ASSERT_TRUE(timer.start_at(wall_now()));
  ASSERT_TRUE(timer.start_every(24h));
  ASSERT_TRUE(timer.start_at(wall_now() + 24h));
  EXPECT_EQ(loop().stats().references, 1);
  EXPECT_TRUE(sleeps_through(10ms));
  EXPECT_EQ(calls, 0);
  ASSERT_TRUE(timer.start_at(wall_now()));
  loop().run();
  EXPECT_EQ(calls, 1);
}

TEST_P(WallTimers, it_moves_and_is_destroyed_anywhere) {
  const auto weight = std::make_shared<int>(7);
  std::vector<std::unique_ptr<WallTimer>> timers(5);
  for (auto& timer : timers) {
    timer = std::make_unique<WallTimer>(loop(), [&, weight] {
      ++calls;
      for (auto& each : timers) each.reset();
      EXPECT_EQ(*weight, 7);
    });
    ASSERT_TRUE(timer->start_at(wall_now()));
    timer = std::make_unique<WallTimer>(std::move(*timer));
    EXPECT_TRUE(timer->started());
  }
  loop().run();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(weight.use_count(), 1);
}

TEST_P(WallTimers, it_may_outlive_its_loop) {
  WallTimer due(loop(), count());
  WallTimer later(loop(), count());
  ASSERT_TRUE(due.start_at(wall_now()));
  ASSERT_TRUE(later.start_at(wall_now() + 1h));
  destroy_loop();
  EXPECT_FALSE(due.started());
  EXPECT_FALSE(later.started());
  later.stop();
  EXPECT_EQ(calls, 0);
}

TEST_P(WallTimers, no_system_call_is_made_for_what_comes_later) {
  WallTimer first(loop(), count());
  ASSERT_TRUE(first.start_at(wall_now() + 1h));
  settable.set_before_arming = true;  // Taken by the next one that is armed.
  std::vector<WallTimer> later;
  for (int i = 0; i < 100; ++i) {
    later.emplace_back(loop(), count());
    ASSERT_TRUE(later.back().start_at(wall_now() + 2h));
  }
  EXPECT_TRUE(settable.set_before_arming);
}

/// How far the clock is set, and back again.
constexpr Duration leaps[] = {1h, -1h, 24h * 365 * 10, -24h * 365 * 10};

TEST_P(WallTimers, when_the_clock_is_set_absolute_times_are_as_far_off_as_it_says) {
  for (const Duration leap : leaps) {
    calls = 0;
    WallTimer passed(loop(), count());
    WallTimer ahead(loop(), [this] { calls += 100; });
    Timer monotonic(loop(), [this] { calls += 10; });
    monotonic.start(20ms);
    ASSERT_TRUE(passed.start_at(wall_now() + std::chrono::abs(leap) - 1min));
    ASSERT_TRUE(ahead.start_at(wall_now() + leap + 10ms));
    if (leap < Duration::zero()) {
      // Due already, as the clock stands; it has not been called when that
      // changes.
      settable.set_by(leap);
      EXPECT_TRUE(run_until([this] { return calls == 110; }));
    } else {
      run_turns();
      EXPECT_EQ(calls, 0);
      settable.set_by(leap);
      EXPECT_TRUE(run_until([this] { return calls == 111; }));
    }
    settable.set_by(-leap);
    run_turns();
  }
}

TEST_P(WallTimers, when_the_clock_is_set_intervals_go_by_the_new_time) {
  for (const Duration leap : leaps) {
    calls = 0;
    WallTimer timer(loop(), count());
    ASSERT_TRUE(timer.start_every(30min));
    run_turns();
    settable.set_by(leap);
    EXPECT_TRUE(run_until([&] { return std::chrono::abs(timer.time() - wall_now()) <= 30min; }));
    run_turns();
    // What the clock jumped over is one call.
    EXPECT_EQ(calls, leap > Duration::zero() ? 1 : 0);
    EXPECT_GT(timer.time(), wall_now());
    EXPECT_EQ(timer.time().time_since_epoch() % 30min, Duration::zero());
    settable.set_by(-leap);
    run_turns();
  }
}

TEST_P(WallTimers, when_the_clock_is_set_computed_ones_are_asked) {
  for (const Duration leap : leaps) {
    calls = 0;
    std::vector<WallTime> asked_at;
    WallTimer timer(loop(), count());
    ASSERT_TRUE(timer.start_by([&](WallTime now) {
      asked_at.push_back(now);
      return now + 24h * 365 * 100;
    }));
    run_turns();
    ASSERT_EQ(asked_at.size(), 1U);
    settable.set_by(leap);
    EXPECT_TRUE(run_until([&] { return asked_at.size() == 2; }));
    EXPECT_GE(std::chrono::abs(asked_at[1] - asked_at[0]), std::chrono::abs(leap) - 1min);
    run_turns();
    EXPECT_EQ(asked_at.size(), 2U);
    EXPECT_EQ(calls, 0);
    settable.set_by(-leap);
    run_turns();
  }
}

TEST_P(WallTimers, a_change_while_the_timer_is_set_is_not_missed) {
  WallTimer timer(loop(), count());
  settable.set_before_arming = true;
  ASSERT_TRUE(timer.start_every(1h));
  // The kernel tells here what it then does not tell read(2).
  settable.offset_ns = Duration(-24h).count();
  settable.set_before_arming = true;
  WallTimer sooner(loop(), count());
  ASSERT_TRUE(sooner.start_at(wall_now() + 24h + 1ms));
  EXPECT_TRUE(run_until([&] { return timer.time() - wall_now() <= 1h; }));
  EXPECT_EQ(calls, 0);
}

TEST_P(WallTimers, the_clock_may_be_set_back_by_a_callback_of_the_same_turn) {
  WallTimer first(loop(), [this] {
    ++calls;
    settable.set_by(-1h);
  });
  WallTimer once(loop(), count());
  WallTimer hourly(loop(), count());
  first.set_priority(1);
  const WallTime due = wall_now();
  ASSERT_TRUE(first.start_at(due));
  ASSERT_TRUE(once.start_at(due));
  ASSERT_TRUE(hourly.start_every(1h));
  EXPECT_TRUE(run_until([this] { return calls == 1; }));
  run_turns();
  EXPECT_EQ(calls, 1) << "its time has not come";
  EXPECT_EQ(once.time(), due);
  EXPECT_LE(hourly.time() - wall_now(), 1h);
  settable.set_by(1h);
  EXPECT_TRUE(run_until([this] { return calls == 3; }));
}

TEST_P(WallTimers, the_forked_child_has_its_own) {
  WallTimer timer(loop(), count());
  ASSERT_TRUE(timer.start_at(wall_now() + 10ms));
  EXPECT_EQ(test::in_child([this] {
              if (!loop().reopen_after_fork()) return 1;
              loop().run();
              return calls == 1 ? 0 : 2;
            }),
            0);
  loop().run();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace tambour
