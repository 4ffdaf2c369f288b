// Loops are created and destroyed, several at a time, and leak nothing.
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"
#include "support/process.h"
#include "support/scale.h"

namespace tambour::lifetime_test {
namespace {

using namespace std::chrono_literals;

class Lifetime : public test::OnEveryBackend {
 protected:
  test::Ends pipe = test::open_pipe();
  int calls = 0;
};

TAMBOUR_ON_EVERY_BACKEND(Lifetime);

TEST_P(Lifetime, handles_may_outlive_their_loop_and_are_not_invoked) {
  const auto token = std::make_shared<int>();
  {
    FdWatcher watcher(loop(), pipe.near.get(), Events::read, [token](Events) { FAIL(); });
    FdWatcher stopped(loop(), pipe.near.get(), Events::read, [token](Events) { FAIL(); });
    Timer timer(loop(), [token] { FAIL(); });
    Timer repeating(loop(), [token] { FAIL(); });
    ASSERT_TRUE(watcher.start());
    timer.start(1h);
    repeating.start(1h, 1h);
    run_iterations();
    destroy_loop();
    EXPECT_FALSE(watcher.is_started());
    EXPECT_FALSE(timer.is_started());
    watcher.stop();
    timer.stop();
    FdWatcher moved(std::move(watcher));
    Timer moved_timer(std::move(timer));
    stopped = std::move(moved);
    repeating = std::move(moved_timer);
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(Lifetime, a_posted_task_that_owns_a_watcher_is_destroyed_with_its_loop) {
  const auto token = std::make_shared<int>();
  auto watcher = std::make_unique<FdWatcher>(loop(), pipe.near.get(), Events::read,
                                             [token](Events) { FAIL(); });
  auto timer = std::make_unique<Timer>(loop(), [token] { FAIL(); });
  ASSERT_TRUE(watcher->start());
  timer->start(1h);
  loop().post([watcher = std::move(watcher), timer = std::move(timer)] { FAIL(); });
  destroy_loop();
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(Lifetime, a_closure_may_own_the_last_handle_of_a_destroyed_loop) {
  const auto token = std::make_shared<int>();
  std::optional<FdWatcher> outer;
  {
    auto inner = std::make_shared<Timer>(loop(), [token] {});
    inner->start(1h);
    outer.emplace(loop(), pipe.near.get(), Events::read, [inner](Events) {});
    ASSERT_TRUE(outer->start());
  }
  destroy_loop();
  outer.reset();
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(Lifetime, ten_thousand_loops_leave_no_descriptor_behind) {
  destroy_loop();
  const std::size_t before = test::open_descriptors();
  for (std::size_t i = 0; i < test::scaled(10'000); ++i) {
    EventLoop one(options());
    FdWatcher watcher(one, pipe.near.get(), Events::read, [this](Events) { ++calls; });
    ASSERT_TRUE(watcher.start());
    if (i % 2 == 0) one.run_ready();
    Timer timer(one, [] {});
    timer.start(1h);
  }
  EXPECT_EQ(test::open_descriptors(), before);
  EXPECT_EQ(calls, 0);
}

TEST_P(Lifetime, two_loops_in_one_thread_do_not_affect_each_other) {
  EventLoop second(options());
  int second_calls = 0;
  FdWatcher watcher(loop(), pipe.near.get(), Events::read, [this](Events) { ++calls; });
  FdWatcher other(second, pipe.near.get(), Events::read, [&](Events) { ++second_calls; });
  ASSERT_TRUE(watcher.start());
  ASSERT_TRUE(other.start());
  test::write_to(pipe.far);
  run_iterations(2);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(second_calls, 0);
  second.run_ready();
  EXPECT_EQ(second_calls, 1);
  watcher.stop();
  run_iterations();
  second.run_ready();
  EXPECT_EQ(second_calls, 2);
}

TEST_P(Lifetime, one_loop_may_run_inside_the_callback_of_another) {
  EventLoop second(options());
  Timer inner(second, [this] { ++calls; });
  Timer outer(loop(), [&] {
    inner.start(1ms);
    second.run();
    EXPECT_EQ(calls, 1);
    ++calls;
  });
  outer.start(0ms);
  loop().run();
  EXPECT_EQ(calls, 2);
}

TEST_P(Lifetime, a_loop_may_be_destroyed_inside_the_callback_of_another) {
  auto second = std::make_unique<EventLoop>(options());
  FdWatcher watcher(*second, pipe.near.get(), Events::read, [this](Events) { ++calls; });
  ASSERT_TRUE(watcher.start());
  Timer timer(loop(), [&second] { second.reset(); });
  timer.start(0ms);
  loop().run();
  EXPECT_FALSE(watcher.is_started());
}

TEST_P(Lifetime, four_threads_run_a_loop_each) {
  std::atomic<int> bytes = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&bytes, this] {
      EventLoop loop(options());
      const auto ends = test::open_socketpair();
      int left = 1000;
      FdWatcher reader(loop, ends.near.get(), Events::read, [&](Events) {
        test::drain(ends.near);
        ++bytes;
        if (--left == 0) return loop.stop();
        test::write_to(ends.far);
      });
      Timer timer(loop, [] {});
      timer.start(0ms, 100us);
      if (!reader.start()) return;
      test::write_to(ends.far);
      loop.run();
    });
  }
  threads.clear();
  EXPECT_EQ(bytes, 4000);
}

TEST_P(Lifetime, open_and_the_constructor_make_the_same_loop) {
  const auto opened = EventLoop::open(options());
  ASSERT_TRUE(opened);
  EXPECT_EQ((*opened)->backend().kind, traits().kind);
  EXPECT_EQ((*opened)->backend().name, traits().name);
  EXPECT_EQ((*opened)->backend().features, traits().features);
  EXPECT_TRUE(traits().fallback_reason.empty());
  const std::string name = GetParam().name;
  EXPECT_EQ(name.substr(0, traits().name.size()), traits().name);
}

}  // namespace
}  // namespace tambour::lifetime_test
