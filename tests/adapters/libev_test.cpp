// An EventLoop as a `struct ev_loop` of the drop-in, with which this program is linked.
#include <hiredis/adapters/libev.h>

#include <fcntl.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <thread>

#include <ev.h>
#include <gtest/gtest.h>

#include <tambour/adapters/libev.h>
#include <tambour/tambour.h>

#include "adapters/hosts/host_scenario.h"
#include "adapters/redis_commands.h"
#include "support/files.h"
#include "support/on_every_backend.h"

namespace tambour::libev_test {
namespace {

using namespace std::chrono_literals;
using adapters::LibevLoop;

/// A watcher of libev that invokes a function.
template <class Watcher>
struct Ev {
  using Function = std::function<void(Watcher&, int)>;

  explicit Ev(Function called) : function(std::move(called)) {
    ev_init(&watcher, &invoke);
    watcher.data = this;
  }
  static void invoke(struct ev_loop* /*loop*/, Watcher* invoked, int events) {
    static_cast<Ev*>(invoked->data)->function(*invoked, events);
  }

  Watcher watcher{};
  Function function;
};

class LibevLoops : public test::OnEveryBackend {
 protected:
  void SetUp() override {
    test::OnEveryBackend::SetUp();
    if (IsSkipped()) return;
    ev.emplace(loop());
    ASSERT_TRUE(ev->start());
    ASSERT_TRUE(ev->start());
  }
  void TearDown() override {
    ev.reset();
    test::OnEveryBackend::TearDown();
  }
  void start(ev_io& io, const UniqueFd& fd, int events) {
    ev_io_set(&io, fd.get(), events);
    ev_io_start(ev->get(), &io);
  }
  void start(ev_timer& timer, double after, double repeat = 0.) {
    ev_timer_set(&timer, after, repeat);
    ev_timer_start(ev->get(), &timer);
  }

  std::optional<LibevLoop> ev;
};

TEST_P(LibevLoops, timers_of_both_expire_in_order) {
  // Each timer starts the next one: a busy machine may delay them.
  std::string order;
  Ev<ev_timer> fourth([&](ev_timer&, int) { order += 'd'; });
  Timer third(loop(), [&] {
    order += 'c';
    start(fourth.watcher, 0.005);
  });
  Ev<ev_timer> second([&](ev_timer&, int) {
    order += 'b';
    third.start(5ms);
  });
  TimePoint second_begins;
  Timer first(loop(), [&] {
    order += 'a';
    // ev_now() is the time of this iteration also for callbacks of the loop.
    second_begins = loop().now();
    start(second.watcher, 0.005);
  });
  const TimePoint began = Clock::now();
  first.start(20ms);
  EXPECT_TRUE(run_until([&] { return order.size() == 2; }));
  EXPECT_GE(Clock::now() - second_begins, 5ms);
  EXPECT_TRUE(run_until([&] { return order.size() == 4; }));
  EXPECT_EQ(order, "abcd");
  EXPECT_GE(Clock::now() - began, 35ms);
}

TEST_P(LibevLoops, descriptors_of_both_are_watched_with_one_wait) {
  const test::Ends ends = test::open_socketpair();
  int reads = 0;
  int native_reads = 0;
  Ev<ev_io> reader([&](ev_io& io, int events) {
    EXPECT_EQ(events, EV_READ);
    if (++reads == 3) ev_io_stop(ev->get(), &io);
  });
  // Both watch the same descriptor, which stays readable.
  FdWatcher watcher(loop(), ends.near.get(), Events::read, [&](Events) { ++native_reads; });
  start(reader.watcher, ends.near, EV_READ);
  ASSERT_TRUE(watcher.start());
  run_iterations();
  EXPECT_EQ(reads + native_reads, 0);
  test::write_to(ends.far);
  // In the iteration that has found it.
  loop().run_once();
  EXPECT_EQ(reads, 1);
  EXPECT_EQ(native_reads, 1);
  EXPECT_TRUE(run_until([&] { return reads == 3; }));
  EXPECT_GE(native_reads, 3);
  run_iterations();
  EXPECT_EQ(reads, 3);
  // Other events of the same descriptor.
  Ev<ev_io> writer([&](ev_io& io, int events) {
    EXPECT_EQ(events, EV_WRITE);
    ++reads;
    ev_io_stop(ev->get(), &io);
  });
  start(writer.watcher, ends.near, EV_WRITE);
  EXPECT_TRUE(run_until([&] { return reads == 4; }));
  watcher.stop();
  EXPECT_TRUE(sleeps_through(50ms));
}

TEST_P(LibevLoops, an_iteration_runs_watchers_by_priority) {
  std::string order;
  const test::Ends one = test::open_pipe();
  const test::Ends two = test::open_pipe();
  Ev<ev_io> low([&](ev_io& io, int) {
    order += 'l';
    ev_io_stop(ev->get(), &io);
  });
  Ev<ev_io> high([&](ev_io& io, int) {
    order += 'h';
    ev_io_stop(ev->get(), &io);
  });
  Ev<ev_prepare> prepare([&](ev_prepare&, int) { order += 'p'; });
  Ev<ev_check> check([&](ev_check&, int) { order += 'c'; });
  ev_set_priority(&low.watcher, EV_MINPRI);
  ev_set_priority(&high.watcher, EV_MAXPRI);
  test::write_to(one.far);
  test::write_to(two.far);
  start(low.watcher, one.near, EV_READ);
  start(high.watcher, two.near, EV_READ);
  ev_prepare_start(ev->get(), &prepare.watcher);
  ev_check_start(ev->get(), &check.watcher);
  EXPECT_TRUE(run_until([&] { return order.find('l') != std::string::npos; }));
  ev_prepare_stop(ev->get(), &prepare.watcher);
  ev_check_stop(ev->get(), &check.watcher);
  EXPECT_EQ(order.front(), 'p');
  EXPECT_LT(order.find('h'), order.find('l'));
  EXPECT_NE(order.find('c'), std::string::npos);
}

TEST_P(LibevLoops, idle_watchers_and_fed_events_run_without_a_wait) {
  int calls = 0;
  Ev<ev_idle> idle([&](ev_idle& watcher, int) {
    if (++calls == 3) ev_idle_stop(ev->get(), &watcher);
  });
  ev_idle_start(ev->get(), &idle.watcher);
  EXPECT_TRUE(run_until([&] { return calls == 3; }));
  Ev<ev_timer> fed([&](ev_timer&, int events) {
    EXPECT_EQ(events, EV_CUSTOM);
    ++calls;
  });
  ev_feed_event(ev->get(), &fed.watcher, EV_CUSTOM);
  EXPECT_TRUE(run_until([&] { return calls == 4; }));
}

TEST_P(LibevLoops, ev_run_runs_the_event_loop) {
  std::string order;
  Ev<ev_timer> timer([&](ev_timer&, int) { order += 'b'; });
  Timer native(loop(), [&] {
    order += 'a';
    // Inside ev_run().
    ev_run(ev->get(), EVRUN_NOWAIT);
  });
  native.start(1ms);
  start(timer.watcher, 0.01);
  EXPECT_EQ(ev_run(ev->get(), 0), 0);
  EXPECT_EQ(order, "ab");
  // A callback of the EventLoop ends it.
  start(timer.watcher, 60.);
  native.set_function([&] { ev_break(ev->get(), EVBREAK_ALL); });
  native.start(1ms);
  EXPECT_EQ(ev_run(ev->get(), 0), 1);
  ev_timer_stop(ev->get(), &timer.watcher);
  // Nested.
  Ev<ev_timer> inner([&](ev_timer&, int) { order += 'c'; });
  Ev<ev_timer> outer([&](ev_timer&, int) {
    start(inner.watcher, 0.001);
    ev_run(ev->get(), EVRUN_ONCE);
    order += 'd';
  });
  start(outer.watcher, 0.001);
  EXPECT_TRUE(run_until([&] { return order.size() == 4; }));
  EXPECT_EQ(order, "abcd");
}

TEST_P(LibevLoops, ev_break_stops_the_event_loop) {
  Ev<ev_timer> timer([&](ev_timer&, int) { ev_break(ev->get(), EVBREAK_ONE); });
  start(timer.watcher, 0.001);
  // A break outside of callbacks has no effect.
  ev_break(ev->get(), EVBREAK_ALL);
  Timer limit(loop(), [&] { ADD_FAILURE() << "ev_break() has not stopped the loop"; });
  limit.start(30s);
  loop().run();
  EXPECT_EQ(ev_is_active(&timer.watcher), 0);
}

TEST_P(LibevLoops, other_threads_send_messages) {
  int calls = 0;
  Ev<ev_async> async([&](ev_async&, int) { ++calls; });
  ev_async_start(ev->get(), &async.watcher);
  for (int round = 1; round <= 20; ++round) {
    std::jthread sender([&] { ev_async_send(ev->get(), &async.watcher); });
    EXPECT_TRUE(run_until([&] { return calls == round; }));
  }
  // While ev_run() waits.
  Ev<ev_async> last([&](ev_async&, int) { ev_break(ev->get(), EVBREAK_ALL); });
  ev_async_start(ev->get(), &last.watcher);
  std::jthread sender([&] { ev_async_send(ev->get(), &last.watcher); });
  EXPECT_EQ(ev_run(ev->get(), 0), 2);
  ev_async_stop(ev->get(), &async.watcher);
  ev_async_stop(ev->get(), &last.watcher);
}

TEST_P(LibevLoops, signals_are_delivered) {
  int calls = 0;
  Ev<ev_signal> signal([&](ev_signal&, int) { ++calls; });
  ev_signal_set(&signal.watcher, SIGUSR1);
  ev_signal_start(ev->get(), &signal.watcher);
  run_iterations();
  ::raise(SIGUSR1);
  EXPECT_TRUE(run_until([&] { return calls == 1; }));
  ev_signal_stop(ev->get(), &signal.watcher);
}

TEST_P(LibevLoops, a_descriptor_that_is_not_open_fails) {
  int events = 0;
  Ev<ev_io> io([&](ev_io&, int got) { events = got; });
  const int closed = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(closed);
  ev_io_set(&io.watcher, closed, EV_READ);
  ev_io_start(ev->get(), &io.watcher);
  EXPECT_TRUE(run_until([&] { return events != 0; }));
  EXPECT_NE(events & EV_ERROR, 0);
  EXPECT_EQ(ev_is_active(&io.watcher), 0);
}

TEST_P(LibevLoops, descriptor_numbers_are_reused) {
  int reads = 0;
  Ev<ev_io> io([&](ev_io&, int) { ++reads; });
  test::Ends ends = test::open_pipe();
  for (int round = 1; round <= 5; ++round) {
    start(io.watcher, ends.near, EV_READ);
    run_iterations();
    EXPECT_EQ(reads, round - 1);
    test::write_to(ends.far);
    EXPECT_TRUE(run_until([&] { return reads == round; }));
    ev_io_stop(ev->get(), &io.watcher);
    const int number = ends.near.get();
    ends = {};
    ends = test::open_pipe();
    EXPECT_TRUE(ends.near.get() == number || ends.far.get() == number);
  }
}

TEST_P(LibevLoops, revalidate_fd_finds_another_file_of_the_same_number) {
  const test::Ends ends = test::open_pipe();
  const test::Ends other = test::open_pipe();
  int reads = 0;
  FdWatcher watcher(loop(), ends.near.get(), Events::read, [&](Events) {
    ++reads;
    test::drain(ends.near);
  });
  ASSERT_TRUE(watcher.start());
  run_iterations();
  ASSERT_EQ(::dup2(other.near.get(), ends.near.get()), ends.near.get());
  revalidate_fd(loop(), ends.near.get());
  revalidate_fd(loop(), -1);
  revalidate_fd(loop(), 1'000'000);
  run_iterations();
  test::write_to(other.far);
  EXPECT_TRUE(run_until([&] { return reads == 1; }));
}

TEST_P(LibevLoops, nothing_is_spent_while_nothing_happens) {
  const test::Ends ends = test::open_pipe();
  Ev<ev_io> reader([&](ev_io&, int) {});
  Ev<ev_timer> timer([&](ev_timer&, int) {});
  start(reader.watcher, ends.near, EV_READ);
  start(timer.watcher, 60., 60.);
  run_iterations();
  EXPECT_TRUE(sleeps_through(100ms));
  ev_io_stop(ev->get(), &reader.watcher);
  ev_timer_stop(ev->get(), &timer.watcher);
}

TEST_P(LibevLoops, both_may_be_destroyed_first) {
  // By the library that uses the loop.
  ev_loop_destroy(ev->get());
  EXPECT_EQ(ev->get(), nullptr);
  run_iterations();
  ASSERT_TRUE(ev->start());
  const test::Ends ends = test::open_pipe();
  Ev<ev_io> reader([&](ev_io&, int) { ADD_FAILURE(); });
  start(reader.watcher, ends.near, EV_READ);
  run_iterations();
  destroy_loop();
  ev_io_stop(ev->get(), &reader.watcher);
  ev->stop();
  EXPECT_EQ(ev->get(), nullptr);
}

TEST_P(LibevLoops, a_child_process_reopens_the_loop) {
  int calls = 0;
  Ev<ev_fork> fork_watcher([&](ev_fork&, int) { ++calls; });
  ev_fork_start(ev->get(), &fork_watcher.watcher);
  const test::Ends ends = test::open_pipe();
  Ev<ev_io> reader([&](ev_io&, int) { calls += 10; });
  start(reader.watcher, ends.near, EV_READ);
  run_iterations();
  const pid_t child = ::fork();
  if (child == 0) {
    bool is_right = loop().after_fork().has_value();
    test::write_to(ends.far);
    for (int i = 0; i < 1'000 && calls < 11; ++i) loop().run_ready();
    is_right = is_right && calls >= 11;
    ::_exit(is_right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_P(LibevLoops, a_hosted_event_loop_knows_the_deadline) {
  int calls = 0;
  Ev<ev_timer> timer([&](ev_timer&, int) { ++calls; });
  start(timer.watcher, 0.001, 0.001);
  ASSERT_TRUE(loop().fd());
  for (int i = 0; i < 20 && calls < 3; ++i) {
    loop().run_ready();
    const TimePoint deadline = loop().next_deadline();
    ASSERT_LT(deadline, Clock::now() + 1s);
    std::this_thread::sleep_until(deadline);
  }
  EXPECT_EQ(calls, 3);
  ev_timer_stop(ev->get(), &timer.watcher);
}

TAMBOUR_ON_EVERY_BACKEND(LibevLoops);

TEST(LibevAdapter, hiredis_works_with_its_adapter_for_libev) {
  EventLoop loop;
  LibevLoop ev(loop);
  ASSERT_TRUE(ev.start());
  test::expect_redis_commands(
      loop, [&](redisAsyncContext* context) { return redisLibevAttach(ev.get(), context); },
      [&](const std::function<bool()>& done) { return test::run_until(loop, done, 1min); });
}

TEST(LibevAdapter, is_not_available_in_a_simulation) {
  sim::Simulation simulation;
  EventLoop loop(simulation.add_host("host").loop_options());
  LibevLoop ev(loop);
  EXPECT_EQ(ev.start().error(), system_error(EOPNOTSUPP));
}

}  // namespace
}  // namespace tambour::libev_test
