// Tasks: start, completion, exceptions and destruction.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/loop/hooks.h>
#include <tambour/task/combinators.h>
#include <tambour/task/event.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>
#include <tambour/task/task.h>

#include "support/files.h"
#include "support/on_every_backend.h"

namespace tambour::tasks_test {
namespace {

using namespace std::chrono_literals;

class Tasks : public test::OnEveryBackend {
 public:
  using OnEveryBackend::loop;

  std::vector<std::string> log;

  Task<int> number(int value) {
    log.push_back("number " + std::to_string(value));
    co_return value;
  }
  Task<int> number_after(Duration delay, int value) {
    const Result<> slept = co_await sleep_for(delay);
    log.push_back(std::to_string(value) + (slept ? "" : " " + slept.error().message()));
    co_return value;
  }
  /// Tasks end in the order of their times, however late a busy machine starts them.
  Task<int> number_at(TimePoint time, int value) {
    EXPECT_TRUE(co_await sleep_until(time));
    log.push_back(std::to_string(value));
    co_return value;
  }
  static Task<int> thrower(Duration delay) {
    co_await sleep_for(delay);
    throw std::runtime_error("thrown");
  }
};

TAMBOUR_ON_EVERY_BACKEND(Tasks);

/// Reports its destruction.
class Witness {
 public:
  explicit Witness(bool& destroyed) : destroyed_(&destroyed) {}
  Witness(Witness&& other) noexcept : destroyed_(std::exchange(other.destroyed_, nullptr)) {}
  Witness& operator=(Witness&&) = delete;
  ~Witness() {
    if (destroyed_ != nullptr) *destroyed_ = true;
  }

 private:
  bool* destroyed_;
};

TEST_P(Tasks, does_nothing_until_it_is_awaited) {
  Task<int> task = number(1);
  EXPECT_TRUE(log.empty());
  spawn(loop(), [](Task<int> awaited, std::vector<std::string>& said) -> Task<> {
    const int value = co_await std::move(awaited);
    said.push_back("awaited " + std::to_string(value));
  }(std::move(task), log));
  // None of these tasks suspends.
  EXPECT_EQ(log, (std::vector<std::string>{"number 1", "awaited 1"}));
  EXPECT_TRUE(detail::tasks_of(loop()).empty());
}

TEST_P(Tasks, returns_references_and_move_only_values) {
  int there = 1;
  auto refer = [](int& value) -> Task<int&> { co_return value; };
  auto move = [](int value) -> Task<std::unique_ptr<int>> {
    co_return std::make_unique<int>(value);
  };
  spawn(loop(), [](auto first, auto second, int& same) -> Task<> {
    int& value = co_await first(same);
    EXPECT_EQ(&value, &same);
    const auto moved = co_await second(7);
    EXPECT_EQ(*moved, 7);
  }(refer, move, there));
  EXPECT_TRUE(detail::tasks_of(loop()).empty());
}

TEST_P(Tasks, a_long_chain_of_tasks_that_end_at_once_does_not_grow_the_stack) {
  constexpr int steps = 1'000'000;
  long sum = 0;
  spawn(loop(), [](long& total) -> Task<> {
    auto one = []() -> Task<int> { co_return 1; };
    for (int i = 0; i < steps; ++i) total += co_await one();
  }(sum));
  EXPECT_EQ(sum, steps);
}

TEST_P(Tasks, an_exception_reaches_the_awaiting_task) {
  spawn(loop(), [](std::vector<std::string>& said) -> Task<> {
    try {
      co_await thrower(1ms);
    } catch (const std::runtime_error& thrown) {
      said.emplace_back(thrown.what());
    }
  }(log));
  loop().run();
  EXPECT_EQ(log, std::vector<std::string>{"thrown"});
}

TEST_P(Tasks, an_exception_of_a_spawned_task_leaves_run) {
  spawn(loop(), thrower(1ms));
  spawn(loop(), number_after(2ms, 2));
  EXPECT_THROW(loop().run(), std::runtime_error);
  // The other tasks continue.
  loop().run();
  EXPECT_EQ(log, std::vector<std::string>{"2"});
}

TEST_P(Tasks, an_exception_leaves_a_run_that_is_stopped_in_the_same_iteration) {
  const auto stop_and_throw = [](EventLoop& stopped) -> Task<> {
    co_await sleep_for(1ms);
    stopped.stop();
    throw std::runtime_error("thrown");
  };
  spawn(loop(), stop_and_throw(loop()));
  EXPECT_THROW(loop().run(), std::runtime_error);
  spawn(loop(), stop_and_throw(loop()));
  EXPECT_THROW(loop().run_once(), std::runtime_error);
  loop().run();
  // Two exceptions: neither is lost.
  for (int i = 0; i < 2; ++i) {
    loop().post([this] {
      loop().stop();
      spawn(loop(), []() -> Task<> {
        throw std::runtime_error("thrown");
        co_return;
      }());
    });
  }
  for (int i = 0; i < 2; ++i) EXPECT_THROW(loop().run(), std::runtime_error);
  loop().run();
}

TEST_P(Tasks, destroying_a_task_destroys_the_task_that_it_awaits) {
  bool destroyed = false;
  {
    TaskScope scope(loop());
    scope.spawn([](Witness witness) -> Task<> {
      co_await sleep_for(1h);
      ADD_FAILURE() << "the wait must not last for an hour";
      static_cast<void>(witness);
    }(Witness(destroyed)));
    loop().run_ready();
    EXPECT_FALSE(destroyed);
    EXPECT_EQ(loop().stats().timers, 1U);
  }
  EXPECT_TRUE(destroyed);
  EXPECT_EQ(loop().stats().timers, 0U);
  loop().run();
}

TEST_P(Tasks, the_loop_destroys_its_remaining_tasks) {
  bool destroyed = false;
  {
    EventLoop other(options());
    spawn(other, [](Witness witness) -> Task<> {
      co_await sleep_for(1h);
      static_cast<void>(witness);
    }(Witness(destroyed)));
    other.run_ready();
    EXPECT_FALSE(destroyed);
  }
  EXPECT_TRUE(destroyed);
}

/// Spawns another task in its destructor, up to `times` times.
class Spawner {
 public:
  Spawner(EventLoop& loop, int times, bool& destroyed)
      : loop_(&loop), times_(times), destroyed_(&destroyed) {}
  Spawner(Spawner&& other) noexcept
      : loop_(std::exchange(other.loop_, nullptr)),
        times_(other.times_),
        destroyed_(other.destroyed_) {}
  Spawner& operator=(Spawner&&) = delete;
  ~Spawner() {
    if (loop_ == nullptr) return;
    if (times_ == 0) {
      *destroyed_ = true;
    } else {
      spawn(*loop_, wait_with(Spawner(*loop_, times_ - 1, *destroyed_)));
    }
  }

  static Task<> wait_with(Spawner spawner) {
    co_await sleep_for(1h);
    static_cast<void>(spawner);
  }

 private:
  EventLoop* loop_;
  int times_;
  bool* destroyed_;
};

TEST_P(Tasks, the_loop_destroys_tasks_spawned_during_its_destruction) {
  bool destroyed = false;
  bool destroyed_by_hook = false;
  std::optional<CleanupHook> hook;  // Exists when the loop is destroyed.
  {
    EventLoop other(options());
    spawn(other, Spawner::wait_with(Spawner(other, 3, destroyed)));
    hook.emplace(other,
                 [&] { spawn(other, Spawner::wait_with(Spawner(other, 1, destroyed_by_hook))); });
    hook->start();
  }
  EXPECT_TRUE(destroyed);
  EXPECT_TRUE(destroyed_by_hook);
}

TEST_P(Tasks, a_task_that_is_never_awaited_is_only_destroyed) {
  bool destroyed = false;
  {
    const auto task = [](Witness witness) -> Task<> {
      ADD_FAILURE() << "the task is never awaited";
      static_cast<void>(witness);
      co_return;
    }(Witness(destroyed));
    EXPECT_TRUE(bool(task));
  }
  EXPECT_TRUE(destroyed);
}

TEST_P(Tasks, a_scope_waits_for_all_of_its_tasks) {
  spawn(loop(), [](Tasks& self) -> Task<> {
    TaskScope scope(self.loop());
    const TimePoint now = self.loop().now();
    for (int i = 3; i > 0; --i) scope.spawn(self.number_at(now + i * 2ms, i));
    EXPECT_EQ(scope.size(), 3U);
    co_await scope.join();
    self.log.emplace_back("joined");
    co_await scope.join();
  }(*this));
  loop().run();
  EXPECT_EQ(log, (std::vector<std::string>{"1", "2", "3", "joined"}));
}

TEST_P(Tasks, a_scope_stops_its_other_tasks_if_one_throws) {
  spawn(loop(), [](Tasks& self) -> Task<> {
    TaskScope scope(self.loop());
    scope.spawn(self.number_after(1h, 1));
    scope.spawn(thrower(1ms));
    scope.spawn(self.number_after(2h, 2));
    try {
      co_await scope.join();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error&) {
      self.log.emplace_back("caught");
    }
    EXPECT_TRUE(scope.empty());
  }(*this));
  loop().run();
  const std::string cancelled = " " + system_error(ECANCELED).message();
  EXPECT_EQ(log.back(), "caught");
  std::ranges::sort(log);  // The order of stop requests is unspecified.
  EXPECT_EQ(log, (std::vector<std::string>{"1" + cancelled, "2" + cancelled, "caught"}));
}

Task<> join_and_log(TaskScope& scope, std::vector<std::string>& log, const char* text) {
  try {
    co_await scope.join();
    log.emplace_back(text);
  } catch (const std::runtime_error& thrown) {
    log.push_back(std::string(text) + ": " + thrown.what());
  }
}

/// The scope belongs to a session, which lives as long as any of its tasks.
TEST_P(Tasks, the_last_task_may_own_its_scope) {
  struct Session : std::enable_shared_from_this<Session> {
    explicit Session(EventLoop& loop, bool& destroyed) : witness(destroyed), scope(loop) {}
    static Task<> serve(std::shared_ptr<Session> self, Duration time, bool throws) {
      co_await sleep_for(time);
      if (throws) throw std::runtime_error("thrown");
      static_cast<void>(self);
    }
    Witness witness;
    TaskScope scope;
  };
  for (const bool throws : {false, true}) {
    for (const Duration time : {Duration(0ms), Duration(2ms)}) {
      bool destroyed = false;
      int reported = 0;
      {
        auto session = std::make_shared<Session>(loop(), destroyed);
        session->scope.set_exception_handler(
            [&reported](const std::exception_ptr&) { ++reported; });
        session->scope.spawn(Session::serve(session, 1ms, false));
        session->scope.spawn(Session::serve(session, time, throws));
      }
      EXPECT_FALSE(destroyed);
      loop().run();
      EXPECT_TRUE(destroyed);
      EXPECT_EQ(reported, throws ? 1 : 0);
    }
  }
}

TEST_P(Tasks, a_task_that_joins_may_be_destroyed) {
  TaskScope scope(loop());
  scope.spawn(number_after(5ms, 1));
  {
    TaskScope waiting(loop());
    waiting.spawn(join_and_log(scope, log, "joined"));
  }
  loop().run();
  EXPECT_EQ(log, std::vector<std::string>{"1"});
  EXPECT_TRUE(scope.empty());
}

TEST_P(Tasks, several_tasks_may_join) {
  auto scope = std::make_unique<TaskScope>(loop());
  scope->spawn(thrower(5ms));
  for (const char* name : {"first", "second", "third"})
    spawn(loop(), join_and_log(*scope, log, name));
  loop().run();
  EXPECT_EQ(log, (std::vector<std::string>{"first: thrown", "second", "third"}));
}

TEST_P(Tasks, the_first_joined_task_may_destroy_the_others_and_the_scope) {
  auto scope = std::make_unique<TaskScope>(loop());
  auto others = std::make_unique<TaskScope>(loop());
  scope->spawn(number_after(5ms, 1));
  spawn(loop(), [](std::unique_ptr<TaskScope>& joined, std::unique_ptr<TaskScope>& all) -> Task<> {
    co_await joined->join();
    all.reset();
    joined.reset();
  }(scope, others));
  for (int i = 0; i < 2; ++i) others->spawn(join_and_log(*scope, log, "joined"));
  loop().run();
  EXPECT_EQ(scope, nullptr);
  EXPECT_EQ(log, std::vector<std::string>{"1"});
}

TEST_P(Tasks, a_wait_for_an_event_that_was_set_succeeds_despite_reset_and_stop) {
  TaskEvent event(loop());
  TaskScope scope(loop());
  std::vector<Error> ends;
  scope.spawn([](TaskEvent& awaited, std::vector<Error>& all) -> Task<> {
    const Result<> waited = co_await awaited.wait();
    all.push_back(waited ? Error() : waited.error());
  }(event, ends));
  event.set();
  event.reset();
  scope.request_stop();
  loop().run_ready();
  EXPECT_EQ(ends, std::vector<Error>{Error()});
}

TEST_P(Tasks, stopping_reaches_the_innermost_wait) {
  TaskScope scope(loop());
  scope.spawn([](Tasks& self) -> Task<> {
    const int value = co_await self.number_after(1h, 5);
    EXPECT_EQ(value, 5);
    const TaskContext& context = co_await this_task;
    EXPECT_EQ(context.loop, &self.loop());
    EXPECT_TRUE(context.stop.stop_requested());
    // If the task continues, each further wait fails in the same way.
    EXPECT_FALSE(co_await sleep_for(1h));
    self.log.emplace_back("ended");
  }(*this));
  loop().run_ready();
  scope.request_stop();
  // Not from inside the call.
  EXPECT_TRUE(log.empty());
  loop().run();
  EXPECT_EQ(log.size(), 2U);
  EXPECT_TRUE(scope.empty());
}

/// A wait lives until the end of its full expression, in which the task may await something else.
TEST_P(Tasks, a_completed_wait_does_not_receive_a_stop_request) {
  TaskScope scope(loop());
  test::Ends ends = test::open_pipe();
  test::write_to(ends.far);
  TaskEvent event(loop());
  scope.spawn([](Tasks& self, int fd, TaskEvent& set) -> Task<> {
    const std::array<bool, 4> waited{
        (co_await sleep_for(0ms)).has_value(), (co_await wait_ready(fd, Events::read)).has_value(),
        (co_await set.wait()).has_value(), co_await self.number_after(1h, 1) == 1};
    if (waited[3]) self.log.emplace_back("ended");
  }(*this, ends.near.get(), event));
  for (int i = 0; i < 3; ++i) loop().run_once();
  event.set();
  loop().run_ready();
  scope.request_stop();
  loop().run();
  ASSERT_EQ(log.size(), 2U);
  EXPECT_EQ(log[0], "1 " + system_error(ECANCELED).message());
  EXPECT_EQ(log[1], "ended");
  EXPECT_TRUE(scope.empty());
}

TEST_P(Tasks, a_scope_inside_a_task_is_stopped_with_it) {
  TaskScope outer(loop());
  outer.spawn([](Tasks& self) -> Task<> {
    const TaskContext& context = co_await this_task;
    TaskScope inner(self.loop(), context.stop);
    inner.spawn(self.number_after(1h, 1));
    co_await inner.shut_down(1h);
  }(*this));
  loop().run_ready();
  outer.request_stop();
  loop().run();
  EXPECT_EQ(log.size(), 1U);
}

TEST_P(Tasks, when_all_returns_results_in_order) {
  spawn(loop(), [](Tasks& self) -> Task<> {
    auto nothing = []() -> Task<> { co_return; };
    const TimePoint now = self.loop().now();
    const auto [first, second, third] =
        co_await when_all(self.number_at(now + 4ms, 1), self.number_at(now + 1ms, 2), nothing());
    EXPECT_EQ(first, 1);
    EXPECT_EQ(second, 2);
    EXPECT_EQ(third, std::monostate());
    const auto [at_once] = co_await when_all(self.number(3));
    EXPECT_EQ(at_once, 3);
  }(*this));
  loop().run();
  EXPECT_EQ(log, (std::vector<std::string>{"2", "1", "number 3"}));
}

TEST_P(Tasks, when_all_stops_the_others_if_one_throws) {
  spawn(loop(), [](Tasks& self) -> Task<> {
    try {
      co_await when_all(self.number_after(1h, 1), thrower(0ms), self.number_after(1h, 2));
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error&) {
      self.log.emplace_back("caught");
    }
  }(*this));
  loop().run();
  EXPECT_EQ(log.size(), 3U);
  EXPECT_EQ(log.back(), "caught");
}

TEST_P(Tasks, when_any_stops_the_others_after_the_first_result) {
  spawn(loop(), [](Tasks& self) -> Task<> {
    const auto first =
        co_await when_any(self.number_after(1h, 1), self.number_after(1ms, 2), thrower(1h));
    EXPECT_EQ(first.index(), 1U);
    EXPECT_EQ(std::get<1>(first), 2);
  }(*this));
  loop().run();
  EXPECT_EQ(log.size(), 2U);
  EXPECT_EQ(log.front(), "2");
}

TEST_P(Tasks, a_combination_decided_at_once_starts_no_other_tasks) {
  spawn(loop(), [](Tasks& self) -> Task<> {
    const auto first = co_await when_any(self.number(1), self.number(2));
    EXPECT_EQ(first.index(), 0U);
    auto thrown = []() -> Task<> {
      throw std::runtime_error("at once");
      co_return;
    };
    try {
      co_await when_all(thrown(), self.number(3));
    } catch (const std::runtime_error&) {
      self.log.push_back("caught");
    }
  }(*this));
  loop().run();
  EXPECT_EQ(log, (std::vector<std::string>{"number 1", "caught"}));
}

TEST_P(Tasks, a_stopped_timeout_returns_the_result_of_its_task) {
  std::vector<int> got;
  std::vector<Error> errors;
  // After its sleep was stopped, the task takes longer to end.
  auto run = [](Tasks& self, std::vector<int>& values) -> Task<> {
    const Result<int> value = co_await timeout(1h, [](Tasks& local) -> Task<int> {
      static_cast<void>(co_await sleep_for(1h));
      TaskScope unstoppable(local.loop());
      unstoppable.spawn(local.number_after(1ms, 42));
      co_await unstoppable.join();
      co_return 42;
    }(self));
    EXPECT_TRUE(value);
    if (value) values.push_back(*value);
  };
  auto run_void = [](Tasks& self, std::vector<Error>& ends) -> Task<> {
    const Result<> ended = co_await timeout(1h, [](Tasks& tasks) -> Task<> {
      static_cast<void>(co_await tasks.number_after(1h, 1));
      TaskScope unstoppable(tasks.loop());
      unstoppable.spawn(tasks.number_after(1ms, 2));
      co_await unstoppable.join();
    }(self));
    ends.push_back(ended ? Error() : ended.error());
  };
  TaskScope scope(loop());
  scope.spawn(run(*this, got));
  scope.spawn(run_void(*this, errors));
  loop().run_ready();
  scope.request_stop();
  loop().run();
  EXPECT_EQ(got, std::vector<int>{42});
  EXPECT_EQ(errors, std::vector<Error>{system_error(ECANCELED)});
}

TEST_P(Tasks, a_timeout_distinguishes_result_expiry_and_stop) {
  std::vector<Error> errors;
  auto run = [](Tasks& self, Duration limit, Duration needed, std::vector<Error>& ends) -> Task<> {
    const Result<int> got = co_await timeout(limit, self.number_after(needed, 1));
    ends.push_back(got ? Error() : got.error());
  };
  spawn(loop(), run(*this, 1h, 1ms, errors));
  loop().run();
  spawn(loop(), run(*this, 1ms, 1h, errors));
  loop().run();
  {
    TaskScope scope(loop());
    scope.spawn([](Tasks&, std::vector<Error>& ends) -> Task<> {
      const Result<> slept =
          co_await timeout(1h, []() -> Task<Result<>> { co_return co_await sleep_for(2h); }());
      ends.push_back(slept.error());
    }(*this, errors));
    loop().run_ready();
    scope.request_stop();
    loop().run();
  }
  EXPECT_EQ(errors,
            (std::vector<Error>{Error(), system_error(ETIMEDOUT), system_error(ECANCELED)}));
}

TEST_P(Tasks, waits_for_a_descriptor) {
  spawn(loop(), [](Tasks& self) -> Task<> {
    test::Ends ends = test::open_pipe();
    const Result<Events> early = co_await timeout(1ms, [](int fd) -> Task<Result<Events>> {
      co_return co_await wait_ready(fd, Events::read);
    }(ends.near.get()));
    EXPECT_EQ(early.error(), system_error(ETIMEDOUT));
    test::write_to(ends.far);
    const Result<Events> events = co_await wait_ready(ends.near.get(), Events::read);
    EXPECT_TRUE(events && has(*events, Events::read));
    EXPECT_EQ((co_await wait_ready(-1, Events::read)).error(), system_error(EBADF));
    self.log.emplace_back("done");
  }(*this));
  loop().run();
  EXPECT_EQ(log, std::vector<std::string>{"done"});
}

TEST_P(Tasks, a_stopped_task_no_longer_waits_for_its_descriptor) {
  test::Ends ends = test::open_pipe();
  TaskScope scope(loop());
  Error error;
  scope.spawn([](int fd, Error& reported) -> Task<> {
    reported = (co_await wait_ready(fd, Events::read)).error();
    // Again, after the stop.
    EXPECT_EQ((co_await wait_ready(fd, Events::read)).error(), system_error(ECANCELED));
  }(ends.near.get(), error));
  loop().run_ready();
  scope.request_stop();
  // Even if it is ready by then.
  test::write_to(ends.far);
  EXPECT_FALSE(scope.empty());
  loop().run();
  EXPECT_TRUE(scope.empty());
  EXPECT_EQ(error, system_error(ECANCELED));
}

}  // namespace
}  // namespace tambour::tasks_test
