// block_on(): results, exceptions, other work of the loop, and calls that would block a loop.
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"

namespace tambour::block_on_test {
namespace {

using namespace std::chrono_literals;

class BlockOn : public test::OnEveryBackend {
 public:
  void SetUp() override {
    test::OnEveryBackend::SetUp();
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
  }
};

TAMBOUR_ON_EVERY_BACKEND(BlockOn);

Task<std::string> greet(std::string name) {
  static_cast<void>(co_await sleep_for(1ms));
  co_return "hello, " + name;
}

TEST_P(BlockOn, returns_the_result_or_throws_the_exception) {
  EXPECT_EQ(block_on(greet("Ann"), options()), "hello, Ann");
  EXPECT_EQ(block_on([]() -> Task<int> { co_return 7; }(), options()), 7);
  block_on([]() -> Task<> { co_return; }(), options());
  EXPECT_TRUE(block_on(sleep_for(1ms), options()));
  EXPECT_EQ(block_on(timeout(1ms, sleep_for(1h)), options()).error(), system_error(ETIMEDOUT));
  const auto throws = []() -> Task<int> {
    static_cast<void>(co_await sleep_for(1ms));
    throw std::runtime_error("thrown");
  };
  EXPECT_THROW(block_on(throws(), options()), std::runtime_error);
  auto owned = block_on(
      []() -> Task<std::unique_ptr<int>> { co_return std::make_unique<int>(3); }(), options());
  EXPECT_EQ(*owned, 3);
}

TEST_P(BlockOn, runs_the_other_work_of_the_loop_meanwhile) {
  int ticks = 0;
  bool ended = false;
  TaskEvent end(loop());
  spawn(loop(), [](int& count, bool& done, TaskEvent& may_end) -> Task<> {
    for (; count < 3; ++count) static_cast<void>(co_await sleep_for(1ms));
    static_cast<void>(co_await may_end.wait());
    done = true;
  }(ticks, ended, end));
  const auto wait = [&ticks]() -> Task<> {
    while (ticks < 3) static_cast<void>(co_await sleep_for(1ms));
  };
  block_on(loop(), wait());
  EXPECT_FALSE(ended);
  // A stop request does not end it. The other task goes on afterwards.
  loop().stop();
  EXPECT_EQ(block_on(loop(), greet("Bob")), "hello, Bob");
  EXPECT_FALSE(ended);
  end.set();
  loop().run();
  EXPECT_TRUE(ended);
}

TEST_P(BlockOn, waits_for_other_threads) {
  TaskEvent event(loop());
  std::thread other([this, &event] {
    std::this_thread::sleep_for(5ms);
    loop().post([&event] { event.set(); });
  });
  EXPECT_TRUE(block_on(loop(), event.wait()));
  other.join();
  LoopGroup group({.threads = 1, .loop = options()});
  EXPECT_EQ(block_on(run_on(group[0], greet, "you"), options()), "hello, you");
}

TEST_P(BlockOn, tasks_that_have_not_ended_are_destroyed_with_its_loop) {
  auto witness = std::make_shared<int>();
  const std::weak_ptr<int> watched = witness;
  block_on(
      [](std::shared_ptr<int> kept) -> Task<> {
        const TaskContext& context = co_await this_task;
        spawn(*context.loop, [](std::shared_ptr<int> local) -> Task<> {
          static_cast<void>(co_await sleep_for(1h));
          static_cast<void>(local);
        }(std::move(kept)));
      }(std::move(witness)),
      options());
  EXPECT_TRUE(watched.expired());
}

TEST_P(BlockOn, an_exception_of_a_callback_destroys_the_task) {
  auto witness = std::make_shared<int>();
  const std::weak_ptr<int> watched = witness;
  loop().post([] { throw std::logic_error("of a callback"); });
  const auto sleep = [](std::shared_ptr<int> kept) -> Task<> {
    static_cast<void>(co_await sleep_for(1h));
    static_cast<void>(kept);
  };
  EXPECT_THROW(block_on(loop(), sleep(std::move(witness))), std::logic_error);
  EXPECT_TRUE(watched.expired());
  // A wait that a stop request can end is in a list of block_on().
  TaskEvent event(loop());
  const auto wait = [](TaskEvent& never_set) -> Task<> {
    static_cast<void>(co_await never_set.wait());
  };
  loop().post([] { throw std::logic_error("of a callback"); });
  EXPECT_THROW(block_on(loop(), wait(event)), std::logic_error);
  event.set();
  EXPECT_EQ(block_on(loop(), greet("again")), "hello, again");
}

TEST_P(BlockOn, aborts_on_a_thread_that_runs_a_loop_or_a_task) {
  const auto in_callback = [this] {
    EventLoop other(options());
    other.post([this] { block_on(greet("nobody"), options()); });
    other.run();
  };
  EXPECT_DEATH(in_callback(), "block_on.. was called in .*block_on_test.cpp:.* is running a loop");
  const auto in_task = [this] {
    EventLoop other(options());
    spawn(other, [](const LoopOptions& of) -> Task<> {
      block_on(greet("nobody"), of);
      co_return;
    }(options()));
  };
  EXPECT_DEATH(in_task(), "block_on.. was called in .*running a loop or a task");
  EXPECT_DEATH(block_on(Task<int>(), options()), "block_on.. got an empty Task");
}

/// In the simulator, the hour takes no time.
TEST(BlockOnSimulation, runs_in_virtual_time) {
  sim::Simulation simulation(1);
  EventLoop loop(simulation.add_host("host").loop_options());
  const TimePoint before = loop.now();
  EXPECT_TRUE(block_on(loop, sleep_for(1h)));
  EXPECT_GE(loop.now() - before, 1h);
}

}  // namespace
}  // namespace tambour::block_on_test
