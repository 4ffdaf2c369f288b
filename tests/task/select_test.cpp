// select(): over channels of one loop and between threads, signals, intervals and sleeps; no item
// is lost.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/sim/simulation.h>
#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/random.h"

namespace tambour::select_test {
namespace {

using namespace std::chrono_literals;

const Error cancelled = system_error(ECANCELED);

class Selections : public test::OnEveryBackend {};

TAMBOUR_ON_EVERY_BACKEND(Selections);

TEST_P(Selections, the_first_that_is_ready_wins_and_the_others_lose_nothing) {
  run([](EventLoop& loop) -> Task<> {
    TaskChannel<int> local(loop, 4);
    ConcurrentChannel<int> shared(4);
    Broadcast<int> broadcast(4);
    auto receiver = broadcast.subscribe();
    Watch<int> watch(0);
    auto watched = watch.subscribe();
    auto signals = SignalSet::open(loop, {SIGUSR1});
    TaskSemaphore semaphore(loop, 0);
    TaskEvent event(loop);
    Interval interval(loop, 1h);
    const auto all = [&] {
      return select(local.receive(), shared.receive(), receiver.receive(), watched.changed(),
                    signals->next(), semaphore.acquire(), event.wait(), interval.tick(),
                    sleep_for(1h), sleep_until(never), sleep_until(WallTime::max()));
    };
    // All of them become ready in the same iteration: each wait gets one of them.
    loop.post([&] {
      EXPECT_TRUE(local.try_send(1));
      EXPECT_TRUE(shared.try_send(2));
      EXPECT_TRUE(broadcast.send(3));
      watch.set(4);
      Signal::feed(loop, SIGUSR1);
      semaphore.add_permits(1);
    });
    std::vector<std::size_t> won;
    std::optional<TaskSemaphore::Permit> permit;
    for (int i = 0; i < 6; ++i) {
      auto first = co_await all();
      won.push_back(first.index());
      if (first.index() == 0) {
        EXPECT_EQ(std::get<0>(first), Result<int>(1));
      }
      if (first.index() == 1) {
        EXPECT_EQ(std::get<1>(first), Result<int>(2));
      }
      if (first.index() == 2) {
        EXPECT_EQ(std::get<2>(first)->value, 3);
      }
      if (first.index() == 3) {
        EXPECT_EQ(std::get<3>(first), Result<int>(4));
      }
      if (first.index() == 4) {
        EXPECT_EQ(std::get<4>(first), Result<int>(SIGUSR1));
      }
      if (first.index() == 5) permit = *std::move(std::get<5>(first));
    }
    std::ranges::sort(won);
    EXPECT_EQ(won, (std::vector<std::size_t>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(semaphore.available(), 0U);
    permit.reset();
    EXPECT_EQ(semaphore.available(), 1U);
  }(loop()));
}

TEST_P(Selections, a_source_that_is_always_ready_does_not_starve_the_others) {
  run([](EventLoop& loop) -> Task<> {
    TaskChannel<int> first(loop, 100);
    TaskChannel<int> second(loop, 100);
    for (int i = 0; i < 30; ++i) {
      EXPECT_TRUE(first.try_send(int(i)));
      EXPECT_TRUE(second.try_send(int(i)));
    }
    std::vector<int> counts(2);
    for (int i = 0; i < 30; ++i)
      ++counts[(co_await select(first.receive(), second.receive())).index()];
    EXPECT_GE(counts[0], 10);
    EXPECT_GE(counts[1], 10);
    EXPECT_EQ(first.size() + second.size(), 30U);
  }(loop()));
}

TEST_P(Selections, of_a_task_that_selects_twice_in_each_round_start_with_each_source) {
  run([](EventLoop& loop) -> Task<> {
    TaskChannel<int> busy(loop, 1);
    TaskChannel<int> rare(loop, 1);
    TaskChannel<int> other(loop, 1);
    TaskChannel<int> empty(loop, 1);
    EXPECT_TRUE(rare.try_send(1));
    bool is_seen = false;
    for (int i = 0; i < 100 && !is_seen; ++i) {
      static_cast<void>(busy.try_send(1));
      static_cast<void>(other.try_send(1));
      const auto first = co_await select(rare.receive(), busy.receive());
      is_seen = first.index() == 0;
      const auto second = co_await select(other.receive(), empty.receive());
      EXPECT_EQ(second.index(), 0U);
    }
    EXPECT_TRUE(is_seen);
    // From the other parity.
    static_cast<void>(other.try_send(1));
    static_cast<void>(co_await select(other.receive(), empty.receive()));
    is_seen = false;
    static_cast<void>(rare.try_send(1));
    for (int i = 0; i < 100 && !is_seen; ++i) {
      static_cast<void>(busy.try_send(1));
      static_cast<void>(other.try_send(1));
      const auto first = co_await select(rare.receive(), busy.receive());
      is_seen = first.index() == 0;
      static_cast<void>(co_await select(other.receive(), empty.receive()));
    }
    EXPECT_TRUE(is_seen);
  }(loop()));
}

TEST_P(Selections, can_be_stopped_and_destroyed) {
  TaskChannel<int> left(loop(), 1);
  ConcurrentChannel<int> right(1);
  std::vector<Error> ends;
  const auto wait = [&]() -> Task<> {
    const auto first = co_await select(left.receive(), right.receive());
    ends.push_back(std::visit([](auto& got) { return got.error(); }, first));
  };
  TaskScope stopped(loop());
  auto destroyed = std::make_unique<TaskScope>(loop());
  stopped.spawn(wait());
  destroyed->spawn(wait());
  EXPECT_TRUE(left.try_send(1));
  EXPECT_TRUE(right.try_send(2));
  stopped.request_stop();
  destroyed.reset();
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>{cancelled});
  EXPECT_EQ(left.try_receive(), Result<int>(1));
  EXPECT_EQ(right.try_receive(), Result<int>(2));
}

TEST_P(Selections, accept_functions_and_tasks_that_are_declared_safe) {
  static_assert(CancelSafe<SleepFor>);
  static_assert(CancelSafe<TaskChannel<int>::Receive>);
  static_assert(CancelSafe<ConcurrentChannel<int>::Receive>);
  static_assert(CancelSafe<Stream::Read> && CancelSafe<Stream::ReadBuffer>);
  static_assert(CancelSafe<CancelSafeTask<int>>);
  static_assert(CancelSafe<JoinHandle<int>::Join> && CancelSafe<JoinHandle<>::Join>);
  static_assert(!CancelSafe<TaskChannel<int>::Send>);
  static_assert(!CancelSafe<ConcurrentChannel<int>::Send>);
  static_assert(!CancelSafe<Stream::Write>);
  static_assert(!CancelSafe<Task<int>>);
  run([](EventLoop& loop) -> Task<> {
    TaskChannel<int> channel(loop, 1);
    auto answer = []() -> Task<int> {
      co_await sleep_for(0s);
      co_return 42;
    };
    const auto first = co_await select([&] { return channel.receive(); }, cancel_safe(answer()));
    EXPECT_EQ(std::get<1>(first), 42);
  }(loop()));
}

/// Random arrivals at three channels, of which tasks of one loop select; each item is received
/// once.
TEST_P(Selections, transfer_every_item_once) {
  TAMBOUR_TRACE_SEED();
  test::Random random;
  TaskChannel<int> first(loop(), 3);
  ConcurrentChannel<int> second(2);
  TaskChannel<int> third(loop(), 0);
  std::vector<int> counts(300);
  int sending = 3;
  const auto end = [&] {
    if (--sending != 0) return;
    first.close();
    second.close();
    third.close();
  };
  const auto send = [&](auto& to, int from) -> Task<> {
    for (int i = from; i < from + 100; ++i) {
      if (!co_await to.send(int(i))) ADD_FAILURE() << "not sent";
      if (random.below(4) == 0) co_await sleep_for(random.below(3) * 10us);
    }
    end();
  };
  spawn(loop(), [&]() -> Task<> { co_await send(first, 0); });
  spawn(loop(), [&]() -> Task<> { co_await send(second, 100); });
  spawn(loop(), [&]() -> Task<> { co_await send(third, 200); });
  for (int i = 0; i < 3; ++i) {
    spawn(loop(), [&]() -> Task<> {
      for (;;) {
        const auto got = co_await select(first.receive(), second.receive(), third.receive(),
                                         sleep_for(random.below(3) * 20us));
        if (got.index() == 3) continue;
        const auto item = got.index() == 0   ? std::get<0>(got)
                          : got.index() == 1 ? std::get<1>(got)
                                             : std::get<2>(got);
        if (item) ++counts.at(std::size_t(*item));
        if (!item && first.empty() && second.empty() && third.empty()) co_return;
      }
    });
  }
  loop().run();
  EXPECT_EQ(counts, std::vector<int>(300, 1));
}

/// The order depends only on the seed, although several selections happened before.
TEST(SelectionsInSimulation, are_reproducible) {
  const auto play = [] {
    sim::Simulation simulation(7);
    EventLoop loop(simulation.add_host("host").loop_options());
    std::vector<std::size_t> order;
    spawn(loop, [&]() -> Task<> {
      for (int i = 0; i < 20; ++i) {
        const auto first = co_await select(sleep_for(1ms), sleep_for(1ms), sleep_for(1ms));
        order.push_back(first.index());
      }
    });
    EXPECT_EQ(simulation.run(), sim::End::finished);
    return order;
  };
  EXPECT_EQ(play(), play());
}

}  // namespace
}  // namespace tambour::select_test
