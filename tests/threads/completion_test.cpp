// from_callback(): completions from callbacks and threads, exactly once; stops, and tasks and loops
// that end first.
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

namespace tambour::completion_test {
namespace {

using namespace std::chrono_literals;

const Error cancelled = system_error(ECANCELED);

class Completions : public test::OnEveryBackend {
 public:
  /// An operation of a callback API that has not completed.
  std::optional<Completion<int>> pending;

  /// Keeps the Completion as an API would.
  auto keep() {
    return from_callback<int>([this](Completion<int> done) { pending.emplace(std::move(done)); });
  }
  Task<> wait_for_pending(std::vector<Result<int>>& results) { results.push_back(co_await keep()); }
};

TAMBOUR_ON_EVERY_BACKEND(Completions);

TEST_P(Completions, callbacks_resume_the_task) {
  run([](EventLoop& loop) -> Task<> {
    // Within the call, in a later callback, and by a function that can be copied.
    auto at_once = [](Completion<int> done) { EXPECT_TRUE(done.complete(1)); };
    EXPECT_EQ(co_await from_callback<int>(at_once), Result<int>(1));
    std::function<void(int)> callback;
    auto later = [&](Completion<int> done) {
      callback = [done](int value) { done.complete(value); };
      loop.post([&] { callback(2); });
    };
    EXPECT_EQ(co_await from_callback<int>(later), Result<int>(2));
    auto nothing = [](Completion<> done) { EXPECT_TRUE(done.complete()); };
    EXPECT_TRUE(co_await from_callback<void>(nothing));
    auto owned = [](Completion<std::unique_ptr<int>> done) {
      EXPECT_TRUE(done.complete(std::make_unique<int>(3)));
    };
    auto pointer = co_await from_callback<std::unique_ptr<int>>(owned);
    EXPECT_EQ(**pointer, 3);
    // A Result is not wrapped again.
    auto failed = [](Completion<Result<int>> done) {
      EXPECT_TRUE(done.complete(std::unexpected(system_error(EIO))));
    };
    const Result<int> result = co_await from_callback<Result<int>>(failed);
    EXPECT_EQ(result.error(), system_error(EIO));
  }(loop()));
}

TEST_P(Completions, threads_resume_the_task_on_its_loop) {
  run([]() -> Task<> {
    const auto home = std::this_thread::get_id();
    for (int i = 0; i < 100; ++i) {
      std::thread other;
      auto start = [&other, i](Completion<std::string> done) {
        other = std::thread([done = std::move(done), i] {
          EXPECT_TRUE(
              done.complete("a string that is not inside the object: " + std::to_string(i)));
          EXPECT_FALSE(done.complete("twice"));
        });
      };
      const Result<std::string> text = co_await from_callback<std::string>(start);
      EXPECT_TRUE(text->ends_with(": " + std::to_string(i)));
      EXPECT_EQ(std::this_thread::get_id(), home);
      other.join();
    }
  }());
}

TEST_P(Completions, the_first_completion_counts) {
  run([]() -> Task<> {
    std::atomic<int> won = 0;
    std::vector<std::thread> threads;
    auto start = [&](const Completion<int>& done) {
      for (int i = 0; i < 4; ++i) {
        threads.emplace_back([done, i, &won] {
          if (done.complete(i)) ++won;
          EXPECT_TRUE(done.is_completed());
        });
      }
    };
    EXPECT_TRUE(co_await from_callback<int>(start));
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(won, 1);
  }());
}

TEST_P(Completions, errors_and_exceptions_reach_the_task) {
  run([]() -> Task<> {
    auto fail = [](const Completion<int>& done) { EXPECT_TRUE(done.fail(system_error(EIO))); };
    EXPECT_EQ((co_await from_callback<int>(fail)).error(), system_error(EIO));
    auto throw_in = [](const Completion<int>& done) {
      done.fail(std::make_exception_ptr(std::runtime_error("failed")));
    };
    EXPECT_THROW(static_cast<void>(co_await from_callback<int>(throw_in)), std::runtime_error);
    // The function itself throws, before and after a completion.
    auto throws = [](const Completion<int>&) { throw std::logic_error("not started"); };
    EXPECT_THROW(static_cast<void>(co_await from_callback<int>(throws)), std::logic_error);
    auto both = [](const Completion<int>& done) {
      EXPECT_TRUE(done.complete(1));
      throw std::logic_error("not started");
    };
    EXPECT_THROW(static_cast<void>(co_await from_callback<int>(both)), std::logic_error);
    // Moving the value throws.
    struct Throws {
      Throws() = default;
      Throws(Throws&&) { throw std::runtime_error("moved"); }  // NOLINT(*-noexcept-move*)
      Throws& operator=(Throws&&) = delete;
      ~Throws() = default;
    };
    auto move = [](const Completion<Throws>& done) { EXPECT_TRUE(done.complete(Throws())); };
    EXPECT_THROW(static_cast<void>(co_await from_callback<Throws>(move)), std::runtime_error);
  }());
}

TEST_P(Completions, dropping_the_last_one_fails_the_wait) {
  run([]() -> Task<> {
    auto forget = [](const Completion<int>&) {};
    EXPECT_EQ((co_await from_callback<int>(forget)).error(), cancelled);
    std::thread other;
    auto drop_on_thread = [&other](Completion<int> done) {
      other = std::thread([copy = done, done]() mutable {
        {
          const Completion<int> last = std::move(copy);
        }
      });
    };
    EXPECT_EQ((co_await from_callback<int>(drop_on_thread)).error(), cancelled);
    other.join();
  }());
}

TEST_P(Completions, a_pointer_can_carry_it_through_a_c_interface) {
  run([](EventLoop& loop) -> Task<> {
    void* user_data = nullptr;
    auto start = [&](Completion<int> done) {
      user_data = std::move(done).release();
      loop.post([&] { Completion<int>::adopt(user_data).complete(4); });
    };
    EXPECT_EQ(co_await from_callback<int>(start), Result<int>(4));
  }(loop()));
}

TEST_P(Completions, a_stop_request_ends_the_wait_at_once_without_a_handler) {
  TaskScope scope(loop());
  std::vector<Result<int>> results;
  scope.spawn(wait_for_pending(results));
  run_iterations();
  EXPECT_FALSE(pending->is_completed());
  scope.request_stop();
  EXPECT_TRUE(results.empty()) << "never from inside request_stop()";
  EXPECT_FALSE(pending->complete(1)) << "too late";
  loop().run();
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].error(), cancelled);
  // After a stop, the function is not invoked.
  pending.reset();
  scope.spawn(wait_for_pending(results));
  loop().run();
  EXPECT_FALSE(pending.has_value());
  EXPECT_EQ(results.size(), 2U);
  EXPECT_EQ(results[1].error(), cancelled);
}

TEST_P(Completions, a_time_limit_ends_the_wait) {
  run([](Completions& test) -> Task<> {
    EXPECT_EQ((co_await timeout(1ms, test.keep())).error(), system_error(ETIMEDOUT));
    EXPECT_FALSE(test.pending->complete(1));
    // A completion that was sent before the stop is not lost.
    const auto first = co_await when_any(test.keep(), [&] {
      EXPECT_TRUE(test.pending->complete(2));
      return as_task(sleep_for(0s));
    });
    EXPECT_TRUE(first.index() == 1 || std::get<0>(first) == Result<int>(2));
    test.pending.reset();
  }(*this));
}

TEST_P(Completions, a_stop_handler_cancels_the_operation) {
  run([](EventLoop& loop) -> Task<> {
    // It ends the wait.
    int stops = 0;
    auto start = [&](const Completion<int>& done) {
      done.on_stop([&stops](const Completion<int>& stopped) {
        ++stops;
        EXPECT_TRUE(stopped.fail(system_error(EINTR)));
      });
      loop.post([done] {});  // Keeps it for a while.
    };
    std::optional<Completion<int>> kept;
    auto end_at_once = [&](const Completion<int>& done) {
      start(done);
      kept = done;
    };
    const auto limited = co_await timeout(1ms, from_callback<int>(end_at_once));
    EXPECT_EQ(limited.error(), system_error(ETIMEDOUT));
    EXPECT_EQ(stops, 1);
    // It asks the operation to end, which completes the wait later.
    auto end_later = [&](const Completion<int>& done) {
      kept = done;
      done.on_stop([&](const Completion<int>&) { loop.post([&] { kept->complete(5); }); });
    };
    EXPECT_EQ(co_await timeout(1ms, from_callback<int>(end_later)), Result<int>(5));
    // It is not invoked after a completion.
    auto completed = [&](const Completion<int>& done) {
      done.on_stop([&stops](const Completion<int>&) { ++stops; });
      done.complete(6);
    };
    EXPECT_EQ(co_await from_callback<int>(completed), Result<int>(6));
    EXPECT_EQ(stops, 1);
  }(loop()));
}

/// As an owner that drops its session when it learns that a query was cancelled.
TEST_P(Completions, a_stop_handler_may_destroy_the_scope) {
  auto scope = std::make_unique<TaskScope>(loop());
  TaskEvent never(loop());
  std::optional<Completion<int>> kept;
  const auto wait_for = [](TaskEvent& event) -> Task<> {
    static_cast<void>(co_await event.wait());
  };
  scope->spawn(wait_for, std::ref(never));
  scope->spawn([&]() -> Task<> {
    auto start = [&](const Completion<int>& done) {
      kept = done;
      done.on_stop([&](const Completion<int>& stopped) {
        stopped.fail(system_error(EINTR));
        scope.reset();
      });
    };
    static_cast<void>(co_await from_callback<int>(start));
  });
  scope->spawn(wait_for, std::ref(never));
  loop().post([&] { scope->request_stop(); });
  run_iterations();
  EXPECT_EQ(scope, nullptr);
}

TEST_P(Completions, a_task_that_is_destroyed_cancels_the_operation) {
  int stops = 0;
  std::optional<Completion<int>> kept;
  {
    TaskScope scope(loop());
    scope.spawn([&]() -> Task<> {
      auto start = [&](const Completion<int>& done) {
        kept = done;
        done.on_stop([&](const Completion<int>& stopped) {
          ++stops;
          EXPECT_FALSE(stopped.complete(1));
        });
      };
      static_cast<void>(co_await from_callback<int>(start));
    });
    run_iterations();
    EXPECT_EQ(stops, 0);
  }
  EXPECT_EQ(stops, 1);
  EXPECT_FALSE(kept->complete(2));
  loop().run();  // Nothing is left to wait for.
}

TEST_P(Completions, results_race_with_the_end_of_the_task) {
  for (int i = 0; i < 200; ++i) {
    std::thread other;
    std::optional<TaskScope> scope(std::in_place, loop());
    scope->spawn([&]() -> Task<> {
      auto start = [&other](Completion<std::string> done) {
        other = std::thread([done = std::move(done)] {
          static_cast<void>(done.complete("a string that is not inside the object, certainly"));
        });
      };
      static_cast<void>(co_await from_callback<std::string>(start));
    });
    if (i % 2 == 0) run_iterations(i % 5);
    if (i % 3 == 0) scope->request_stop();
    scope.reset();
    run_iterations(1);
    other.join();
  }
}

TEST_P(Completions, the_loop_may_be_destroyed_first) {
  std::vector<Result<int>> results;
  spawn(loop(), wait_for_pending(results));
  run_iterations();
  std::thread other([done = *pending] {
    std::this_thread::sleep_for(1ms);
    static_cast<void>(done.complete(1));
  });
  destroy_loop();
  other.join();
  EXPECT_FALSE(pending->complete(2));
  EXPECT_TRUE(results.empty());
}

TEST_P(Completions, a_task_may_outlive_its_loop) {
  auto scope = std::make_unique<TaskScope>(loop());
  std::vector<Result<int>> results;
  scope->spawn(wait_for_pending(results));
  destroy_loop();
  scope->request_stop();
  EXPECT_FALSE(pending->complete(2) && !results.empty());
  scope.reset();
  EXPECT_TRUE(results.empty());
}

TEST_P(Completions, a_stop_handler_that_is_set_too_late_aborts) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  std::vector<Result<int>> results;
  EXPECT_DEATH(
      {
        spawn(loop(), wait_for_pending(results));
        pending->on_stop([](const Completion<int>&) {});
      },
      "Completion::on_stop.. may be called once");
}

}  // namespace
}  // namespace tambour::completion_test
