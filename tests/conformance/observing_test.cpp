// Loop statistics, and functions that change iterations: feeding events, running pending callbacks,
// collect intervals, suspending.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"

namespace tambour::observing_test {
namespace {

using namespace std::chrono_literals;

class Observing : public test::OnEveryBackend {
 protected:
  /// Exceeds the limit of every stall detector below.
  static void stall() {
    stalled = true;
    std::this_thread::sleep_for(8ms);
  }
  /// Collects the stalls that stall() caused. A busy machine causes others: it may preempt this
  /// thread in any callback.
  void detect_stalls() {
    stalled = false;
    loop().set_stall_detector(5ms, [this](const Stall& detected) {
      if (std::exchange(stalled, false)) stalls.push_back(detected);
    });
  }
  std::vector<unsigned> stalled_lines() const {
    std::vector<unsigned> lines;
    for (const Stall& detected : stalls) lines.push_back(detected.created_at.line());
    return lines;
  }
  std::vector<unsigned> sorted_stalled_lines() const {
    std::vector<unsigned> lines = stalled_lines();
    std::ranges::sort(lines);
    return lines;
  }

  test::Ends pipe = test::open_pipe();
  int calls = 0;
  std::vector<Stall> stalls;

 private:
  inline static bool stalled = false;
};

TAMBOUR_ON_EVERY_BACKEND(Observing);

TEST_P(Observing, counts_what_the_loop_does) {
  const LoopStats before = loop().stats();
  Timer timer(loop(), [this] { ++calls; });
  timer.start(1ms);
  loop().post([] {});
  loop().post([] {});
  EXPECT_EQ(loop().stats().references, 1);
  EXPECT_EQ(loop().stats().timers, 1U);
  loop().run();
  const LoopStats after = loop().stats();
  EXPECT_GE(after.iterations, before.iterations + 1);
  EXPECT_EQ(after.callbacks - before.callbacks, 1U);
  EXPECT_EQ(after.posted - before.posted, 2U);
  EXPECT_GE(after.system_calls, before.system_calls + 1);
  EXPECT_EQ(after.references, 0);
  EXPECT_EQ(after.timers, 0U);
  EXPECT_EQ(after.pending, 0U);
  EXPECT_EQ(after.callback_time, Duration::zero());
}

TEST_P(Observing, counts_wakeups_by_other_threads) {
  loop().ref();
  // A spinning loop may not be waiting when the task is posted.
  const bool is_spinning = options().spin > Duration::zero();
  unsigned posted = 0;
  std::atomic<unsigned> handled = 0;
  std::atomic<bool> over = false;
  std::thread other([&] {
    // Posts again if the loop was not waiting, as may happen on a busy machine.
    while (!over) {
      std::this_thread::sleep_for(20ms);
      ++posted;
      loop().post([&] {
        over = is_spinning || loop().stats().wakeups > 0;
        if (over) loop().stop();
        ++handled;
      });
      while (handled < posted) std::this_thread::sleep_for(1ms);
    }
  });
  loop().run();
  other.join();
  loop().unref();
  EXPECT_LE(loop().stats().wakeups, posted);
  if (!is_spinning) {
    EXPECT_GE(loop().stats().wakeups, 1U);
  }
}

TEST_P(Observing, measures_times_on_request) {
  LoopOptions measured = options();
  measured.measure_times = true;
  EventLoop timed(measured);
  Timer timer(timed, [] { std::this_thread::sleep_for(5ms); });
  // Runs again if the timer was due before the loop waited, as may happen on a busy machine.
  for (int i = 0; i < 100 && timed.stats().wait_time < 9ms; ++i) {
    timer.start(10ms);
    timed.run();
  }
  const LoopStats stats = timed.stats();
  EXPECT_GE(stats.callback_time, Duration(5ms));
  EXPECT_GE(stats.lag_max, Duration(5ms));
  EXPECT_LE(stats.lag_max, stats.callback_time);
  EXPECT_GE(stats.wait_time, Duration(9ms));
}

TEST_P(Observing, names_the_line_of_a_handle_whose_callback_stalls) {
  detect_stalls();
  const unsigned line = __LINE__ + 1;
  Timer slow(loop(), [] { stall(); });
  Timer quick(loop(), [this] { ++calls; });
  slow.start(0ms);
  quick.start(0ms);
  loop().run();
  ASSERT_EQ(stalls.size(), 1U);
  EXPECT_EQ(stalls.front().created_at.line(), line);
  EXPECT_TRUE(std::string(stalls.front().created_at.file_name()).ends_with("observing_test.cpp"));
  EXPECT_GE(stalls.front().duration, Duration(8ms));
  loop().set_stall_detector(5ms, {});
  slow.start(0ms);
  loop().run();
  EXPECT_EQ(stalls.size(), 1U);
}

TEST_P(Observing, stalls_of_watchers_hooks_and_asyncs_are_named_too) {
  detect_stalls();
  test::write_to(pipe.far);
  // Each handle is created on a single line, because compilers report different lines of a
  // multi-line expression.
  const auto stall_once = [&](auto& handle) {
    handle.stop();
    stall();
  };
  const unsigned line = __LINE__;
  FdWatcher watcher(loop(), pipe.near.get(), Events::read, [&](Events) { stall_once(watcher); });
  Check check(loop(), [&] { stall_once(check); });
  Async async(loop(), [&] { stall_once(async); });
  ASSERT_TRUE(watcher.start());
  check.start();
  async.start();
  async.send();
  loop().run();
  EXPECT_EQ(sorted_stalled_lines(), (std::vector<unsigned>{line + 1, line + 2, line + 3}));
}

TEST_P(Observing, stalls_of_tasks_name_the_line_where_the_task_waited) {
  detect_stalls();
  test::write_to(pipe.far);
  const unsigned line = __LINE__;
  const auto work = [](int fd) -> Task<> {
    static_cast<void>(co_await sleep_for(1ms));
    stall();
    static_cast<void>(co_await wait_ready(fd, Events::read));
    stall();
  };
  spawn(loop(), work(pipe.near.get()));
  loop().run();
  EXPECT_EQ(stalled_lines(), (std::vector<unsigned>{line + 2, line + 4}));
}

/// What continues a task need not know its source: the stall is that of its spawn().
class StallsOfTasks : public Observing {
 protected:
  void SetUp() override {
    Observing::SetUp();
    detect_stalls();
  }
  void TearDown() override {
    for (const Stall& detected : stalls)
      EXPECT_TRUE(std::string(detected.created_at.file_name()).ends_with("observing_test.cpp"))
          << detected.created_at.file_name();
    Observing::TearDown();
  }
  static Task<> stall_after(Task<> wait) {
    co_await std::move(wait);
    stall();
  }
  static Task<> read_until_closed(Endpoint server) {
    TcpStream stream = or_throw(co_await TcpStream::connect(server));
    Buffer buffer;
    static_cast<void>(co_await stream.read(buffer));
  }
  static Task<> wait_for(TaskEvent& event) { EXPECT_TRUE(co_await event.wait()); }
  static Task<> read_from(TcpStream stream) {
    Buffer buffer;
    EXPECT_TRUE(co_await stream.read(buffer));
  }
};

TAMBOUR_ON_EVERY_BACKEND(StallsOfTasks);

TEST_P(StallsOfTasks, name_the_line_in_which_the_task_was_spawned) {
  TaskEvent event(loop());
  TaskScope scope(loop());
  const auto joining = [](TaskScope& joined) -> Task<> { co_await joined.join(); };
  const unsigned line = __LINE__;
  spawn(loop(), stall_after(wait_for(event)));
  scope.spawn(stall_after(wait_for(event)));
  scope.spawn(stall_after(wait_for(event)));
  spawn(loop(), stall_after(joining(scope)));  // Continued by the last task of the scope.
  spawn(loop(), stall_after(joining(scope)));
  spawn(loop(), [&] { return stall_after(wait_for(event)); });
  spawn(loop(), [](TaskEvent& other) { return stall_after(wait_for(other)); }, std::ref(event));
  scope.spawn([&] { return stall_after(wait_for(event)); });
  run_iterations();
  EXPECT_TRUE(stalls.empty());
  event.set();
  loop().run();
  EXPECT_EQ(sorted_stalled_lines(), (std::vector<unsigned>{line + 1, line + 2, line + 3, line + 5,
                                                           line + 6, line + 7, line + 8}));
}

TEST_P(StallsOfTasks, name_the_spawn_of_a_task_inside_combinators) {
  TaskEvent event(loop());
  const auto combined = [](TaskEvent& first) -> Task<> {
    static_cast<void>(co_await timeout(1min, stall_after(wait_for(first))));
  };
  const unsigned line = __LINE__ + 1;
  spawn(loop(), combined(event));
  run_iterations();
  event.set();
  loop().run();
  EXPECT_EQ(stalled_lines(), std::vector<unsigned>{line});
}

TEST_P(StallsOfTasks, many_places_of_a_scope_are_told_apart) {
  TaskEvent event(loop());
  TaskScope scope(loop());
  for (unsigned i = 1; i <= 100; ++i) {
    struct Place {
      static std::source_location current(
          std::source_location at = std::source_location::current()) {
        return at;
      }
    };
    scope.spawn(wait_for(event), Place::current());
  }
  event.set();
  loop().run();
  EXPECT_TRUE(scope.empty());
}

TEST_P(StallsOfTasks, and_handlers_and_connections_name_where_they_were_given) {
  auto tasks = or_throw(TcpServer::listen(loop(), Endpoint::loopback_v4(0)));
  auto connections = or_throw(TcpServer::listen(loop(), Endpoint::loopback_v4(0)));
  ConnectionCallbacks callbacks;
  callbacks.on_message = [](Connection& connection, Buffer& received) {
    received.clear();
    stall();
    connection.close();
  };
  const unsigned line = __LINE__;
  tasks.serve([](TcpStream stream) { return stall_after(read_from(std::move(stream))); });
  connections.serve(std::move(callbacks));
  for (const Endpoint& to : {tasks.endpoint(), connections.endpoint()})
    run([](Endpoint server) -> Task<> {
      TcpStream stream = or_throw(co_await TcpStream::connect(server));
      EXPECT_TRUE(co_await stream.write("x"));
      Buffer buffer;
      static_cast<void>(co_await stream.read(buffer));
    }(to));
  EXPECT_EQ(stalled_lines(), (std::vector<unsigned>{line + 1, line + 2}));
}

TEST_P(StallsOfTasks, name_the_spawn_after_waits_in_the_library) {
  if (GetParam().name == "sim")
    GTEST_SKIP() << "a simulation runs the calls of workers in its own iterations";
  const auto on_worker = []() -> Task<> { EXPECT_TRUE(co_await WorkerPool::shared().run([] {})); };
  const auto in_file = []() -> Task<> { EXPECT_TRUE(co_await File::open("/dev/null")); };
  TaskEvent never(loop());
  const auto in_timeout = [](TaskEvent& event) -> Task<> {
    static_cast<void>(co_await timeout(1ms, event.wait()));
  };
  const unsigned line = __LINE__;
  spawn(loop(), stall_after(on_worker()));
  loop().run();  // One after another: two that end at the same time may be one stall.
  spawn(loop(), stall_after(in_file()));
  loop().run();
  spawn(loop(), stall_after(in_timeout(never)));
  loop().run();
  EXPECT_EQ(sorted_stalled_lines(), (std::vector<unsigned>{line + 1, line + 3, line + 5}));
}

TEST_P(StallsOfTasks, and_handlers_that_stall_at_once_name_where_they_were_given) {
  auto server = or_throw(TcpServer::listen(loop(), Endpoint::loopback_v4(0)));
  const unsigned line = __LINE__ + 1;
  server.serve([](TcpStream) -> Task<> { co_return stall(); });
  run(read_until_closed(server.endpoint()));
  EXPECT_EQ(stalled_lines(), std::vector<unsigned>{line});
}

TEST_P(StallsOfTasks, and_functions_posted_to_connections_name_the_call) {
  auto server = or_throw(TcpServer::listen(loop(), Endpoint::loopback_v4(0)));
  unsigned line = 0;
  ConnectionCallbacks callbacks;
  callbacks.on_connection = [&line](Connection& connection) {
    line = __LINE__ + 1;
    connection.handle().post([](Connection& posted) { stall(), posted.close(); });
  };
  server.serve(std::move(callbacks));
  run(read_until_closed(server.endpoint()));
  EXPECT_EQ(stalled_lines(), std::vector<unsigned>{line});
}

TEST_P(StallsOfTasks, and_functions_for_moved_streams_name_the_call) {
  auto [first, second] = or_throw(UnixStream::pair(loop()));
  const unsigned line = __LINE__;
  move_to(loop(), std::move(first), [](UnixStream) { stall(); });
  spawn_on(loop(), std::move(second), [](UnixStream) -> Task<> { co_return stall(); });
  loop().run();
  EXPECT_EQ(stalled_lines(), (std::vector<unsigned>{line + 1, line + 2}));
}

TEST_P(StallsOfTasks, and_posted_functions_name_the_call_of_post) {
  const unsigned line = __LINE__ + 1;
  loop().post([] { stall(); });
  loop().post([] {});
  loop().post([] { stall(); });
  loop().run();
  EXPECT_EQ(stalled_lines(), (std::vector<unsigned>{line, line + 2}));
}

TEST_P(Observing, fed_events_reach_the_watchers_interested_in_them) {
  std::vector<Events> events_seen;
  FdWatcher reader(loop(), pipe.near.get(), Events::read,
                   [&](Events events) { events_seen.push_back(events); });
  ASSERT_TRUE(reader.start());
  feed_fd(loop(), pipe.near.get(), Events::write);
  feed_fd(loop(), pipe.near.get(), Events::read);
  feed_fd(loop(), -1, Events::read);
  feed_fd(loop(), 1'000'000, Events::read);
  EXPECT_EQ(pending_count(loop()), 1U);
  loop().run_ready();
  EXPECT_EQ(events_seen, std::vector<Events>{Events::read});
}

TEST_P(Observing, pending_callbacks_are_run_by_the_runner_of_the_caller) {
  int runs = 0;
  Timer timer(loop(), [this] { ++calls; });
  timer.start(0ms);
  set_pending_runner(loop(), [&] {
    ++runs;
    EXPECT_EQ(pending_count(loop()), 1U);
    EXPECT_EQ(calls, 0);
    run_pending(loop());
  });
  loop().run();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(calls, 1);
  set_pending_runner(loop(), {});
  timer.start(0ms);
  loop().run();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(calls, 2);
}

TEST_P(Observing, a_runner_that_runs_nothing_leaves_callbacks_pending) {
  int runs = 0;
  Timer timer(loop(), [this] { ++calls; });
  timer.start(0ms);
  set_pending_runner(loop(), [&] {
    if (++runs == 3) run_pending(loop());
  });
  loop().run();
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(calls, 1);
}

TEST_P(Observing, no_time_passes_while_suspended) {
  Timer timer(loop(), [this] { ++calls; });
  timer.start(30ms);
  const TimePoint deadline = timer.deadline();
  suspend_timers(loop());
  std::this_thread::sleep_for(60ms);
  resume_timers(loop());
  const TimePoint shifted = timer.deadline();
  EXPECT_GE(shifted, deadline + 60ms);
  loop().run_ready();
  EXPECT_TRUE(calls == 0 || loop().now() >= shifted);
  loop().run();
  EXPECT_EQ(calls, 1);
}

TEST_P(Observing, only_the_first_suspend_and_resume_count) {
  Timer timer(loop(), [this] { ++calls; });
  timer.start(30ms);
  const TimePoint deadline = timer.deadline();
  resume_timers(loop());
  EXPECT_EQ(timer.deadline(), deadline);
  const TimePoint began = Clock::now();
  suspend_timers(loop());
  std::this_thread::sleep_for(20ms);
  suspend_timers(loop());
  resume_timers(loop());
  const TimePoint shifted = timer.deadline();
  EXPECT_GE(shifted, deadline + 20ms);
  EXPECT_LE(shifted, deadline + (Clock::now() - began));
  resume_timers(loop());
  EXPECT_EQ(timer.deadline(), shifted);
}

TEST_P(Observing, collecting_handles_the_same_events_in_fewer_iterations) {
  set_collect_intervals(loop(), 2ms, 20ms);
  const std::uint64_t before = loop().stats().iterations;
  std::vector<Timer> timers;
  for (int i = 0; i < 20; ++i) {
    timers.emplace_back(loop(), [this] { ++calls; });
    timers.back().start(std::chrono::microseconds(500 * i));
  }
  loop().run();
  EXPECT_EQ(calls, 20);
  EXPECT_LT(loop().stats().iterations - before, 10U);
}

}  // namespace
}  // namespace tambour::observing_test
