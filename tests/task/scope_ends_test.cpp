// Destruction of scopes and events: in their context_ handlers, before their tasks, after their
// loop.
#include <chrono>
#include <coroutine>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/loop/event_loop.h>
#include <tambour/loop/timer.h>
#include <tambour/task/cancellation.h>
#include <tambour/task/combinators.h>
#include <tambour/task/event.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>
#include <tambour/task/task.h>

#include "support/files.h"

namespace tambour::scope_ends_test {
namespace {

using namespace std::chrono_literals;

class ScopeEnds : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  static Task<> throw_at_once() {
    throw std::runtime_error("thrown");
    co_return;
  }
  static Task<> throw_later() {
    static_cast<void>(co_await sleep_for(1ms));
    throw std::runtime_error("thrown");
  }
  static Task<> wait_for(TaskEvent& event, std::vector<Error>& ends) {
    const Result<> waited = co_await event.wait();
    ends.push_back(waited ? Error() : waited.error());
  }
  static Task<> sleep_long() { static_cast<void>(co_await sleep_for(1h)); }

  EventLoop loop;
};

TEST_F(ScopeEnds, an_exception_handler_may_destroy_its_scope) {
  for (const bool at_once : {true, false}) {
    auto scope = std::make_unique<TaskScope>(loop);
    const auto witness = std::make_shared<int>(0);
    scope->spawn(sleep_long());
    scope->set_exception_handler([&scope, witness](const std::exception_ptr&) {
      scope.reset();
      ++*witness;
    });
    scope->spawn(at_once ? throw_at_once() : throw_later());
    loop.run();
    EXPECT_EQ(scope, nullptr);
    EXPECT_EQ(*witness, 1);
    EXPECT_EQ(witness.use_count(), 1);
  }
}

/// The handle is in a frame that the destructor destroys.
TEST_F(ScopeEnds, an_exception_of_a_handle_in_a_destroyed_task_leaves_run) {
  auto scope = std::make_unique<TaskScope>(loop);
  int calls = 0;
  scope->set_exception_handler([&](const std::exception_ptr&) {
    ++calls;
    scope.reset();
  });
  scope->spawn([](TaskScope& of) -> Task<> {
    const JoinHandle<> failed = of.spawn(throw_at_once());
    static_cast<void>(co_await sleep_for(1h));
  }(*scope));
  scope.reset();
  EXPECT_EQ(calls, 0);
  EXPECT_THROW(loop.run(), std::runtime_error);
}

TEST_F(ScopeEnds, an_exception_handler_may_replace_itself) {
  for (const bool at_once : {true, false}) {
    TaskScope scope(loop);
    std::vector<std::string> log;
    const std::string long_text(100, 'x');
    scope.set_exception_handler([&, long_text](const std::exception_ptr&) {
      scope.set_exception_handler([&](const std::exception_ptr&) { log.emplace_back("second"); });
      log.push_back(long_text);
    });
    for (int i = 0; i < 2; ++i) scope.spawn(at_once ? throw_at_once() : throw_later());
    loop.run();
    EXPECT_EQ(log, (std::vector<std::string>{long_text, "second"}));
  }
}

TEST_F(ScopeEnds, an_exception_of_the_exception_handler_leaves_run) {
  TaskScope scope(loop);
  scope.set_exception_handler(
      [](const std::exception_ptr&) { throw std::logic_error("of the handler"); });
  scope.spawn(throw_later());
  scope.spawn(throw_later());
  EXPECT_THROW(loop.run(), std::logic_error);
  EXPECT_THROW(loop.run(), std::logic_error);
  loop.run();
  EXPECT_TRUE(scope.empty());
}

TEST_F(ScopeEnds, an_exception_without_a_join_leaves_run) {
  {
    TaskScope scope(loop);
    scope.spawn(throw_at_once());
  }
  EXPECT_THROW(loop.run(), std::runtime_error);
  loop.run();
  {
    TaskScope scope(loop);
    scope.spawn(throw_at_once());
    spawn(loop, [](TaskScope& joined) -> Task<> {
      EXPECT_THROW(co_await joined.join(), std::runtime_error);
    }(scope));
  }
  loop.run();
}

TEST_F(ScopeEnds, a_join_ends_when_the_scope_is_destroyed) {
  int joined = 0;
  {
    TaskScope scope(loop);
    scope.spawn(sleep_long());
    for (int i = 0; i < 2; ++i) {
      spawn(loop, [](TaskScope& awaited, int& count) -> Task<> {
        co_await awaited.join();
        ++count;
      }(scope, joined));
    }
  }
  loop.run();
  EXPECT_EQ(joined, 2);
}

TEST_F(ScopeEnds, waits_for_an_event_that_is_destroyed_end) {
  std::vector<Error> ends;
  auto event = std::make_unique<TaskEvent>(loop);
  for (int i = 0; i < 2; ++i) spawn(loop, wait_for(*event, ends));
  event.reset();
  loop.run();
  EXPECT_EQ(ends, (std::vector<Error>{system_error(ECANCELED), system_error(ECANCELED)}));
  EXPECT_TRUE(detail::tasks_of(loop).empty());
  // An event that was set completes its waits.
  event = std::make_unique<TaskEvent>(loop);
  spawn(loop, wait_for(*event, ends));
  event->set();
  event.reset();
  loop.run();
  EXPECT_EQ(ends.back(), Error());
}

TEST_F(ScopeEnds, scopes_and_events_may_be_destroyed_after_their_loop) {
  std::optional<EventLoop> destroyed_loop(std::in_place);
  TaskEvent event(*destroyed_loop);
  std::vector<Error> ends;
  TaskScope scope(*destroyed_loop);
  scope.spawn(wait_for(event, ends));
  spawn(*destroyed_loop, wait_for(event, ends));
  destroyed_loop.reset();
  EXPECT_TRUE(ends.empty());
}

TEST_F(ScopeEnds, a_stop_requested_after_the_loop_has_no_effect) {
  const auto pipe = test::open_pipe();
  for (const bool by_outer : {false, true}) {
    std::optional<EventLoop> loop(std::in_place);
    std::stop_source outer;
    TaskEvent event(*loop);
    std::vector<Error> ends;
    TaskScope scope(*loop, outer.get_token());
    scope.spawn(wait_for(event, ends));
    scope.spawn(sleep_long());
    scope.spawn([](int fd) -> Task<> {
      static_cast<void>(co_await wait_ready(fd, Events::read));
    }(pipe.near.get()));
    loop->run_ready();
    loop.reset();
    if (by_outer) {
      outer.request_stop();
    } else {
      scope.request_stop();
    }
    EXPECT_TRUE(ends.empty());
    EXPECT_EQ(scope.size(), 3U);
  }
}

/// A coroutine of another library, with a stop source that no scope guards.
struct Foreign {
  struct promise_type {
    promise_type(EventLoop& loop, const std::stop_source& stop, auto&&... /*others*/)
        : context_{.loop = &loop, .stop = stop.get_token()} {}
    Foreign get_return_object() {
      return Foreign{std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    static std::suspend_never initial_suspend() noexcept { return {}; }
    static std::suspend_always final_suspend() noexcept { return {}; }
    static void return_void() {}
    static void unhandled_exception() { throw; }
    [[nodiscard]] const TaskContext& context() const { return context_; }
    TaskContext context_;
  };

  explicit Foreign(std::coroutine_handle<> frame) : handle(frame) {}
  Foreign(const Foreign&) = delete;
  Foreign& operator=(const Foreign&) = delete;
  ~Foreign() { handle.destroy(); }

  std::coroutine_handle<> handle;
};

Foreign sleep_foreign(EventLoop& /*loop*/, const std::stop_source& /*stop*/) {
  static_cast<void>(co_await sleep_for(1h));
}
Foreign wait_for_foreign(EventLoop& /*loop*/, const std::stop_source& /*stop*/, int fd) {
  static_cast<void>(co_await wait_ready(fd, Events::read));
}
Foreign wait_for_foreign(EventLoop& /*loop*/, const std::stop_source& /*stop*/, TaskEvent& event) {
  static_cast<void>(co_await event.wait());
}

TEST_F(ScopeEnds, a_stop_of_a_wait_after_the_loop_has_no_effect) {
  const auto pipe = test::open_pipe();
  std::stop_source stop;
  std::optional<EventLoop> loop(std::in_place);
  TaskEvent event(*loop);
  std::optional<TaskEvent> destroyed(std::in_place, *loop);
  const Foreign sleeping = sleep_foreign(*loop, stop);
  const Foreign reading = wait_for_foreign(*loop, stop, pipe.near.get());
  const Foreign waiting = wait_for_foreign(*loop, stop, event);
  const Foreign waiting_for_destroyed = wait_for_foreign(*loop, stop, *destroyed);
  loop->run_ready();
  loop.reset();
  destroyed.reset();
  stop.request_stop();
  for (const Foreign* foreign : {&sleeping, &reading, &waiting, &waiting_for_destroyed})
    EXPECT_FALSE(foreign->handle.done());
}

TEST_F(ScopeEnds, functions_called_after_the_loop_abort_with_a_message) {
  std::optional<EventLoop> loop(std::in_place);
  TaskEvent event(*loop);
  TaskScope scope(*loop);
  loop.reset();
  EXPECT_DEATH(event.set(),
               "TaskEvent::set.. called on an object created in .*scope_ends_test.*"
               "after its EventLoop .created in .*was destroyed");
  EXPECT_DEATH(scope.spawn(sleep_long()),
               "TaskScope::spawn.. called on an object created in .*"
               "after its EventLoop .*was destroyed");
}

TEST_F(ScopeEnds, functions_called_from_another_thread_abort_with_a_message) {
  TaskEvent event(loop);
  TaskScope scope(loop);
  const auto in_group_thread = [](auto body) { std::thread(body).join(); };
  const char* const wrong =
      "created in .*scope_ends_test.*used from thread [0-9]+, but it belongs to thread [0-9]+";
  EXPECT_DEATH(in_group_thread([&] { scope.spawn(sleep_long()); }), wrong);
  EXPECT_DEATH(in_group_thread([&] { spawn(loop, sleep_long()); }), wrong);
  EXPECT_DEATH(in_group_thread([&] { event.set(); }), wrong);
  EXPECT_DEATH(in_group_thread([&] { TaskEvent other(loop); }), wrong);
  EXPECT_DEATH(in_group_thread([&] { TaskScope other(loop); }), wrong);
  std::optional<TaskEvent> no_waits(std::in_place, loop);
  std::optional<TaskScope> no_tasks(std::in_place, loop);
  EXPECT_DEATH(in_group_thread([&] { no_waits.reset(); }), wrong);
  EXPECT_DEATH(in_group_thread([&] { no_tasks.reset(); }), wrong);
  JoinHandle<> handle = scope.spawn(sleep_long());
  EXPECT_DEATH(in_group_thread([&] { scope.request_stop(); }), wrong);
  EXPECT_DEATH(in_group_thread([&] { static_cast<void>(handle.join()); }), wrong);
  EXPECT_DEATH(in_group_thread([&] { handle = JoinHandle<>(); }), wrong);
}

TEST_F(ScopeEnds, a_task_that_destroys_its_scope_aborts_with_a_message) {
  const char* const while_running = "destroyed by that task itself while it was running";
  auto scope = std::make_unique<TaskScope>(loop);
  const auto destroy = [&scope]() -> Task<> {
    static_cast<void>(co_await sleep_for(1ms));
    scope.reset();
  };
  EXPECT_DEATH(
      {
        scope->spawn(destroy());
        loop.run();
      },
      while_running);
  EXPECT_DEATH(
      {
        scope->spawn([](auto inner) -> Task<> { co_await inner(); }(destroy));
        loop.run();
      },
      while_running);
  EXPECT_DEATH(
      {
        scope->spawn(
            [](auto inner) -> Task<> { co_await when_all(sleep_long(), inner()); }(destroy));
        loop.run();
      },
      while_running);
  EXPECT_DEATH(
      {
        Task<> task = [](std::unique_ptr<TaskScope>& local) -> Task<> {
          local.reset();
          co_return;
        }(scope);
        scope->spawn(std::move(task));
      },
      while_running);
  // A task of another scope may destroy the scope.
  scope->spawn(sleep_long());
  spawn(loop, destroy());
  loop.run();
  EXPECT_EQ(scope, nullptr);
}

TEST_F(ScopeEnds, an_empty_task_aborts_with_a_message_that_names_the_place) {
  const char* const empty = "got an empty Task, in .*scope_ends_test.cpp:[0-9]+";
  EXPECT_DEATH(spawn(loop, Task<>()), empty);
  TaskScope scope(loop);
  EXPECT_DEATH(scope.spawn(Task<>()), empty);
  const auto await_empty = []() -> Task<> { co_await Task<>(); };
  EXPECT_DEATH(spawn(loop, await_empty()), empty);
  const auto await_twice = []() -> Task<> {
    Task<> task = []() -> Task<> { co_return; }();
    co_await std::move(task);
    EXPECT_FALSE(task);
    co_await std::move(task);
  };
  EXPECT_DEATH(spawn(loop, await_twice()), empty);
  const auto all_empty = []() -> Task<> { co_await when_all(Task<>(), Task<>()); };
  EXPECT_DEATH(spawn(loop, all_empty()), empty);
  const auto any_empty = []() -> Task<> { co_await when_any(Task<>(), Task<>()); };
  EXPECT_DEATH(spawn(loop, any_empty()), empty);
  const auto timeout_empty = []() -> Task<> { co_await timeout(1s, Task<>()); };
  EXPECT_DEATH(spawn(loop, timeout_empty()), "got an empty Task");
}

TEST_F(ScopeEnds, an_empty_function_aborts_with_a_message) {
  EXPECT_DEATH(Timer(loop, {}), "Timer .created in .*scope_ends_test.cpp:[0-9]+. got an empty");
  Timer timer(loop, [] {});
  EXPECT_DEATH(timer.set_function({}), "Timer .created in .*scope_ends_test.* got an empty");
  const Callback<void()> empty;
  EXPECT_DEATH(empty(), "an empty Callback was invoked");
}

TEST_F(ScopeEnds, a_join_fails_when_its_task_is_asked_to_stop) {
  TaskScope outer(loop);
  TaskScope inner(loop);
  inner.spawn(sleep_long());
  std::vector<Error> ends;
  const auto join = [&]() -> Task<> {
    const Result<> joined = co_await inner.join();
    ends.push_back(joined ? Error() : joined.error());
  };
  outer.spawn(join);
  outer.request_stop();
  EXPECT_TRUE(ends.empty()) << "never from inside request_stop()";
  // A stop that was requested before the wait ends it too.
  outer.spawn(join);
  while (!outer.empty()) loop.run_once();
  EXPECT_EQ(ends, std::vector<Error>(2, system_error(ECANCELED)));
  EXPECT_EQ(inner.size(), 1U) << "the tasks keep running";
  EXPECT_FALSE(inner.stop_requested());
  // Nothing is waited for: no error.
  TaskScope empty(loop);
  outer.spawn([&]() -> Task<> {
    const Result<> joined = co_await empty.join();
    EXPECT_TRUE(joined);
  });
}

/// A join() inside a function that has a time limit, not an argument of timeout() itself.
TEST_F(ScopeEnds, a_time_limit_around_a_function_that_joins_is_kept) {
  bool ended = false;
  spawn(loop, [](EventLoop& local, bool& done) -> Task<> {
    const auto run_jobs = [](EventLoop& on) -> Task<Result<>> {
      TaskScope jobs(on);
      jobs.spawn(sleep_long());
      co_return co_await jobs.join();
    };
    const Result<> limited = co_await timeout(1ms, run_jobs(local));
    EXPECT_EQ(limited.error(), system_error(ETIMEDOUT));
    const auto wait = [](EventLoop& on) -> Task<> {
      TaskScope jobs(on);
      jobs.spawn(sleep_long());
      co_await jobs.join();
    };
    EXPECT_EQ((co_await timeout(1ms, wait(local))).error(), system_error(ETIMEDOUT));
    done = true;
  }(loop, ended));
  loop.run();
  EXPECT_TRUE(ended);
}

class ScopeShutdown : public ScopeEnds {
 protected:
  /// Ends after a stop request and a further wait.
  static Task<> clean_up(std::vector<std::string>& log) {
    const Result<> slept = co_await sleep_for(1h);
    if (slept) co_return;
    co_await uncancellable(sleep_for(1ms));
    log.emplace_back("clean");
  }
  static Task<> shut_down(TaskScope& scope, Duration grace, std::vector<std::string>& log) {
    co_await scope.shut_down(grace);
    log.emplace_back("down");
  }
  std::vector<std::string> log;
};

TEST_F(ScopeShutdown, waits_for_tasks_that_end_in_time) {
  TaskScope scope(loop);
  scope.spawn(as_task(sleep_for(1ms)));
  spawn(loop, shut_down(scope, 1h, log));
  loop.run();
  EXPECT_EQ(log, std::vector<std::string>{"down"});
  EXPECT_FALSE(scope.stop_requested());
  spawn(loop, shut_down(scope, 0s, log));
  loop.run();
  EXPECT_EQ(log.size(), 2U);
}

TEST_F(ScopeShutdown, stops_the_others_when_the_grace_period_ends) {
  TaskScope scope(loop);
  scope.spawn(clean_up(log));
  spawn(loop, shut_down(scope, 1ms, log));
  loop.run();
  EXPECT_EQ(log, (std::vector<std::string>{"clean", "down"}));
}

TEST_F(ScopeShutdown, a_stop_request_ends_the_grace_period) {
  TaskScope scope(loop);
  scope.spawn(clean_up(log));
  TaskScope waiting(loop);
  waiting.spawn(shut_down(scope, 1h, log));
  loop.run_ready();
  waiting.request_stop();
  loop.run();
  EXPECT_EQ(log, (std::vector<std::string>{"clean", "down"}));
}

TEST_F(ScopeShutdown, throws_the_exception_of_a_task) {
  TaskScope scope(loop);
  scope.spawn(throw_later());
  bool thrown = false;
  spawn(loop, [](TaskScope& of, bool& caught) -> Task<> {
    try {
      co_await of.shut_down(1h);
    } catch (const std::runtime_error&) {
      caught = true;
    }
  }(scope, thrown));
  loop.run();
  EXPECT_TRUE(thrown);
}

TEST_F(ScopeShutdown, a_task_of_the_scope_must_not_await_it) {
  const auto await_itself = [] {
    EventLoop other;
    TaskScope scope(other);
    scope.spawn(
        [](TaskScope& scope_of_task) -> Task<> { co_await scope_of_task.shut_down(1s); }(scope));
  };
  EXPECT_DEATH(await_itself(), "shut_down.. was awaited by a task of the scope");
}

}  // namespace
}  // namespace tambour::scope_ends_test
