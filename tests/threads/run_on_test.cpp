// run_on(): results, exceptions, stops, and loops that end first.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"
#include "support/process.h"

namespace tambour::run_on_test {
namespace {

using namespace std::chrono_literals;

const Error cancelled = system_error(ECANCELED);

class RunOnLoop : public test::OnEveryBackend {
 public:
  [[nodiscard]] LoopGroupOptions group_options(unsigned threads) const {
    LoopGroupOptions wanted;
    wanted.threads = threads;
    wanted.loop = options();
    return wanted;
  }
};

TAMBOUR_ON_EVERY_BACKEND(RunOnLoop);

Task<std::thread::id> here() {
  co_await sleep_for(1ms);
  co_return std::this_thread::get_id();
}

Task<Result<int>> answer(std::string question) {
  co_await sleep_for(1ms);
  if (question.empty()) co_return std::unexpected(system_error(EINVAL));
  co_return int(question.size());
}

TEST_P(RunOnLoop, results_come_back_to_the_awaiting_task) {
  LoopGroup group(group_options(1));
  run([](EventLoop& home, EventLoop& other) -> Task<> {
    const auto this_thread = std::this_thread::get_id();
    const auto there = co_await run_on(other, here());
    EXPECT_NE(there.value(), this_thread);
    EXPECT_EQ(std::this_thread::get_id(), this_thread);
    EXPECT_EQ((co_await this_task).loop, &home);
    // A callable with arguments, which returns a task or a value.
    EXPECT_EQ(co_await run_on(other, answer, "four"), Result<int>(4));
    EXPECT_EQ((co_await run_on(other, answer, "")).error(), system_error(EINVAL));
    EXPECT_EQ(co_await run_on(other, [](int a, int b) { return a + b; }, 1, 2), Result<int>(3));
    EXPECT_EQ(co_await run_on(other, std::this_thread::get_id), there);
    auto owned = co_await run_on(
        other, [](std::unique_ptr<int> value) { return value; }, std::make_unique<int>(7));
    EXPECT_EQ(*owned.value(), 7);
    int ran = 0;
    const Result<> nothing = co_await run_on(other, [&ran] { ran = 1; });
    EXPECT_TRUE(nothing);
    EXPECT_EQ(ran, 1);
    // Any awaitable runs on the other loop if it is wrapped in a task there.
    EXPECT_TRUE(co_await run_on(other, [] { return as_task(sleep_for(1ms)); }));
    EXPECT_TRUE(co_await run_on(home, [] { return as_task(sleep_for(1ms)); }));
  }(loop(), group[0]));
}

TEST_P(RunOnLoop, exceptions_come_back_to_the_awaiting_task) {
  LoopGroup group(group_options(1));
  run([](EventLoop& other) -> Task<> {
    auto thrower = [](const char* text) -> Task<int> {
      co_await sleep_for(1ms);
      throw std::runtime_error(text);
    };
    EXPECT_THROW(static_cast<void>(co_await run_on(other, thrower, "later")), std::runtime_error);
    auto at_once = []() -> int { throw std::runtime_error("at once"); };
    EXPECT_THROW(static_cast<void>(co_await run_on(other, at_once)), std::runtime_error);
  }(group[0]));
  group.stop();
  group.join();
}

TEST_P(RunOnLoop, a_time_limit_stops_the_other_task_and_waits_for_it) {
  LoopGroup group(group_options(1));
  std::atomic<bool> has_started = false;
  std::atomic<bool> has_ended = false;
  run([](EventLoop& other, std::atomic<bool>& started, std::atomic<bool>& ended) -> Task<> {
    auto work = [](std::atomic<bool>& begun, std::atomic<bool>& finished) -> Task<Result<>> {
      begun = true;
      const Result<> slept = co_await sleep_for(1h);
      EXPECT_EQ(slept.error(), cancelled);
      co_await uncancellable(sleep_for(2ms));
      finished = true;
      co_return slept;
    };
    // On a busy machine the limit may expire before the other loop has started the task.
    for (Duration limit = 5ms; !started; limit *= 2) {
      const Result<> limited =
          co_await timeout(limit, run_on(other, work, std::ref(started), std::ref(ended)));
      EXPECT_EQ(limited.error(), system_error(ETIMEDOUT));
    }
    EXPECT_TRUE(ended);
  }(group[0], has_started, has_ended));
}

TEST_P(RunOnLoop, a_task_that_has_not_started_never_starts_after_a_stop) {
  // On this thread, so the other loop does not run meanwhile.
  auto other = std::make_unique<EventLoop>(options());
  auto witness = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = witness;
  std::vector<Error> ends;
  TaskScope scope(loop());
  const auto wait = [&]() -> Task<> {
    auto never = [](std::shared_ptr<int> local) -> Task<int> {
      ADD_FAILURE() << "started";
      co_return *local;
    };
    const auto result = co_await run_on(*other, never, std::move(witness));
    ends.push_back(result.error());
    EXPECT_TRUE(watched.expired());
  };
  scope.spawn(wait());
  run_iterations();
  EXPECT_FALSE(watched.expired());
  scope.request_stop();
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>{cancelled});
  // A stop before the call.
  scope.spawn(wait());
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>(2, cancelled));
  other->run_ready();
  other->run_ready();
  EXPECT_TRUE(detail::tasks_of(*other).empty());
}

TEST_P(RunOnLoop, the_wait_ends_when_the_other_loop_is_destroyed) {
  for (const int iterations : {0, 3}) {
    auto other = std::make_unique<EventLoop>(options());
    auto witness = std::make_shared<int>(1);
    const std::weak_ptr<int> watched = witness;
    std::optional<Result<>> end;
    spawn(loop(), [&]() -> Task<> {
      auto sleep = [](std::shared_ptr<int>) -> Task<Result<>> { co_return co_await sleep_for(1h); };
      end = co_await run_on(*other, sleep, std::move(witness));
    });
    for (int i = 0; i < iterations; ++i) other->run_ready();
    EXPECT_EQ(detail::tasks_of(*other).size(), iterations == 0 ? 0U : 1U);
    run_iterations();
    EXPECT_FALSE(end);
    other.reset();
    loop().run();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->error(), cancelled);
    EXPECT_TRUE(watched.expired());
  }
}

TEST_P(RunOnLoop, the_wait_ends_when_the_group_stops) {
  LoopGroup group(group_options(2));
  std::vector<Error> ends;
  for (int i = 0; i < 10; ++i) {
    spawn(loop(), [&, i]() -> Task<> {
      auto sleep = []() -> Task<Result<>> { co_return co_await sleep_for(1h); };
      ends.push_back((co_await run_on(group[std::size_t(i % 2)], sleep)).error());
      if (ends.size() == 5) group.stop();
    });
  }
  spawn(loop(), [&]() -> Task<> {
    EXPECT_TRUE(co_await run_on(group[0], [] {}));
    group.stop();
  });
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>(10, cancelled));
  group.join();
}

TEST_P(RunOnLoop, destroying_the_awaiting_task_stops_the_other_one) {
  auto other = std::make_unique<EventLoop>(options());
  std::vector<Error> ends;
  const auto sleep = [&ends]() -> Task<> { ends.push_back((co_await sleep_for(1h)).error()); };
  const auto call = [&]() -> Task<> { static_cast<void>(co_await run_on(*other, sleep)); };
  {
    // Not started, started, and ended but not delivered.
    std::array<std::optional<TaskScope>, 3> scopes;
    for (auto& scope : scopes) scope.emplace(loop());
    scopes[0]->spawn(call());
    scopes[0].reset();
    other->run_ready();
    EXPECT_TRUE(ends.empty());
    scopes[1]->spawn(call());
    other->run_ready();
    scopes[1].reset();
    other->run();
    EXPECT_EQ(ends, std::vector<Error>{cancelled});
    scopes[2]->spawn(
        [](EventLoop& to) -> Task<> {
          static_cast<void>(co_await run_on(to, [] { return 1; }));
          ADD_FAILURE() << "resumed";
        },
        std::ref(*other));
    other->run();
    scopes[2].reset();
  }
  // The loop of the awaiting task is destroyed.
  auto home = std::make_unique<EventLoop>(options());
  for (int i = 0; i < 2; ++i) {
    spawn(*home, call());
    if (i == 0) other->run_ready();
  }
  home.reset();
  other->run();
  EXPECT_EQ(ends, std::vector<Error>(2, cancelled));
  loop().run();
}

TEST_P(RunOnLoop, a_task_may_outlive_its_loop) {
  auto other = std::make_unique<EventLoop>(options());
  auto home = std::make_unique<EventLoop>(options());
  bool resumed = false;
  std::optional<TaskScope> scope(std::in_place, *home);
  for (int i = 0; i < 2; ++i) {
    scope->spawn([&]() -> Task<> {
      static_cast<void>(co_await run_on(*other, [] { return 1; }));
      resumed = true;
    });
    // One result is on its way when the loop is destroyed.
    if (i == 0) other->run();
  }
  home.reset();
  other->run();
  scope.reset();
  EXPECT_FALSE(resumed);
}

TEST_P(RunOnLoop, moved_but_not_awaited_calls_are_only_destroyed) {
  bool destroyed = false;
  auto other = std::make_unique<EventLoop>(options());
  {
    std::shared_ptr<int> witness(new int(1), [&](const int* value) {
      destroyed = true;
      delete value;
    });
    auto call = run_on(*other, [](const std::shared_ptr<int>&) {}, std::move(witness));
    auto moved = std::move(call);
    EXPECT_FALSE(destroyed);
  }
  EXPECT_TRUE(destroyed);
  other->run();
}

TEST_P(RunOnLoop, loops_may_call_each_other) {
  LoopGroup group(group_options(3));
  std::atomic<int> calls = 0;
  struct Bounce {
    static Task<int> run(LoopGroup& loops, std::atomic<int>& count, int depth) {
      ++count;
      if (depth == 0) co_return 0;
      const auto below = co_await run_on(loops[std::size_t(depth) % 3], run, std::ref(loops),
                                         std::ref(count), depth - 1);
      co_return below.value() + 1;
    }
  };
  run([](LoopGroup& loops, std::atomic<int>& count) -> Task<> {
    std::vector<Task<int>> tasks;
    for (int i = 0; i < 20; ++i) tasks.push_back(Bounce::run(loops, count, 30));
    const std::vector<int> depths = co_await when_all(std::move(tasks));
    EXPECT_EQ(depths, std::vector<int>(20, 30));
  }(group, calls));
  EXPECT_EQ(calls, 20 * 31);
}

/// Stops, results and destructions cross in every order.
TEST_P(RunOnLoop, stops_and_results_may_cross) {
  LoopGroup group(group_options(2));
  std::atomic<int> running = 0;
  run([](LoopGroup& loops, std::atomic<int>& count) -> Task<> {
    auto work = [](std::atomic<int>& current, int number) -> Task<Result<int>> {
      ++current;
      const Result<> slept = co_await sleep_for(number % 4 * 30us);
      --current;
      if (!slept) co_return std::unexpected(slept.error());
      co_return number;
    };
    auto limited = [&](int number) -> Task<> {
      const auto result = co_await timeout(
          number % 5 * 40us, run_on(loops[std::size_t(number % 2)], work, std::ref(count), number));
      EXPECT_EQ(result.value_or(number), number);
    };
    for (int round = 0; round < 20; ++round) {
      TaskScope scope(*(co_await this_task).loop);
      for (int i = 0; i < 20; ++i) scope.spawn(limited(i));
      if (round % 2 == 0) {  // Otherwise the tasks are destroyed.
        co_await scope.join();
      } else {
        co_await sleep_for(round * 20us);
      }
    }
  }(group, running));
  EXPECT_TRUE(eventually([&] { return running == 0; }));
}

TEST_P(RunOnLoop, the_wait_ends_in_a_forked_child) {
  EventLoop other(options());
  std::vector<Error> ends;
  const auto call = [&]() -> Task<> {
    auto sleep = []() -> Task<Result<>> { co_return co_await sleep_for(1ms); };
    const Result<> slept = co_await run_on(other, sleep);
    ends.push_back(slept ? Error() : slept.error());
  };
  spawn(loop(), call);
  other.run_ready();
  spawn(loop(), call);
  EXPECT_EQ(test::in_child([&] {
              if (!loop().after_fork() || !other.after_fork()) return 1;
              loop().run();
              if (ends != std::vector<Error>(2, cancelled)) return 2;
              // Discards both results.
              other.run();
              spawn(loop(), call);
              other.run();
              loop().run();
              return ends.size() == 3 && !ends.back() ? 0 : 3;
            }),
            0);
  other.run();
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>(2));
}

TEST_P(RunOnLoop, an_empty_task_aborts) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(static_cast<void>(run_on(loop(), Task<int>())),
               "run_on.. got an empty Task, in .*run_on_test.cpp");
}

}  // namespace
}  // namespace tambour::run_on_test
