// Handles may be destroyed anywhere, in particular in callbacks; no callback is invoked afterwards.
// The captures of a closure live while it runs and are freed by the end of the iteration.
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"
#include "support/random.h"
#include "support/scale.h"

namespace tambour::destruction_test {
namespace {

using namespace std::chrono_literals;

class Destruction : public test::OnEveryBackend {
 protected:
  test::Ends pipe = test::open_pipe();
  int calls = 0;
};

TAMBOUR_ON_EVERY_BACKEND(Destruction);

TEST_P(Destruction, a_destroyed_watcher_is_not_called) {
  {
    FdWatcher watcher(loop(), pipe.near.get(), Events::read, [this](Events) { ++calls; });
    ASSERT_TRUE(watcher.start());
    test::write_to(pipe.far);
  }
  run_iterations();
  EXPECT_EQ(calls, 0);
  loop().run();
}

TEST_P(Destruction, a_watcher_with_a_closure_on_the_heap_destroys_itself) {
  const auto token = std::make_shared<int>(7);
  std::optional<FdWatcher> watcher;
  watcher.emplace(loop(), pipe.near.get(), Events::read, [&watcher, this, token](Events) {
    ++calls;
    watcher.reset();
    EXPECT_EQ(token.use_count(), 2) << "the closure was freed while it ran";
    EXPECT_EQ(*token, 7);
  });
  ASSERT_TRUE(watcher->start());
  test::write_to(pipe.far);
  run_iterations(1);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(token.use_count(), 1) << "the closure outlived the iteration";
}

TEST_P(Destruction, a_watcher_with_a_small_closure_destroys_itself) {
  auto watcher = std::make_unique<std::optional<FdWatcher>>();
  watcher->emplace(loop(), pipe.near.get(), Events::read, [this, &watcher](Events) {
    watcher.reset();
    ++calls;
  });
  ASSERT_TRUE((*watcher)->start());
  test::write_to(pipe.far);
  run_iterations();
  EXPECT_EQ(calls, 1);
}

TEST_P(Destruction, timers_destroy_themselves) {
  const auto token = std::make_shared<int>(7);
  for (const auto interval : {0ms, 1ms}) {
    std::optional<Timer> timer;
    timer.emplace(loop(), [&timer, this, token] {
      ++calls;
      timer.reset();
      EXPECT_EQ(*token, 7);
    });
    timer->start(0ms, interval);
    loop().run();
    EXPECT_EQ(token.use_count(), 1);
  }
  EXPECT_EQ(calls, 2);
}

// All are due in one iteration, and each callback destroys its neighbours.
TEST_P(Destruction, watchers_destroy_each_other) {
  constexpr std::size_t count = 64;
  std::vector<std::optional<FdWatcher>> watchers(count);
  std::vector<bool> alive(count, true);
  for (std::size_t i = 0; i < count; ++i) {
    watchers[i].emplace(loop(), pipe.near.get(), Events::read, [&, i](Events) {
      EXPECT_TRUE(alive[i]) << i << " was called after it was destroyed";
      ++calls;
      // Either neighbour may be dispatched next.
      for (const std::size_t victim : {(i + 1) % count, (i + count - 1) % count}) {
        watchers[victim].reset();
        alive[victim] = false;
      }
    });
    ASSERT_TRUE(watchers[i]->start());
  }
  test::write_to(pipe.far);
  run_iterations(1);
  EXPECT_GE(calls, 1);
  EXPECT_LE(calls, static_cast<int>(count) / 2);
  run_iterations(3);
}

TEST_P(Destruction, the_first_invoked_callback_destroys_all_handles) {
  std::vector<std::unique_ptr<FdWatcher>> watchers;
  std::vector<std::unique_ptr<Timer>> timers;
  const auto token = std::make_shared<int>(7);
  const auto destroy_all = [&, token] {
    ++calls;
    watchers.clear();
    timers.clear();
    EXPECT_EQ(*token, 7);
  };
  for (int i = 0; i < 50; ++i) {
    watchers.push_back(std::make_unique<FdWatcher>(loop(), pipe.near.get(), Events::read,
                                                   [destroy_all](Events) { destroy_all(); }));
    ASSERT_TRUE(watchers.back()->start());
    timers.push_back(std::make_unique<Timer>(loop(), destroy_all));
    timers.back()->start(0ms);
  }
  test::write_to(pipe.far);
  loop().run();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(token.use_count(), 2) << "only this function's copy is left";
}

TEST_P(Destruction, timers_destroy_each_other) {
  constexpr std::size_t count = 64;
  std::vector<std::optional<Timer>> timers(count);
  for (std::size_t i = 0; i < count; ++i) {
    timers[i].emplace(loop(), [&, i] {
      ++calls;
      timers[(i + 1) % count].reset();
      timers[(i + count - 1) % count].reset();
    });
    timers[i]->start(0ms);
  }
  loop().run();
  EXPECT_GE(calls, 1);
  EXPECT_LE(calls, static_cast<int>(count) / 2);
}

TEST_P(Destruction, a_closure_may_own_its_own_watcher) {
  const auto token = std::make_shared<int>();
  {
    auto owner = std::make_shared<std::optional<FdWatcher>>();
    owner->emplace(loop(), pipe.near.get(), Events::read, [owner, token, this](Events) {
      ++calls;
      owner->reset();
    });
    ASSERT_TRUE((*owner)->start());
  }
  test::write_to(pipe.far);
  run_iterations();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(Destruction, a_closure_that_is_freed_may_own_another_watcher) {
  const auto token = std::make_shared<int>();
  auto inner = std::make_shared<FdWatcher>(loop(), pipe.near.get(), Events::read,
                                           [token](Events) { FAIL(); });
  std::optional<FdWatcher> outer;
  outer.emplace(loop(), pipe.far.get(), Events::write, [&outer, inner, this](Events) {
    ++calls;
    outer.reset();
  });
  ASSERT_TRUE(inner->start());
  inner.reset();
  ASSERT_TRUE(outer->start());
  run_iterations();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(Destruction, closures_are_freed_at_once_outside_callbacks) {
  const auto token = std::make_shared<int>();
  {
    FdWatcher watcher(loop(), pipe.near.get(), Events::read, [token](Events) {});
    watcher.set_function([token](Events) {});
    EXPECT_EQ(token.use_count(), 2);
  }
  EXPECT_EQ(token.use_count(), 1);
}

// A stress test without a model: each callback destroys, creates, starts and stops others at
// random.
TEST_P(Destruction, callbacks_create_start_stop_and_destroy_random_handles) {
  TAMBOUR_TRACE_SEED();
  test::Random random;
  struct Handles {
    std::optional<FdWatcher> watcher;
    std::optional<Timer> timer;
  };
  std::vector<test::Ends> pipes;
  for (int i = 0; i < 8; ++i) {
    pipes.push_back(test::open_pipe());
    test::write_to(pipes.back().far);
  }
  std::vector<Handles> all(40);
  std::size_t steps = 0;
  std::function<void()> change_random_handles = [&] {
    ++calls;
    for (int i = 0; i < 3; ++i, ++steps) {
      Handles& chosen = all[random.below(all.size())];
      const auto token = std::make_shared<int>(7);
      const auto& ends = pipes[random.below(pipes.size())];
      const auto call = [&change_random_handles, token] {
        change_random_handles();
        EXPECT_EQ(*token, 7);
      };
      switch (random.below(5)) {
        case 0:
          chosen.watcher.emplace(loop(), ends.near.get(), Events::read, [call](Events) { call(); });
          ASSERT_TRUE(chosen.watcher->start());
          break;
        case 1:
          chosen.timer.emplace(loop(), call);
          chosen.timer->start(std::chrono::microseconds(random.below(50)));
          break;
        case 2:
          chosen.watcher.reset();
          break;
        case 3:
          std::swap(chosen, all[random.below(all.size())]);
          break;
        default:
          if (chosen.watcher) chosen.watcher->set(ends.near.get(), Events::read);
      }
    }
  };
  while (steps < test::scaled(50'000)) {
    change_random_handles();
    run_iterations(1);
  }
  EXPECT_GT(calls, 100);
}

}  // namespace
}  // namespace tambour::destruction_test
