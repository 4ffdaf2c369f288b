// The clock that times callbacks, and the times that a monitored loop publishes.
#include "loop/observation/call_clock.h"

#include <chrono>
#include <cstdint>
#include <thread>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "backend/backend.h"
#include "base/clock.h"
#include "base/ready_queue.h"
#include "loop/core.h"
#include "loop/observation/monitor.h"

namespace tambour::call_clock_test {
namespace {

using detail::loop::CallClock;
using detail::loop::core_of;
using detail::loop::Monitor;

using namespace std::chrono_literals;

constexpr std::int64_t ms = 1'000'000;

TEST(CallClocks, measure_the_rate_of_the_counter) {
  CallClock clock;
  clock.compare(1000 * ms, 5);
  EXPECT_EQ(clock.ns_per_count(), 0);
  clock.compare(1009 * ms, 27'000'005);
  EXPECT_EQ(clock.ns_per_count(), 0) << "too early";
  clock.compare(1012 * ms, 36'000'005);
  EXPECT_DOUBLE_EQ(clock.ns_per_count(), 1. / 3);
}

TEST(CallClocks, correct_a_first_rate_that_is_wrong) {
  CallClock clock;
  clock.compare(0, 0);
  // The thread was preempted between two readings.
  clock.compare(10 * ms, 60'000'000);
  EXPECT_DOUBLE_EQ(clock.ns_per_count(), 1. / 6);
  std::int64_t now_ms = 10;
  for (; now_ms <= 2000; ++now_ms)
    clock.compare(now_ms * ms, static_cast<std::uint64_t>(now_ms) * 3'000'000);
  EXPECT_NEAR(clock.ns_per_count(), 1. / 3, 1e-9);
  // A virtual machine that has moved to another host.
  const auto count = static_cast<std::uint64_t>(now_ms) * 3'000'000;
  for (std::uint64_t i = 0; i < 3000; ++i, ++now_ms)
    clock.compare(now_ms * ms, count + i * 2'000'000);
  EXPECT_NEAR(clock.ns_per_count(), 1. / 2, 1e-9);
  // One whose counter goes back.
  for (std::uint64_t i = 0; i < 3000; ++i, ++now_ms) clock.compare(now_ms * ms, i);
  EXPECT_GE(clock.ns_per_count(), 0);
}

/// The thread is preempted after one of three readings of the clock, each time after another one.
class PreemptedReader : public detail::backend::Backend {
 public:
  std::int64_t monotonic_ns() const noexcept override {
    const std::int64_t now_ns = detail::base::monotonic_ns();
    if (readings_ % 3 == readings_ / 3 % 3)
      while (detail::base::monotonic_ns() < now_ns + preempted_ns) continue;
    ++readings_;
    return now_ns;
  }
  void submit(detail::Operation&) noexcept override {}
  void cancel(detail::Operation&) noexcept override {}
  void poll(std::int64_t, detail::base::ReadyQueue&) noexcept override {}
  void wake() noexcept override {}
  void invalidate(int) noexcept override {}
  void feed(int, Events, detail::base::ReadyQueue&) noexcept override {}
  Result<> reopen() noexcept override { return {}; }
  void abandon() noexcept override {}

  [[nodiscard]] unsigned readings() const noexcept { return readings_; }

  static constexpr std::int64_t preempted_ns = 5 * ms;

 private:
  mutable unsigned readings_ = 0;
};

TEST(CallClocks, leave_out_readings_between_which_the_thread_was_preempted) {
  const PreemptedReader backend;
  CallClock clock;
  clock.use_counter();
  clock.adjust(backend, detail::base::monotonic_ns());
  if (backend.readings() == 0) GTEST_SKIP() << "the processor has no counter that can be used";
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(1ms);  // Or the clock is not adjusted again.
    clock.adjust(backend, detail::base::monotonic_ns());
    if (clock.ns_per_count() == 0) continue;
    const std::int64_t before_ns = detail::base::monotonic_ns();
    const std::int64_t now_ns = clock.now_ns(backend);
    ASSERT_GE(now_ns, before_ns - PreemptedReader::preempted_ns / 4);
    ASSERT_LE(now_ns, detail::base::monotonic_ns() + PreemptedReader::preempted_ns / 4);
  }
  EXPECT_NE(clock.ns_per_count(), 0);
  EXPECT_GE(backend.readings(), 60U) << "each of the three was the one that lasted";
}

/// In busy loops, so that the counter is used, if there is one: after 10 ms.
class MonitoredLoop : public testing::Test {
 public:
  void spin(Duration time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) continue;
  }
  void run_callbacks(int count, Duration time) {
    for (int i = 0; i < count; ++i) {
      loop_.post([this, time] { spin(time); });
      loop_.run_once();
    }
  }

  EventLoop loop_;
  std::shared_ptr<Monitor> monitor_ = core_of(loop_).monitor(true);
};

TEST_F(MonitoredLoop, publishes_times_that_are_those_of_the_clock) {
  const auto began = std::chrono::steady_clock::now();
  run_callbacks(60, 1ms);
  const Duration passed = std::chrono::steady_clock::now() - began;
  const LoopStats stats = monitor_->figures().stats;
  EXPECT_GE(stats.callback_time, Duration(57ms));
  EXPECT_LE(stats.callback_time, passed + 1ms);
  EXPECT_GE(stats.lag_max, Duration(900us));
  std::int64_t total_ns = 0;
  std::uint64_t calls = 0;
  for (const auto& row : monitor_->callbacks().rows()) {
    total_ns += row.total_ns;
    calls += row.calls;
  }
  EXPECT_EQ(calls, 60U);
  EXPECT_GE(total_ns, 57 * ms);
  EXPECT_LE(Duration(total_ns), passed + 1ms);
}

TEST_F(MonitoredLoop, charges_each_callback_with_its_own_time) {
  run_callbacks(20, 1ms);
  Timer early(loop_, [] {});
  Timer late(loop_, [this] { spin(20ms); });
  const std::uint32_t line_of_late = __LINE__ - 1;
  early.start(Duration::zero());
  late.start(Duration::zero());
  loop_.run();
  for (const auto& row : monitor_->callbacks().rows()) {
    if (row.place.line() == line_of_late) {
      EXPECT_GE(row.longest_ns, 19 * ms);
    }
    if (row.place.line() == line_of_late - 1) {
      EXPECT_EQ(row.calls, 1U);
    }
  }
  EXPECT_GE(monitor_->figures().stalls, 1U);
  EXPECT_EQ(monitor_->running_since_ns(), 0);
}

TEST(CallTimes, begin_when_a_callback_asks_for_them) {
  EventLoop loop;
  std::shared_ptr<Monitor> monitor;
  loop.post([] {});
  Timer timer(loop, [&] {
    monitor = core_of(loop).monitor(true);
    loop.post([] {});
  });
  timer.start(Duration::zero());
  loop.run();
  ASSERT_NE(monitor, nullptr);
  // Not the time since the machine was started.
  for (const auto& row : monitor->callbacks().rows()) EXPECT_LT(row.longest_ns, 60'000 * ms);
}

}  // namespace
}  // namespace tambour::call_clock_test
