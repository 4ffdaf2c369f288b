// The fixture of tests that use a client library in tasks.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/random.h"
#include "support/scale.h"

namespace tambour::test {

class AdapterTest : public ::testing::Test {
 protected:
  /// Runs the task to its end, for at most a minute.
  void run(Task<> task) {
    bool is_done = false;
    TaskScope scope(loop);
    scope.spawn([&]() -> Task<> {
      co_await std::move(task);
      is_done = true;
    });
    Timer limit(loop, [&] { loop.stop(); });
    limit.start(std::chrono::minutes(1));
    while (!is_done && limit.is_started()) loop.run_once();
    EXPECT_TRUE(is_done) << "the task did not end";
  }

  EventLoop loop;
};

/// How the operations of run_in_flight() have ended.
struct Outcomes {
  std::size_t done = 0;
  std::size_t failed = 0;
  std::size_t stopped = 0;  ///< By their time limit.
};

inline Error error_of(const Error& error) { return error; }

template <class Operate>
Task<> repeat_operation(Operate& operate, std::size_t count, Random* random, Outcomes& outcomes) {
  constexpr std::uint64_t limit_us_max = 2'000;
  for (std::size_t i = 0; i < count; ++i) {
    auto operation = operate();
    if (random == nullptr || random->below(2) == 0) {
      const auto result = co_await std::move(operation);
      ++(result ? outcomes.done : outcomes.failed);
      continue;
    }
    const std::chrono::microseconds limit(random->below(limit_us_max));
    const auto result = co_await timeout(limit, std::move(operation));
    const bool is_stopped = !result && error_of(result.error()) == system_error(ETIMEDOUT);
    ++(result ? outcomes.done : is_stopped ? outcomes.stopped : outcomes.failed);
  }
}

/// Performs `count` operations in each of `tasks` tasks. With `random`, half of them have a random
/// time limit of at most 2 ms.
template <class Operate>
Task<Outcomes> run_in_flight(EventLoop& loop, Operate operate, std::size_t count,
                             Random* random = nullptr, int tasks = 100) {
  Outcomes outcomes;
  TaskScope scope(loop);
  for (int i = 0; i < tasks; ++i) scope.spawn(repeat_operation(operate, count, random, outcomes));
  static_cast<void>(co_await scope.join());
  co_return outcomes;
}

/// Performs `count` operations that succeed in each of `tasks` tasks: one that fails is repeated
/// after a pause. `outcomes` shows meanwhile how many have ended. An operation that never ends
/// makes the test exceed its time limit.
template <class Operate>
Task<> run_until_done(EventLoop& loop, Operate operate, std::size_t count, Outcomes& outcomes,
                      int tasks = 100) {
  auto persist = [&]() -> Task<> {
    for (std::size_t i = 0; i < count;) {
      auto operation = operate();
      const auto result = co_await std::move(operation);
      ++(result ? outcomes.done : outcomes.failed);
      if (result)
        ++i;
      else
        static_cast<void>(co_await sleep_for(std::chrono::milliseconds(1)));
    }
  };
  TaskScope scope(loop);
  for (int i = 0; i < tasks; ++i) scope.spawn(persist());
  static_cast<void>(co_await scope.join());
}

/// Repeats a function that returns a Task<bool>, until it succeeds: a server may be starting.
template <class Attempt>
Task<bool> retry(Attempt attempt) {
  for (int i = 0; i < 12'000; ++i) {
    auto done = attempt();
    const bool is_done = co_await std::move(done);
    if (is_done) co_return true;
    static_cast<void>(co_await sleep_for(std::chrono::milliseconds(5)));
  }
  co_return false;
}

}  // namespace tambour::test
