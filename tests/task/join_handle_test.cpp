// JoinHandle: results and exceptions of spawned tasks, cancellation, and handles that are dropped.
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"

namespace tambour::join_handle_test {
namespace {

using namespace std::chrono_literals;

const Error cancelled = system_error(ECANCELED);

class JoinHandles : public test::OnEveryBackend {};

TAMBOUR_ON_EVERY_BACKEND(JoinHandles);

Task<int> add(int a, int b) {
  static_cast<void>(co_await sleep_for(1ms));
  co_return a + b;
}
Task<int> add_at_once(int a, int b) { co_return a + b; }
Task<> throw_later(const char* text) {
  static_cast<void>(co_await sleep_for(1ms));
  throw std::runtime_error(text);
}
Task<> throw_at_once() {
  throw std::runtime_error("at once");
  co_return;
}
/// Notes its error and its destruction.
Task<> sleep_long(std::vector<std::string>& log) {
  struct Note {
    explicit Note(std::vector<std::string>& to) : log(to) {}
    Note(const Note&) = delete;
    Note& operator=(const Note&) = delete;
    ~Note() { log.emplace_back("destroyed"); }
    std::vector<std::string>& log;
  };
  const Note note(log);
  const Result<> slept = co_await sleep_for(1h);
  log.push_back(slept ? "slept" : slept.error().message());
}

TEST_P(JoinHandles, join_returns_the_result_of_the_task) {
  run([](EventLoop& loop) -> Task<> {
    TaskScope scope(loop);
    auto later = scope.spawn(add(1, 2));
    auto at_once = scope.spawn(add_at_once(3, 4));
    auto called = scope.spawn(add, 5, 6);
    auto of_loop = spawn(loop, add(7, 8));
    EXPECT_FALSE(later.has_ended());
    EXPECT_TRUE(at_once.has_ended());
    EXPECT_EQ(co_await later.join(), Result<int>(3));
    EXPECT_TRUE(later.has_ended());
    EXPECT_EQ(co_await at_once.join(), Result<int>(7));
    EXPECT_EQ(co_await called.join(), Result<int>(11));
    EXPECT_EQ(co_await of_loop.join(), Result<int>(15));
    // A Result is not wrapped again, and void becomes one.
    auto failed = scope.spawn([]() -> Task<Result<std::string>> {
      static_cast<void>(co_await sleep_for(1ms));
      co_return std::unexpected(system_error(EIO));
    });
    const Result<std::string> text = co_await failed.join();
    EXPECT_EQ(text.error(), system_error(EIO));
    JoinHandle<> nothing = scope.spawn([]() -> Task<> { co_return; });
    const Result<> joined_nothing = co_await nothing.join();
    EXPECT_TRUE(joined_nothing);
    int value = 1;
    auto reference = scope.spawn([](int& of) -> Task<int&> { co_return of; }, std::ref(value));
    const auto joined = co_await reference.join();
    EXPECT_EQ(&joined->get(), &value);
  }(loop()));
}

TEST_P(JoinHandles, handles_can_be_stored_and_moved_even_while_they_are_awaited) {
  run([](EventLoop& loop) -> Task<> {
    TaskScope scope(loop);
    std::vector<JoinHandle<int>> handles;
    for (int i = 0; i < 20; ++i) handles.push_back(scope.spawn(add, i, 1));
    int sum = 0;
    for (auto& handle : handles) {
      const Result<int> one = co_await handle.join();
      sum += one.value();
    }
    EXPECT_EQ(sum, 210);
    std::optional<JoinHandle<int>> first = scope.spawn(add(1, 1));
    std::optional<JoinHandle<int>> second;
    auto waiting = scope.spawn([&first]() -> Task<int> {
      const Result<int> got = co_await first->join();
      co_return got.value();
    });
    second.emplace(std::move(*first));
    EXPECT_FALSE(*first);
    EXPECT_TRUE(*second);
    EXPECT_EQ(co_await waiting.join(), Result<int>(2));
    // After the task has ended too, before the waiting one is resumed.
    JoinHandle<int> assigned = scope.spawn(add(2, 2));
    second = std::move(assigned);
    EXPECT_EQ(co_await second->join(), Result<int>(4));
  }(loop()));
}

TEST_P(JoinHandles, an_exception_belongs_to_a_handle_that_exists) {
  run([](EventLoop& loop) -> Task<> {
    TaskScope scope(loop);
    auto later = scope.spawn(throw_later("later"));
    auto at_once = scope.spawn(throw_at_once());
    auto other = scope.spawn(add(1, 2));
    EXPECT_THROW(static_cast<void>(co_await later.join()), std::runtime_error);
    EXPECT_THROW(static_cast<void>(co_await at_once.join()), std::runtime_error);
    EXPECT_FALSE(scope.stop_requested()) << "the other tasks go on";
    EXPECT_EQ(co_await other.join(), Result<int>(3));
    EXPECT_TRUE(co_await scope.join());
    // The loop's run() does not throw either.
    auto of_loop = spawn(loop, throw_later("of the loop"));
    EXPECT_THROW(static_cast<void>(co_await of_loop.join()), std::runtime_error);
  }(loop()));
}

TEST_P(JoinHandles, an_exception_of_a_dropped_handle_belongs_to_the_scope) {
  run([](EventLoop& loop) -> Task<> {
    for (const bool is_late : {false, true}) {
      TaskScope scope(loop);
      {
        auto handle = scope.spawn(throw_later("dropped"));
        // Dropped before or after the task has thrown.
        if (is_late) static_cast<void>(co_await sleep_for(5ms));
        EXPECT_EQ(handle.has_ended(), is_late);
        EXPECT_FALSE(scope.stop_requested());
      }
      EXPECT_EQ(scope.stop_requested(), is_late);
      EXPECT_THROW(static_cast<void>(co_await scope.join()), std::runtime_error);
    }
  }(loop()));
  // After the scope, it leaves run().
  auto scope = std::make_unique<TaskScope>(loop());
  {
    auto handle = scope->spawn(throw_at_once());
    scope.reset();
  }
  EXPECT_THROW(loop().run(), std::runtime_error);
  {
    auto handle = spawn(loop(), throw_at_once());
    loop().run();
  }
  EXPECT_THROW(loop().run(), std::runtime_error);
}

TEST_P(JoinHandles, a_dropped_handle_leaves_the_task_running) {
  int done = 0;
  TaskScope scope(loop());
  const auto work = [&done]() -> Task<> {
    static_cast<void>(co_await sleep_for(1ms));
    ++done;
  };
  {
    auto handle = scope.spawn(work);
    JoinHandle<> moved = std::move(handle);
  }
  scope.spawn(work);
  EXPECT_EQ(scope.size(), 2U);
  loop().run();
  EXPECT_EQ(done, 2);
}

TEST_P(JoinHandles, cancel_destroys_the_task_where_it_is_suspended) {
  run([](EventLoop& loop) -> Task<> {
    TaskScope scope(loop);
    std::vector<std::string> log;
    auto handle = scope.spawn(sleep_long(log));
    auto other = scope.spawn(add(1, 2));
    handle.cancel();
    EXPECT_EQ(log, std::vector<std::string>{"destroyed"});
    EXPECT_TRUE(handle.has_ended());
    EXPECT_EQ((co_await handle.join()).error(), cancelled);
    handle.cancel();  // No effect.
    EXPECT_EQ(co_await other.join(), Result<int>(3));
    other.cancel();
    // A join() of the handle and one of the scope end.
    std::vector<std::string> ends;
    auto late = scope.spawn(sleep_long(log));
    TaskScope waiting(loop);
    waiting.spawn([&]() -> Task<> {
      const Result<> joined = co_await late.join();
      ends.push_back(joined.error().message());
    });
    waiting.spawn([&]() -> Task<> {
      EXPECT_TRUE(co_await scope.join());
      ends.emplace_back("scope");
    });
    static_cast<void>(co_await sleep_for(1ms));
    late.cancel();
    EXPECT_TRUE(ends.empty()) << "never from inside cancel()";
    EXPECT_TRUE(co_await waiting.join());
    EXPECT_EQ(ends, (std::vector<std::string>{cancelled.message(), "scope"}));
  }(loop()));
}

TEST_P(JoinHandles, one_task_can_be_asked_to_stop) {
  run([](EventLoop& loop) -> Task<> {
    TaskScope scope(loop);
    std::vector<std::string> log;
    std::stop_source stop;
    auto stopped = scope.spawn(with_stop_token(stop.get_token(), sleep_long(log)));
    auto other = scope.spawn(add(1, 2));
    stop.request_stop();
    EXPECT_TRUE(co_await stopped.join());
    EXPECT_EQ(log, (std::vector<std::string>{cancelled.message(), "destroyed"}));
    EXPECT_EQ(co_await other.join(), Result<int>(3));
    // A stop of the scope reaches it too, and so does one that was requested before.
    std::stop_source unused;
    auto by_scope = scope.spawn(with_stop_token(unused.get_token(), sleep_for(1h)));
    auto before = scope.spawn(with_stop_token(stop.get_token(), sleep_for(1h)));
    EXPECT_EQ((co_await before.join()).error(), cancelled);
    scope.request_stop();
    EXPECT_EQ((co_await by_scope.join()).error(), cancelled);
  }(loop()));
}

TEST_P(JoinHandles, a_wait_can_be_stopped_and_repeated) {
  run([](EventLoop& loop) -> Task<> {
    TaskScope scope(loop);
    TaskEvent event(loop);
    auto handle = scope.spawn([&event]() -> Task<int> {
      static_cast<void>(co_await event.wait());
      co_return 5;
    });
    EXPECT_EQ((co_await timeout(1ms, handle.join())).error(), system_error(ETIMEDOUT));
    EXPECT_FALSE(handle.has_ended());
    event.set();
    EXPECT_EQ(co_await timeout(1h, handle.join()), Result<int>(5));
  }(loop()));
}

/// The task ends in the same iteration in which another branch wins.
TEST_P(JoinHandles, a_wait_that_another_branch_ends_leaves_the_result) {
  run([](EventLoop& loop) -> Task<> {
    TaskScope scope(loop);
    TaskEvent event(loop);
    TaskEvent other(loop);
    const auto wait = [](TaskEvent& of, bool throws) -> Task<int> {
      static_cast<void>(co_await of.wait());
      if (throws) throw std::runtime_error("thrown");
      co_return 5;
    };
    auto returns = scope.spawn(wait, std::ref(event), false);
    auto throws = scope.spawn(wait, std::ref(event), true);
    loop.post([&] {
      other.set();
      event.set();
    });
    const auto first = co_await select(returns.join(), throws.join(), other.wait());
    EXPECT_EQ(first.index(), 2U);
    EXPECT_EQ(co_await returns.join(), Result<int>(5));
    bool has_thrown = false;
    try {
      static_cast<void>(co_await throws.join());
    } catch (const std::runtime_error&) {
      has_thrown = true;
    }
    EXPECT_TRUE(has_thrown);
  }(loop()));
}

TEST_P(JoinHandles, a_handle_may_outlive_its_scope_and_its_loop) {
  std::vector<std::string> log;
  auto scope = std::make_unique<TaskScope>(loop());
  auto first = scope->spawn(sleep_long(log));
  auto second = scope->spawn(sleep_long(log));
  std::vector<Error> ends;
  TaskScope waiting(loop());
  waiting.spawn([](JoinHandle<>& of, std::vector<Error>& to) -> Task<> {
    const Result<> joined = co_await of.join();
    to.push_back(joined.error());
  }(first, ends));
  scope.reset();
  EXPECT_EQ(log, (std::vector<std::string>{"destroyed", "destroyed"}));
  EXPECT_TRUE(first.has_ended());
  loop().run();
  EXPECT_EQ(ends, std::vector<Error>{cancelled});
  auto third = spawn(loop(), sleep_long(log));
  destroy_loop();
  EXPECT_TRUE(third.has_ended());
  third.cancel();
}

TEST_P(JoinHandles, a_handle_that_is_destroyed_ends_its_wait) {
  for (const bool has_ended : {false, true}) {
    TaskScope scope(loop());
    TaskEvent event(loop());
    std::optional<JoinHandle<>> handle =
        scope.spawn([&event]() -> Task<> { static_cast<void>(co_await event.wait()); });
    std::vector<Error> ends;
    scope.spawn([](JoinHandle<>& of, std::vector<Error>& to) -> Task<> {
      const Result<> joined = co_await of.join();
      to.push_back(joined ? Error() : joined.error());
    }(*handle, ends));
    run_iterations();
    if (has_ended) {
      event.set();
      // In the iteration in which the task ends, before the waiting one is resumed.
      while (!handle->has_ended()) loop().run_once();
    }
    handle.reset();
    event.set();
    loop().run();
    ASSERT_EQ(ends.size(), 1U);
    EXPECT_TRUE(has_ended || ends[0] == cancelled);
    EXPECT_TRUE(scope.empty());
  }
}

TEST_P(JoinHandles, a_handle_that_is_destroyed_ends_a_wait_with_a_limit) {
  TaskScope scope(loop());
  auto handle = std::make_unique<JoinHandle<>>(
      scope.spawn([]() -> Task<> { static_cast<void>(co_await sleep_for(1h)); }));
  std::vector<Error> ends;
  // timeout() moves the awaitable, and destroys what is left of it afterwards.
  spawn(loop(), [](JoinHandle<>& of, std::vector<Error>& to) -> Task<> {
    to.push_back((co_await timeout(1h, of.join())).error());
  }(*handle, ends));
  run_iterations();
  handle.reset();
  run_iterations();
  EXPECT_EQ(ends, std::vector<Error>{cancelled});
}

TEST_P(JoinHandles, what_a_task_returned_may_own_its_own_handle) {
  struct Session {
    JoinHandle<> reader;
  };
  auto session = std::make_shared<Session>();
  const std::weak_ptr<Session> watched = session;
  TaskScope scope(loop());
  session->reader = scope.spawn(
      [](std::shared_ptr<Session> owner) -> Task<> {
        static_cast<void>(co_await sleep_for(1ms));
        static_cast<void>(owner);
      },
      session);
  session.reset();
  EXPECT_FALSE(watched.expired());
  loop().run();
  EXPECT_TRUE(watched.expired());
}

TEST_P(JoinHandles, misuse_aborts) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto run_here = [this](auto task) {
    EventLoop other(options());
    spawn(other, std::move(task));
    other.run();
  };
  EXPECT_DEATH(run_here([]() -> Task<> {
                 JoinHandle<> empty;
                 static_cast<void>(co_await empty.join());
               }),
               "join.. was called on an empty handle");
  EXPECT_DEATH(run_here([]() -> Task<> {
                 const TaskContext& context = co_await this_task;
                 TaskScope scope(*context.loop);
                 auto sum = scope.spawn(add(1, 2));
                 static_cast<void>(co_await sum.join());
                 static_cast<void>(co_await sum.join());
               }),
               "join.. was called again");
  EXPECT_DEATH(run_here([]() -> Task<> {
                 const TaskContext& context = co_await this_task;
                 TaskScope scope(*context.loop);
                 JoinHandle<> self;
                 self = scope.spawn([&self]() -> Task<> {
                   static_cast<void>(co_await sleep_for(1ms));
                   self.cancel();
                 });
                 static_cast<void>(co_await scope.join());
               }),
               "destroyed by that task itself");
}

}  // namespace
}  // namespace tambour::join_handle_test
