// An EventLoop as a `struct event_base` of the drop-in, with which this program is linked.
#include <hiredis/adapters/libevent.h>

#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/thread.h>
#include <gtest/gtest.h>

#include <tambour/adapters/libevent.h>
#include <tambour/tambour.h>

#include "adapters/hosts/host_scenario.h"
#include "adapters/redis_commands.h"
#include "support/files.h"
#include "support/on_every_backend.h"

namespace tambour::libevent_test {
namespace {

using namespace std::chrono_literals;
using adapters::LibeventBase;

timeval to_timeval(std::chrono::microseconds time) {
  return {.tv_sec = time.count() / 1'000'000, .tv_usec = time.count() % 1'000'000};
}

/// An event that invokes a function.
struct Event {
  using Function = std::function<void(short)>;

  Event(event_base* base, int fd, short events, Function called)
      : function(std::move(called)), ev(event_new(base, fd, events, &invoke, this)) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { event_free(ev); }
  static void invoke(int /*fd*/, short events, void* self) {
    static_cast<Event*>(self)->function(events);
  }
  void add() const { event_add(ev, nullptr); }
  void add(std::chrono::microseconds after) const {
    const timeval time = to_timeval(after);
    event_add(ev, &time);
  }

  Function function;
  event* ev;
};

class LibeventBases : public test::OnEveryBackend {
 protected:
  static void SetUpTestSuite() { evthread_use_pthreads(); }

  void SetUp() override {
    test::OnEveryBackend::SetUp();
    if (IsSkipped()) return;
    host.emplace(loop());
    ASSERT_TRUE(host->start());
    ASSERT_TRUE(host->start());
  }
  void TearDown() override {
    host.reset();
    test::OnEveryBackend::TearDown();
  }
  [[nodiscard]] event_base* base() const { return host->get(); }

  std::optional<LibeventBase> host;
};

TEST_P(LibeventBases, timers_of_both_expire_in_order) {
  // Each timer starts the next one: a busy machine may delay them.
  std::string order;
  const Event fourth(base(), -1, EV_TIMEOUT, [&](short) { order += 'd'; });
  Timer third(loop(), [&] {
    order += 'c';
    fourth.add(5ms);
  });
  const Event second(base(), -1, EV_TIMEOUT, [&](short) {
    order += 'b';
    third.start(5ms);
  });
  Timer first(loop(), [&] {
    order += 'a';
    second.add(5ms);
  });
  const TimePoint began = Clock::now();
  first.start(5ms);
  EXPECT_TRUE(run_until([&] { return order.size() == 4; }));
  EXPECT_EQ(order, "abcd");
  EXPECT_GE(Clock::now() - began, 20ms);
}

TEST_P(LibeventBases, descriptors_of_both_are_watched_with_one_wait) {
  const test::Ends ends = test::open_socketpair();
  int reads = 0;
  int native_reads = 0;
  std::optional<Event> reader;
  reader.emplace(base(), ends.near.get(), EV_READ | EV_PERSIST, [&](short events) {
    EXPECT_EQ(events, EV_READ);
    if (++reads == 3) event_del(reader->ev);
  });
  // Both watch the same descriptor, which stays readable.
  FdWatcher watcher(loop(), ends.near.get(), Events::read, [&](Events) { ++native_reads; });
  reader->add();
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
  int writes = 0;
  const Event writer(base(), ends.near.get(), EV_WRITE, [&](short events) {
    EXPECT_EQ(events, EV_WRITE);
    ++writes;
  });
  writer.add();
  EXPECT_TRUE(run_until([&] { return writes == 1; }));
  watcher.stop();
  EXPECT_TRUE(sleeps_through(50ms));
}

TEST_P(LibeventBases, timeouts_of_descriptors_and_priorities) {
  ASSERT_EQ(event_base_priority_init(base(), 2), 0);
  std::string order;
  const test::Ends ends = test::open_pipe();
  const Event reader(base(), ends.near.get(), EV_READ,
                     [&](short events) { order += events == EV_TIMEOUT ? 't' : 'r'; });
  reader.add(5ms);
  EXPECT_TRUE(run_until([&] { return order == "t"; }));
  const Event urgent(base(), -1, 0, [&](short) { order += 'u'; });
  const Event slow(base(), -1, 0, [&](short) { order += 's'; });
  event_priority_set(urgent.ev, 0);
  event_priority_set(slow.ev, 1);
  event_active(slow.ev, EV_READ, 1);
  event_active(urgent.ev, EV_READ, 1);
  EXPECT_TRUE(run_until([&] { return order.size() == 3; }));
  EXPECT_EQ(order, "tus");
}

TEST_P(LibeventBases, event_base_dispatch_runs_the_event_loop) {
  std::string order;
  const Event timer(base(), -1, EV_TIMEOUT, [&](short) { order += 'b'; });
  Timer native(loop(), [&] { order += 'a'; });
  native.start(1ms);
  timer.add(10ms);
  EXPECT_EQ(event_base_dispatch(base()), 1);
  EXPECT_EQ(order, "ab");
  // A callback of the EventLoop ends it.
  timer.add(1min);
  native.set_function([&] { event_base_loopbreak(base()); });
  native.start(1ms);
  EXPECT_EQ(event_base_dispatch(base()), 0);
  EXPECT_NE(event_base_got_break(base()), 0);
  event_del(timer.ev);
  // Inside a callback of the EventLoop.
  native.set_function([&] {
    timer.add(1ms);
    event_base_loop(base(), EVLOOP_ONCE);
    order += 'c';
  });
  native.start(1ms);
  EXPECT_TRUE(run_until([&] { return order.size() == 4; }));
  EXPECT_EQ(order, "abbc");
}

TEST_P(LibeventBases, events_wait_while_one_of_them_runs_the_event_loop) {
  std::string order;
  const Event second(base(), -1, 0, [&](short) { order += 'c'; });
  const Event first(base(), -1, 0, [&](short) {
    EXPECT_TRUE(sleeps_through(30ms));
    order += 'b';
  });
  Timer native(loop(), [&] { order += 'a'; });
  native.start(1ms);
  event_active(first.ev, EV_READ, 1);
  event_active(second.ev, EV_READ, 1);
  EXPECT_TRUE(run_until([&] { return order.size() == 3; }));
  EXPECT_EQ(order, "abc");
}

TEST_P(LibeventBases, loopbreak_and_loopexit_stop_the_event_loop) {
  Timer limit(loop(), [&] { ADD_FAILURE() << "the loop was not stopped"; });
  limit.start(30s);
  // Outside of callbacks there is nothing to break.
  event_base_loopbreak(base());
  const Event timer(base(), -1, EV_TIMEOUT, [&](short) { event_base_loopbreak(base()); });
  timer.add(1ms);
  loop().run();
  EXPECT_EQ(event_pending(timer.ev, EV_TIMEOUT, nullptr), 0);
  const timeval soon = to_timeval(1ms);
  event_base_loopexit(base(), &soon);
  loop().run();
}

TEST_P(LibeventBases, other_threads_add_and_activate_events) {
  int calls = 0;
  const Event active(base(), -1, 0, [&](short) { ++calls; });
  for (int round = 1; round <= 20; ++round) {
    std::jthread other([&] { event_active(active.ev, EV_READ, 1); });
    EXPECT_TRUE(run_until([&] { return calls == round; }));
  }
  const test::Ends ends = test::open_pipe();
  const Event reader(base(), ends.near.get(), EV_READ, [&](short) { ++calls; });
  test::write_to(ends.far);
  std::jthread([&] { reader.add(); }).join();
  EXPECT_TRUE(run_until([&] { return calls == 21; }));
  // Deleted by another thread: the descriptor is not watched any more.
  reader.add();
  std::jthread([&] { event_del(reader.ev); }).join();
  run_iterations();
  EXPECT_EQ(calls, 21);
  EXPECT_TRUE(sleeps_through(50ms));
}

TEST_P(LibeventBases, bufferevents_transfer_bytes) {
  test::Ends ends = test::open_socketpair();
  using Stream = std::unique_ptr<bufferevent, decltype(&bufferevent_free)>;
  const auto open = [&](UniqueFd& fd) {
    return Stream(bufferevent_socket_new(base(), fd.release(), BEV_OPT_CLOSE_ON_FREE),
                  &bufferevent_free);
  };
  const Stream sender = open(ends.near);
  const Stream receiver = open(ends.far);
  std::size_t received = 0;
  bufferevent_setcb(
      receiver.get(),
      [](bufferevent* stream, void* count) {
        evbuffer* const input = bufferevent_get_input(stream);
        *static_cast<std::size_t*>(count) += evbuffer_get_length(input);
        evbuffer_drain(input, evbuffer_get_length(input));
      },
      nullptr, nullptr, &received);
  bufferevent_enable(receiver.get(), EV_READ);
  const std::string text(1'000'000, 'x');
  bufferevent_write(sender.get(), text.data(), text.size());
  EXPECT_TRUE(run_until([&] { return received == text.size(); }));
}

TEST_P(LibeventBases, edge_triggered_events_are_not_lost) {
  if ((event_base_get_features(base()) & EV_FEATURE_ET) == 0) GTEST_SKIP() << "no edges";
  const test::Ends ends = test::open_socketpair();
  int reads = 0;
  const Event reader(base(), ends.near.get(), EV_READ | EV_ET | EV_PERSIST,
                     [&](short) { ++reads; });
  test::write_to(ends.far);
  reader.add();
  EXPECT_TRUE(run_until([&] { return reads == 1; }));
  run_iterations();
  EXPECT_EQ(reads, 1);
  test::write_to(ends.far);
  EXPECT_TRUE(run_until([&] { return reads == 2; }));
}

TEST_P(LibeventBases, descriptor_numbers_are_reused) {
  int reads = 0;
  test::Ends ends = test::open_pipe();
  for (int round = 1; round <= 5; ++round) {
    const Event reader(base(), ends.near.get(), EV_READ, [&](short) { ++reads; });
    reader.add();
    run_iterations();
    EXPECT_EQ(reads, round - 1);
    test::write_to(ends.far);
    EXPECT_TRUE(run_until([&] { return reads == round; }));
    const int number = ends.near.get();
    ends = {};
    ends = test::open_pipe();
    EXPECT_TRUE(ends.near.get() == number || ends.far.get() == number);
  }
}

TEST_P(LibeventBases, both_may_be_destroyed_first) {
  // By the library that uses the base.
  event_base_free(base());
  EXPECT_EQ(base(), nullptr);
  run_iterations();
  ASSERT_TRUE(host->start());
  const test::Ends ends = test::open_pipe();
  {
    const Event reader(base(), ends.near.get(), EV_READ, [&](short) { ADD_FAILURE(); });
    reader.add();
    run_iterations();
    destroy_loop();
  }
  host->stop();
  EXPECT_EQ(base(), nullptr);
}

TEST_P(LibeventBases, a_child_process_reopens_the_base) {
  int calls = 0;
  const test::Ends ends = test::open_pipe();
  const Event reader(base(), ends.near.get(), EV_READ, [&](short) { ++calls; });
  reader.add();
  run_iterations();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_reopened = loop().after_fork().has_value();
    test::write_to(ends.far);
    for (int i = 0; i < 1'000 && calls == 0; ++i) loop().run_ready();
    ::_exit(is_reopened && calls == 1 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TAMBOUR_ON_EVERY_BACKEND(LibeventBases);

TEST(LibeventAdapter, hiredis_works_with_its_adapter_for_libevent) {
  EventLoop loop;
  LibeventBase base(loop);
  ASSERT_TRUE(base.start());
  test::expect_redis_commands(
      loop, [&](redisAsyncContext* context) { return redisLibeventAttach(context, base.get()); },
      [&](const std::function<bool()>& done) { return test::run_until(loop, done, 1min); });
}

TEST(LibeventAdapter, is_not_available_in_a_simulation) {
  sim::Simulation simulation;
  EventLoop loop(simulation.add_host("host").loop_options());
  LibeventBase base(loop);
  EXPECT_EQ(base.start().error(), system_error(EOPNOTSUPP));
}

}  // namespace
}  // namespace tambour::libevent_test
