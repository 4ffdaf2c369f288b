// Threads that use one base: adding, deleting and activating from other threads, event_del() while
// the callback runs, and a child that runs its parent's base.

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <thread>
#include <vector>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>
#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;
using Function = std::function<void(int, short)>;

class Threads : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(evthread_use_pthreads(), 0);
    base = event_base_new();
    ASSERT_NE(base, nullptr);
  }
  void TearDown() override { event_base_free(base); }

  event* make(int fd, short events, Function& function) {
    return event_new(
        base, fd, events,
        [](int number, short kind, void* argument) {
          (*static_cast<Function*>(argument))(number, kind);
        },
        &function);
  }
  /// Runs the loop until finish().
  void start() {
    loop = std::thread([this] { event_base_loop(base, EVLOOP_NO_EXIT_ON_EMPTY); });
  }
  void finish() {
    event_base_loopbreak(base);
    loop.join();
  }
  template <class Condition>
  static bool wait_for(Condition condition) {
    for (int i = 0; i < 60'000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(1ms);
    }
    return false;
  }

  event_base* base = nullptr;
  std::thread loop;
};

TEST_F(Threads, ActivateWakesTheLoop) {
  std::atomic<int> count{0};
  Function function = [&](int, short kind) {
    EXPECT_EQ(kind, EV_READ);
    ++count;
  };
  event* const ev = make(-1, EV_PERSIST, function);
  start();
  for (int i = 1; i <= 100; ++i) {
    event_active(ev, EV_READ, 1);
    ASSERT_TRUE(wait_for([&] { return count == i; }));
  }
  finish();
  event_free(ev);
}

TEST_F(Threads, TimeoutAddedByAnotherThreadShortensTheWait) {
  std::atomic<int> count{0};
  Function function = [&](int, short) { ++count; };
  event* const late = make(-1, 0, function);
  event* const soon = make(-1, 0, function);
  const timeval hour{3600, 0};
  const timeval now{0, 1000};
  event_add(late, &hour);
  start();
  std::this_thread::sleep_for(20ms);
  event_add(soon, &now);
  EXPECT_TRUE(wait_for([&] { return count == 1; }));
  finish();
  event_free(late);
  event_free(soon);
}

TEST_F(Threads, DescriptorAddedByAnotherThread) {
  std::array<int, 2> pair;
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), 0);
  std::atomic<int> count{0};
  Function function = [&](int fd, short) {
    char byte;
    if (read(fd, &byte, 1) == 1) ++count;
  };
  event* const ev = make(pair[0], EV_READ | EV_PERSIST, function);
  start();
  for (int i = 1; i <= 100; ++i) {
    event_add(ev, nullptr);
    ASSERT_EQ(write(pair[1], "x", 1), 1);
    ASSERT_TRUE(wait_for([&] { return count == i; }));
    event_del(ev);
    EXPECT_EQ(event_pending(ev, EV_READ, nullptr), 0);
  }
  finish();
  event_free(ev);
  close(pair[0]);
  close(pair[1]);
}

TEST_F(Threads, DelWaitsForTheCallback) {
  std::atomic<bool> entered{false};
  std::atomic<bool> left{false};
  Function function = [&](int, short) {
    entered = true;
    std::this_thread::sleep_for(50ms);
    left = true;
  };
  event* const ev = make(-1, EV_PERSIST, function);
  start();
  event_active(ev, EV_READ, 1);
  ASSERT_TRUE(wait_for([&] { return entered.load(); }));
  event_del(ev);
  EXPECT_TRUE(left);
  finish();
  event_free(ev);
}

TEST_F(Threads, DelNoblockDoesNotWait) {
  std::atomic<bool> entered{false};
  std::atomic<bool> may_leave{false};
  Function function = [&](int, short) {
    entered = true;
    while (!may_leave) std::this_thread::sleep_for(1ms);
  };
  for (const bool finalize : {false, true}) {
    entered = may_leave = false;
    event* const ev =
        make(-1, static_cast<short>(finalize ? EV_PERSIST | EV_FINALIZE : EV_PERSIST), function);
    start();
    event_active(ev, EV_READ, 1);
    ASSERT_TRUE(wait_for([&] { return entered.load(); }));
    EXPECT_EQ(finalize ? event_del(ev) : event_del_noblock(ev), 0);
    may_leave = true;
    event_del_block(ev);
    finish();
    event_free(ev);
  }
}

TEST_F(Threads, FinalizerRunsAfterTheCallback) {
  static std::atomic<int> order;
  order = 0;
  std::atomic<bool> entered{false};
  Function function = [&](int, short) {
    entered = true;
    std::this_thread::sleep_for(30ms);
    int expected = 0;
    order.compare_exchange_strong(expected, 1);
  };
  event* const ev = make(-1, EV_PERSIST | EV_FINALIZE, function);
  start();
  event_active(ev, EV_READ, 1);
  ASSERT_TRUE(wait_for([&] { return entered.load(); }));
  event_free_finalize(0, ev, [](event*, void*) {
    int expected = 1;
    order.compare_exchange_strong(expected, 2);
  });
  EXPECT_TRUE(wait_for([&] { return order == 2; }));
  finish();
}

// The base makes records for new descriptors while its thread waits and reports others.
TEST_F(Threads, ManyThreadsAddNewDescriptors) {
  constexpr int threads = 4;
  constexpr int rounds = 60;
  std::atomic<long> count{0};
  Function function = [&](int, short) { ++count; };
  std::array<int, 2> busy{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, busy.data()), 0);
  event* const always = make(busy[0], EV_WRITE | EV_PERSIST, function);
  event_add(always, nullptr);
  start();
  std::vector<std::thread> others;
  // They stay open, so that the numbers grow.
  std::vector<std::vector<std::array<int, 2>>> all(threads,
                                                   std::vector<std::array<int, 2>>(rounds));
  for (auto& pairs : all) {
    others.emplace_back([&] {
      for (auto& pair : pairs) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) != 0) continue;
        event* const ev = make(pair[0], EV_READ | EV_WRITE | EV_PERSIST, function);
        event_add(ev, nullptr);
        std::this_thread::yield();
        event_del(ev);
        event_free(ev);
      }
    });
  }
  for (auto& other : others) other.join();
  EXPECT_TRUE(wait_for([&] { return count > 0; }));
  finish();
  event_free(always);
  all.push_back({busy});
  for (const auto& pairs : all) {
    for (const auto& pair : pairs) {
      close(pair[0]);
      close(pair[1]);
    }
  }
}

TEST_F(Threads, ManyThreadsAddDeleteAndActivate) {
  constexpr int threads = 4;
  constexpr int rounds = 2000;
  std::atomic<long> count{0};
  Function function = [&](int, short) { ++count; };
  std::vector<event*> events;
  std::vector<std::array<int, 2>> pairs(threads);
  for (auto& pair : pairs) {
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), 0);
    events.push_back(make(pair[0], EV_WRITE | EV_PERSIST, function));
  }
  start();
  std::vector<std::thread> others;
  for (int i = 0; i < threads; ++i) {
    others.emplace_back([&, i] {
      const timeval soon{0, 100 * (i + 1)};
      for (int round = 0; round < rounds; ++round) {
        event_add(events[static_cast<std::size_t>(i)], round % 2 == 0 ? &soon : nullptr);
        event_active(events[static_cast<std::size_t>(round % threads)], EV_READ, 1);
        event_del(events[static_cast<std::size_t>(i)]);
      }
    });
  }
  for (auto& other : others) other.join();
  // On a busy machine, the thread of the loop may not have run until now.
  event_active(events[0], EV_READ, 1);
  EXPECT_TRUE(wait_for([&] { return count > 0; }));
  finish();
  for (event* ev : events) event_free(ev);
  for (auto& pair : pairs) {
    close(pair[0]);
    close(pair[1]);
  }
}

TEST_F(Threads, ChildRunsTheBaseAfterReinit) {
  std::array<int, 2> pair;
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), 0);
  int reads = 0;
  int signals = 0;
  Function on_read = [&](int fd, short) {
    char byte;
    if (read(fd, &byte, 1) == 1) ++reads;
  };
  Function on_signal = [&](int, short) { ++signals; };
  event* const readable = make(pair[0], EV_READ | EV_PERSIST, on_read);
  event* const caught = make(SIGUSR1, EV_SIGNAL | EV_PERSIST, on_signal);
  event_add(readable, nullptr);
  event_add(caught, nullptr);
  event_base_loop(base, EVLOOP_NONBLOCK);
  const pid_t child = fork();
  if (child == 0) {
    int good = event_reinit(base) == 0 ? 1 : 0;
    std::raise(SIGUSR1);
    good &= write(pair[1], "x", 1) == 1 ? 1 : 0;
    for (int i = 0; i < 100 && (reads == 0 || signals == 0); ++i)
      event_base_loop(base, EVLOOP_NONBLOCK);
    _exit(good != 0 && reads == 1 && signals == 1 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  // The parent is not affected.
  std::raise(SIGUSR1);
  ASSERT_EQ(write(pair[1], "y", 1), 1);
  for (int i = 0; i < 100 && (reads == 0 || signals == 0); ++i)
    event_base_loop(base, EVLOOP_NONBLOCK);
  EXPECT_EQ(reads, 1);
  EXPECT_EQ(signals, 1);
  event_free(readable);
  event_free(caught);
  close(pair[0]);
  close(pair[1]);
}

}  // namespace
