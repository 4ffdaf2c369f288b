// TaskMutex: exclusion, order, cancellation and destruction.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"

namespace tambour::mutex_test {
namespace {

using namespace std::chrono_literals;

class Mutexes : public test::OnEveryBackend {
 public:
  std::vector<std::string> log;

  Task<> hold(TaskMutex& mutex, std::string name, Duration time) {
    auto guard = co_await mutex.lock();
    log.push_back(name + (guard ? " locked" : " " + guard.error().message()));
    if (!guard) co_return;
    co_await sleep_for(time);
    log.push_back(name + " unlocks");
  }
};

TAMBOUR_ON_EVERY_BACKEND(Mutexes);

const std::string stopped = " " + system_error(ECANCELED).message();

TEST_P(Mutexes, tasks_get_the_mutex_one_at_a_time_and_in_order) {
  TaskMutex mutex(loop());
  for (const char* name : {"a", "b", "c"}) spawn(loop(), hold(mutex, name, 1ms));
  EXPECT_TRUE(mutex.is_locked());
  loop().run();
  EXPECT_EQ(log, (std::vector<std::string>{"a locked", "a unlocks", "b locked", "b unlocks",
                                           "c locked", "c unlocks"}));
  EXPECT_FALSE(mutex.is_locked());
}

TEST_P(Mutexes, try_lock_does_not_overtake_waiting_tasks) {
  TaskMutex mutex(loop());
  std::optional<TaskMutex::Guard> guard = mutex.try_lock();
  ASSERT_TRUE(guard);
  EXPECT_FALSE(mutex.try_lock());
  spawn(loop(), hold(mutex, "a", 0ms));
  guard->unlock();
  guard->unlock();
  EXPECT_FALSE(mutex.try_lock());
  loop().run();
  guard = mutex.try_lock();
  ASSERT_TRUE(guard);
  TaskMutex::Guard moved = std::move(*guard);
  guard.reset();
  EXPECT_TRUE(mutex.is_locked());
  TaskMutex other(loop());
  moved = *other.try_lock();
  EXPECT_FALSE(mutex.is_locked());
  EXPECT_TRUE(other.is_locked());
  moved.unlock();
}

TEST_P(Mutexes, a_stopped_task_does_not_get_the_mutex) {
  TaskMutex mutex(loop());
  std::optional<TaskMutex::Guard> guard = mutex.try_lock();
  TaskScope scope(loop());
  scope.spawn(hold(mutex, "a", 0ms));
  spawn(loop(), hold(mutex, "b", 0ms));
  scope.request_stop();
  guard.reset();
  loop().run();
  EXPECT_EQ(log, (std::vector<std::string>{"a" + stopped, "b locked", "b unlocks"}));
  EXPECT_FALSE(mutex.is_locked());
}

TEST_P(Mutexes, a_time_limit_ends_the_wait) {
  run([](EventLoop& loop) -> Task<> {
    TaskMutex mutex(loop);
    {
      const auto guard = co_await mutex.lock();
      EXPECT_EQ((co_await timeout(1ms, mutex.lock())).error(), system_error(ETIMEDOUT));
    }
    EXPECT_TRUE(co_await timeout(1h, mutex.lock()));
    EXPECT_FALSE(mutex.is_locked());
  }(loop()));
}

TEST_P(Mutexes, a_task_destroyed_before_it_resumes_passes_the_mutex_on) {
  TaskMutex mutex(loop());
  std::optional<TaskMutex::Guard> guard = mutex.try_lock();
  auto scope = std::make_unique<TaskScope>(loop());
  scope->spawn(hold(mutex, "a", 0ms));
  spawn(loop(), hold(mutex, "b", 0ms));
  guard.reset();
  scope.reset();
  loop().run();
  EXPECT_EQ(log, (std::vector<std::string>{"b locked", "b unlocks"}));
  EXPECT_FALSE(mutex.is_locked());
}

TEST_P(Mutexes, destroying_the_mutex_ends_the_waits) {
  auto mutex = std::make_unique<TaskMutex>(loop());
  std::optional<TaskMutex::Guard> guard = mutex->try_lock();
  spawn(loop(), hold(*mutex, "a", 0ms));
  spawn(loop(), hold(*mutex, "b", 0ms));
  guard.reset();
  mutex.reset();
  loop().run();
  EXPECT_EQ(log, (std::vector<std::string>{"a" + stopped, "b" + stopped}));
}

TEST_P(Mutexes, may_outlive_the_loop) {
  EventLoop* const other = new EventLoop(options());
  TaskMutex mutex(*other);
  spawn(*other, hold(mutex, "a", 1h));
  spawn(*other, hold(mutex, "b", 1h));
  delete other;
  EXPECT_FALSE(mutex.is_locked());
  EXPECT_EQ(log, std::vector<std::string>{"a locked"});
}

TEST_P(Mutexes, destroying_a_locked_mutex_aborts) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        auto* const mutex = new TaskMutex(loop());
        const auto guard = mutex->try_lock();
        delete mutex;
      },
      "TaskMutex created in .*mutex_test.cpp:.* was destroyed while it was locked");
}

}  // namespace
}  // namespace tambour::mutex_test
