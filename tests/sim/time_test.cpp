// Virtual time advances when no work is left, as fast as the machine allows.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

namespace tambour::time_test {
namespace {

using namespace std::chrono_literals;

TEST(SimulatedTime, an_hour_of_timers_passes_in_milliseconds) {
  sim::Simulation simulation;
  EventLoop loop(simulation.add_host("host").loop_options());
  int seconds = 0;
  Timer each_second(loop, [&] {
    if (++seconds == 3600) each_second.stop();
  });
  each_second.start(1s, 1s);
  const TimePoint began = simulation.now();
  const auto really_began = std::chrono::steady_clock::now();
  loop.run();
  EXPECT_EQ(seconds, 3600);
  EXPECT_GE(simulation.now() - began, 1h);
  EXPECT_LT(simulation.now() - began, 1h + 1s);
  EXPECT_LT(std::chrono::steady_clock::now() - really_began, 1min);
}

TEST(SimulatedTime, a_host_learns_the_next_deadline) {
  sim::Simulation simulation;
  EventLoop loop(simulation.add_host("host").loop_options());
  EXPECT_EQ(loop.fd().error(), system_error(EOPNOTSUPP));
  loop.run_ready();
  EXPECT_EQ(loop.next_deadline(), never);
  Timer timer(loop, [] {});
  timer.start(1h);
  EXPECT_EQ(loop.next_deadline(), timer.deadline());
  loop.post([] {});
  EXPECT_LE(loop.next_deadline(), simulation.now());
  loop.run_ready();
  EXPECT_EQ(loop.next_deadline(), timer.deadline());
}

TEST(SimulatedTime, a_timer_is_never_early_and_late_by_at_most_the_configured_lateness) {
  sim::Options options;
  options.lateness_max = 5ms;
  sim::Simulation simulation(7, options);
  EventLoop loop(simulation.add_host("host").loop_options());
  Duration latest{0};
  for (int i = 0; i < 200; ++i) {
    const TimePoint deadline = simulation.now() + 1s;
    Timer timer(loop, [&] {
      EXPECT_GE(simulation.now(), deadline);
      latest = std::max(latest, simulation.now() - deadline);
    });
    timer.start(1s);
    loop.run();
  }
  EXPECT_GT(latest, 3ms);
  EXPECT_LT(latest, 6ms);
}

TEST(SimulatedTime, the_clock_moves_for_all_loops_together) {
  sim::Simulation simulation;
  EventLoop one(simulation.add_host("one").loop_options());
  EventLoop other(simulation.add_host("other").loop_options());
  std::string order;
  Timer a(one, [&] { order += 'a'; });
  Timer b(other, [&] { order += 'b'; });
  Timer c(one, [&] { order += 'c'; });
  b.start(2s);
  a.start(1s);
  c.start(3s);
  EXPECT_EQ(simulation.run(), sim::End::finished);
  EXPECT_EQ(order, "abc");
}

TEST(SimulatedTime, a_loop_that_never_waits_does_not_stop_the_clock) {
  sim::Simulation simulation;
  EventLoop busy(simulation.add_host("busy").loop_options());
  EventLoop other(simulation.add_host("other").loop_options());
  Idle idle(busy, [] {});
  idle.start();
  bool rang = false;
  Timer timer(other, [&] {
    rang = true;
    idle.stop();
  });
  timer.start(1ms);
  EXPECT_EQ(simulation.run(), sim::End::finished);
  EXPECT_TRUE(rang);
}

TEST(SimulatedTime, work_takes_time) {
  sim::Simulation simulation;
  EventLoop loop(simulation.add_host("host").loop_options());
  const TimePoint began = simulation.now();
  Timer busy(loop, [&] { simulation.spend(5s); });
  Duration expired{0};
  Timer late(loop, [&] { expired = simulation.now() - began; });
  busy.start(1s);
  late.start(2s);
  loop.run();
  EXPECT_GE(expired, 6s);
  EXPECT_LT(expired, 6s + 1ms);
}

TEST(SimulatedTime, spinning_and_collecting_terminate) {
  sim::Simulation simulation;
  LoopOptions options = simulation.add_host("host").loop_options();
  options.spin = 50us;
  EventLoop loop(options);
  set_collect_intervals(loop, 10ms, 10ms);
  bool rang = false;
  Timer timer(loop, [&] { rang = true; });
  timer.start(1h);
  const auto really_began = std::chrono::steady_clock::now();
  loop.run();
  EXPECT_TRUE(rang);
  EXPECT_LT(std::chrono::steady_clock::now() - really_began, 1min);
}

TEST(SimulatedTime, the_wall_clock_is_set_and_the_other_clock_is_not) {
  sim::Simulation simulation;
  EventLoop loop(simulation.add_host("host").loop_options());
  const auto ten_years = std::chrono::years(10);
  const auto wall_began = simulation.wall_now();
  EXPECT_EQ(wall_began, simulation.options().wall_start);
  std::vector<Duration> expiries;
  const TimePoint began = simulation.now();
  Timer timer(loop, [&] {
    expiries.push_back(std::chrono::floor<std::chrono::milliseconds>(simulation.now() - began));
    if (expiries.size() == 4) timer.stop();
  });
  timer.start(1s, 1s);
  simulation.after(1500ms, [&] { simulation.set_wall_clock(wall_began + ten_years); });
  simulation.after(2500ms, [&] { simulation.set_wall_clock(wall_began - ten_years); });
  EXPECT_EQ(simulation.run(), sim::End::finished);
  EXPECT_EQ(expiries, (std::vector<Duration>{1s, 2s, 3s, 4s}));
  const auto passed = simulation.wall_now() - (wall_began - ten_years);
  EXPECT_EQ(std::chrono::floor<std::chrono::milliseconds>(passed), 1500ms);
}

TEST(SimulatedLoops, run_returns_how_it_ended) {
  sim::Simulation simulation;
  sim::Host& host = simulation.add_host("host");
  EventLoop loop(host.loop_options());
  EXPECT_EQ(simulation.run(), sim::End::finished);

  Timer timer(loop, [] {});
  timer.start(1h);
  const TimePoint began = simulation.now();
  EXPECT_EQ(simulation.run(1min), sim::End::timeout);
  EXPECT_EQ(simulation.now() - began, 1min);

  simulation.after(1s, [&] { simulation.stop(); });
  EXPECT_EQ(simulation.run(), sim::End::stopped);

  timer.stop();
  FdWatcher never(loop, host.eventfd(0, 0), Events::read, [](Events) {});
  ASSERT_TRUE(never.start());
  EXPECT_EQ(simulation.run(), sim::End::stalled);

  loop.post([&] { loop.stop(); });
  EXPECT_EQ(simulation.run(), sim::End::finished);
  EXPECT_EQ(simulation.run(), sim::End::stalled) << "a stop is for one run";
}

TEST(SimulatedLoops, post_and_wake_reach_a_loop_that_waits) {
  sim::Simulation simulation;
  EventLoop one(simulation.add_host("one").loop_options());
  EventLoop other(simulation.add_host("other").loop_options());
  other.ref();
  int arrived = 0;
  Async bell(other, [&] {
    ++arrived;
    bell.stop();
  });
  bell.start();
  Timer timer(one, [&] {
    other.post([&] {
      ++arrived;
      other.unref();
    });
    bell.send();
  });
  timer.start(1s);
  EXPECT_EQ(simulation.run(), sim::End::finished);
  EXPECT_EQ(arrived, 2);
}

TEST(SimulatedLoops, a_loop_may_be_destroyed_by_another) {
  sim::Simulation simulation;
  sim::Host& host = simulation.add_host("host");
  EventLoop one(host.loop_options());
  auto other = std::make_unique<EventLoop>(host.loop_options());
  Timer never(*other, [] { ADD_FAILURE(); });
  never.start(2s);
  Timer timer(one, [&] { other.reset(); });
  timer.start(1s);
  EXPECT_EQ(simulation.run(), sim::End::finished);
}

/// Has due work in every iteration, so that the loop never waits for time to pass.
struct Busy {
  explicit Busy(sim::Host& host) : loop(host.loop_options()) { idle.start(); }
  EventLoop loop;
  Idle idle{loop, [] {}};
};

TEST(SimulatedSteps, may_destroy_a_loop_that_never_waits) {
  sim::Simulation simulation;
  auto busy = std::make_unique<Busy>(simulation.add_host("host"));
  simulation.after(1ms, [&] { busy.reset(); });
  EXPECT_EQ(simulation.run(1s), sim::End::finished);
}

TEST(SimulatedSteps, may_throw_while_a_loop_is_busy_and_later_steps_still_run) {
  sim::Simulation simulation;
  Busy busy(simulation.add_host("host"));
  simulation.after(1ms, [] { throw std::runtime_error("thrown"); });
  simulation.after(1ms, [&] { busy.idle.stop(); });
  EXPECT_THROW(simulation.run(1s), std::runtime_error);
  EXPECT_EQ(simulation.run(1s), sim::End::finished);
}

TEST(SimulatedSteps, are_made_after_a_long_iteration) {
  sim::Simulation simulation;
  EventLoop loop(simulation.add_host("host").loop_options());
  std::string order;
  Timer working(loop, [&] {
    simulation.spend(5s);
    order += "worked ";
  });
  working.start(1s);
  simulation.after(2s, [&] { order += "step"; });
  EXPECT_EQ(simulation.run(), sim::End::finished);
  EXPECT_EQ(order, "worked step");
}

TEST(SimulatedSteps, are_made_while_a_loop_runs_inside_a_callback) {
  sim::Simulation simulation;
  sim::Host& host = simulation.add_host("host");
  EventLoop outer(host.loop_options());
  EventLoop inner(host.loop_options());
  inner.ref();
  Timer timer(outer, [&] {
    simulation.after(1s, [&] { inner.post([&] { inner.unref(); }); });
    inner.run();
  });
  timer.start(0s);
  EXPECT_EQ(simulation.run(), sim::End::finished);
}

TEST(SimulatedLoops, an_exception_of_a_callback_leaves_run) {
  sim::Simulation simulation;
  EventLoop loop(simulation.add_host("host").loop_options());
  int calls = 0;
  Timer timer(loop, [&] {
    if (++calls == 1) throw std::runtime_error("thrown");
    timer.stop();
  });
  timer.start(1s, 1s);
  EXPECT_THROW(simulation.run(), std::runtime_error);
  EXPECT_EQ(simulation.run(), sim::End::finished);
  EXPECT_EQ(calls, 2);
}

TEST(SimulatedLoops, an_exception_that_leaves_run_uses_up_all_stops) {
  sim::Simulation simulation;
  EventLoop loop(simulation.add_host("host").loop_options());
  int calls = 0;
  Timer timer(loop, [&] {
    if (++calls > 1) return;
    loop.stop();
    simulation.stop();
    throw std::runtime_error("thrown");
  });
  timer.start(1s);
  EXPECT_THROW(simulation.run(), std::runtime_error);
  timer.start(1s);
  EXPECT_EQ(simulation.run(), sim::End::finished);
  EXPECT_EQ(calls, 2);
}

TEST(SimulatedLoops, opening_a_loop_without_a_host_fails) {
  const auto loop = EventLoop::open({.backend = BackendKind::simulated});
  ASSERT_FALSE(loop);
  EXPECT_EQ(loop.error(), system_error(EINVAL));
}

TEST(SimulatedLoops, kernel_descriptors_are_rejected) {
  sim::Simulation simulation;
  EventLoop loop(simulation.add_host("host").loop_options());
  for (const int fd : {0, sim::Host::first_descriptor, 2'000'000'000}) {
    Events seen = Events::none;
    FdWatcher watcher(loop, fd, Events::read, [&](Events events) { seen |= events; });
    ASSERT_TRUE(watcher.start());
    loop.run();
    EXPECT_EQ(seen, Events::error);
    EXPECT_EQ(watcher.error(), system_error(EBADF));
  }
}

}  // namespace
}  // namespace tambour::time_test
