// Dumps of tasks: what each task awaits, where, since when, and which task awaits it.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/files.h"
#include "support/on_every_backend.h"
#include "task/replace_task.h"
#include "task/scope_access.h"

namespace tambour::dump_test {
namespace {

using namespace std::chrono_literals;

#ifndef TAMBOUR_NO_TASK_DUMP
constexpr bool has_waits = true;
#else
constexpr bool has_waits = false;
#endif

std::vector<TaskSnapshot> all_tasks(EventLoop& loop) {
  TaskWalk walk(loop);
  std::vector<TaskSnapshot> tasks;
  for (auto slice = walk.next(); !slice.empty(); slice = walk.next())
    tasks.insert(tasks.end(), slice.begin(), slice.end());
  return tasks;
}

/// The only spawned task of the loop.
TaskSnapshot only_task(EventLoop& loop) {
  const std::vector<TaskSnapshot> tasks = all_tasks(loop);
  EXPECT_EQ(tasks.size(), 1U);
  return tasks.empty() ? TaskSnapshot() : tasks.front();
}

std::size_t occurrences(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

class TaskDumps : public test::OnEveryBackend {
 protected:
  void SetUp() override {
    test::OnEveryBackend::SetUp();
    if (!has_waits) GTEST_SKIP() << "built with TAMBOUR_TASK_DUMP=OFF";
  }

  /// Spawns a task that awaits what `start()` returns, and expects its kind in a dump.
  template <class Start>
  TaskSnapshot snapshot_of(WaitKind kind, Start start) {
    TaskScope scope(loop());
    unsigned line = 0;
    auto awaiting = [&line](Start make) -> Task<> {
      auto awaitable = make();
      line = std::source_location::current().line() + 1;
      static_cast<void>(co_await std::move(awaitable));
    };
    scope.spawn(awaiting(start));
    const TaskSnapshot task = only_task(loop());
    EXPECT_EQ(name_of(task.awaits), name_of(kind));
    EXPECT_EQ(task.awaits_at.line(), line);
    EXPECT_TRUE(std::string_view(task.awaits_at.file_name()).ends_with("dump_test.cpp"));
    return task;
  }
};

TAMBOUR_ON_EVERY_BACKEND(TaskDumps);

TEST_P(TaskDumps, objects_of_one_loop) {
  TaskEvent event(loop());
  TaskMutex mutex(loop());
  const auto locked = mutex.try_lock();
  TaskSemaphore semaphore(loop(), 0);
  TaskChannel<int> channel(loop(), 0);
  TaskScope inner(loop());
  EXPECT_EQ(snapshot_of(WaitKind::event, [&] { return event.wait(); }).object, &event);
  EXPECT_EQ(snapshot_of(WaitKind::mutex, [&] { return mutex.lock(); }).object, &mutex);
  EXPECT_EQ(snapshot_of(WaitKind::semaphore, [&] { return semaphore.acquire(); }).object,
            &semaphore);
  EXPECT_NE(snapshot_of(WaitKind::send, [&] { return channel.send(1); }).object, nullptr);
  EXPECT_NE(snapshot_of(WaitKind::receive, [&] { return channel.receive(); }).object, nullptr);
  EXPECT_EQ(snapshot_of(WaitKind::event, [&] { return event.wait(); }).fd, -1);
}

TEST_P(TaskDumps, times_and_descriptors) {
  const auto pipe = test::open_pipe();
  const int fd = pipe.near.get();
  EXPECT_EQ(snapshot_of(WaitKind::readiness, [&] { return wait_ready(fd, Events::read); }).fd, fd);
  PipeStream stream(loop(), ::dup(fd));
  Buffer buffer;
  EXPECT_EQ(snapshot_of(WaitKind::read, [&] { return stream.read(buffer); }).fd, stream.fd());

  const TaskSnapshot sleeps = snapshot_of(WaitKind::sleep, [] { return sleep_for(1h); });
  ASSERT_TRUE(sleeps.time_left);
  EXPECT_LE(*sleeps.time_left, 1h);
  EXPECT_GT(*sleeps.time_left, 30min);
  const TaskSnapshot later =
      snapshot_of(WaitKind::sleep, [] { return sleep_until(Clock::now() + 2h); });
  ASSERT_TRUE(later.time_left);
  EXPECT_GT(*later.time_left, 30min);
  EXPECT_FALSE(snapshot_of(WaitKind::sleep, [] { return sleep_until(never); }).time_left);
  Interval interval(loop(), 1h);
  EXPECT_TRUE(snapshot_of(WaitKind::sleep, [&] { return interval.tick(); }).time_left);
}

TEST_P(TaskDumps, waits_of_other_threads_and_of_callbacks) {
  ConcurrentChannel<int> channel(1);
  snapshot_of(WaitKind::receive, [&] { return channel.receive(); });
  std::optional<Completion<int>> completion;
  snapshot_of(WaitKind::callback, [&] {
    return from_callback<int>([&](Completion<int> done) { completion = std::move(done); });
  });
  auto signals = SignalSet::open(loop(), {SIGUSR1});
  ASSERT_TRUE(signals);
  snapshot_of(WaitKind::receive, [&] { return signals->next(); });
}

Task<> wait_for(TaskEvent& event) { static_cast<void>(co_await event.wait()); }
Task<> outer(TaskEvent& event) { co_await wait_for(event); }

TEST_P(TaskDumps, a_task_is_followed_by_those_that_it_awaits) {
  TaskEvent event(loop());
  TaskScope scope(loop());
  const unsigned spawned = std::source_location::current().line() + 1;
  scope.spawn(outer(event));
  const std::vector<TaskSnapshot> tasks = all_tasks(loop());
  ASSERT_EQ(tasks.size(), 2U);
  EXPECT_EQ(tasks[0].awaits, WaitKind::task);
  EXPECT_EQ(tasks[0].parent, nullptr);
  EXPECT_EQ(tasks[0].depth, 0U);
  EXPECT_EQ(tasks[0].spawned_at.line(), spawned);
  EXPECT_EQ(tasks[1].awaits, WaitKind::event);
  EXPECT_EQ(tasks[1].parent, tasks[0].task);
  EXPECT_EQ(tasks[1].depth, 1U);
  EXPECT_EQ(tasks[1].spawned_at.line(), spawned);
  EXPECT_EQ(tasks[0].awaits_at.line() + 0U, tasks[1].awaits_at.line() + 1U);
  const std::string text = dump_tasks(loop());
  EXPECT_NE(text.find("in tambour::dump_test::"), std::string::npos) << text;
  EXPECT_NE(text.find("outer()\n"), std::string::npos) << text;
  event.set();
  run_iterations();
  EXPECT_TRUE(all_tasks(loop()).empty());
}

TEST_P(TaskDumps, the_tasks_of_a_combinator_that_have_not_ended) {
  TaskEvent first(loop());
  TaskEvent second(loop());
  TaskScope scope(loop());
  scope.spawn([&]() -> Task<> {
    co_await when_all(wait_for(first), sleep_for(0s), timeout(1h, wait_for(second)));
  });
  ASSERT_TRUE(run_until([&] { return occurrences(dump_tasks(loop()), "sleep") == 1; }));
  const std::vector<TaskSnapshot> tasks = all_tasks(loop());
  std::vector<std::string_view> kinds;
  for (const TaskSnapshot& task : tasks) kinds.push_back(name_of(task.awaits));
  // The frame that keeps the lambda, the lambda, the first task, and timeout() with its two tasks.
  EXPECT_EQ(kinds,
            (std::vector<std::string_view>{"task", "tasks", "event", "tasks", "event", "sleep"}));
  EXPECT_EQ(tasks[2].parent, tasks[1].task);
  EXPECT_EQ(tasks[3].parent, tasks[1].task);
  EXPECT_EQ(tasks[5].parent, tasks[3].task);
  EXPECT_EQ(tasks[5].depth, 3U);
  second.set();
  ASSERT_TRUE(run_until([&] { return all_tasks(loop()).size() == 3; }));
  first.set();
  ASSERT_TRUE(run_until([&] { return scope.empty(); }));
}

TEST_P(TaskDumps, the_task_that_makes_the_dump_runs) {
  std::optional<TaskSnapshot> inside;
  TaskScope scope(loop());
  auto dump = [&]() -> Task<> {
    co_await sleep_for(0s);
    inside = only_task(loop());
  };
  scope.spawn(dump());
  ASSERT_TRUE(run_until([&] { return inside.has_value(); }));
  EXPECT_EQ(inside->awaits, WaitKind::running);
  EXPECT_EQ(inside->waited, Duration::zero());
}

TEST_P(TaskDumps, the_time_of_a_wait) {
  TaskEvent event(loop());
  TaskScope scope(loop());
  scope.spawn(wait_for(event));
  EXPECT_LT(only_task(loop()).waited, 1min);
  run_for(50ms);
  EXPECT_GE(only_task(loop()).waited, 40ms);
}

TEST_P(TaskDumps, a_spawned_task_and_the_task_that_joins_it) {
  TaskEvent event(loop());
  TaskScope scope(loop());
  auto handle = scope.spawn(wait_for(event));
  auto joining = [&]() -> Task<> { static_cast<void>(co_await handle.join()); };
  auto waiting = [&]() -> Task<> { static_cast<void>(co_await scope.join()); };
  TaskScope others(loop());
  others.spawn(joining());
  others.spawn(waiting());
  const std::string text = dump_tasks(loop());
  EXPECT_EQ(occurrences(text, "\n  join "), 2U) << text;
  EXPECT_EQ(occurrences(text, "\n  event "), 1U) << text;
}

// A walk is continued while tasks end and scopes are destroyed.
TEST_P(TaskDumps, tasks_end_between_the_slices_of_a_walk) {
  TaskEvent event(loop());
  TaskEvent other(loop());
  auto scope = std::make_unique<TaskScope>(loop());
  auto later = std::make_unique<TaskScope>(loop());
  auto handle = scope->spawn(wait_for(event));
  auto next = scope->spawn(wait_for(event));
  scope->spawn(wait_for(other));
  later->spawn(wait_for(event));
  TaskWalk walk(loop());
  EXPECT_EQ(walk.next(1).size(), 1U) << "the task of the scope that was created last";
  EXPECT_EQ(walk.next(1).size(), 1U);
  next.cancel();
  handle.cancel();
  const auto third = walk.next(1);
  ASSERT_EQ(third.size(), 1U);
  EXPECT_EQ(third.front().object, &other);
  EXPECT_TRUE(walk.next(1).empty());

  TaskWalk again(loop());
  TaskWalk until_the_end(loop());
  EXPECT_EQ(again.next(1).size(), 1U);
  later.reset();
  scope.reset();
  EXPECT_TRUE(again.next(1).empty());
  EXPECT_TRUE(until_the_end.next(1).empty());
  TaskWalk longer(loop());
  destroy_loop();
  EXPECT_TRUE(longer.next().empty());
}

Task<> nest(TaskEvent& event, int levels) {
  if (levels == 0) {
    static_cast<void>(co_await event.wait());
  } else {
    co_await nest(event, levels - 1);
  }
}

TEST_P(TaskDumps, tasks_are_replaced_between_the_slices_of_a_walk) {
  TaskScope scope(loop());
  TaskEvent event(loop());
  const auto wait = [](TaskEvent& of) -> Task<> { static_cast<void>(co_await of.wait()); };
  const auto replace_later = [](TaskEvent& of, Task<> next) -> Task<> {
    static_cast<void>(co_await of.wait());
    co_await detail::task::ReplaceTask(std::move(next));
  };
  TaskEvent now(loop());
  for (int i = 0; i < 3; ++i)
    detail::task::ScopeAccess::start(scope, replace_later(now, wait(event)), {});
  TaskWalk walk(loop());
  EXPECT_EQ(walk.next(1).size(), 1U);
  now.set();
  run_iterations();
  EXPECT_EQ(walk.next().size(), 2U);
  EXPECT_TRUE(walk.next().empty());
  event.set();
  run_iterations();
}

TEST_P(TaskDumps, limits) {
  TaskEvent event(loop());
  TaskScope scope(loop());
  scope.spawn(nest(event, 5'000));
  EXPECT_EQ(all_tasks(loop()).size(), TaskWalk::tree_tasks_max);
  for (int i = 0; i < 20; ++i) scope.spawn(wait_for(event));
  TaskDumpOptions options;
  options.tasks_max = 10;
  const std::string text = dump_tasks(loop(), options);
  EXPECT_EQ(std::ranges::count(text, '\n'), 1 + 1 + 10 + 1) << text;
  EXPECT_TRUE(text.ends_with("further tasks\n"));
  EXPECT_TRUE(dump_tasks_as_json(loop(), options).ends_with("\"complete\":false}\n"));
  options.tasks_max = TaskWalk::tree_tasks_max + 20;
  EXPECT_TRUE(dump_tasks_as_json(loop(), options).ends_with("\"complete\":true}\n"));
}

TEST_P(TaskDumps, json) {
  TaskEvent event(loop());
  TaskScope scope(loop());
  scope.spawn(outer(event));
  const std::string text = dump_tasks_as_json(loop());
  EXPECT_EQ(occurrences(text, "\"parent\":null"), 1U) << text;
  EXPECT_EQ(occurrences(text, "\"parent\":\"0x"), 1U) << text;
  EXPECT_EQ(occurrences(text, "\"awaits\":\"task\""), 1U) << text;
  EXPECT_EQ(occurrences(text, "\"awaits\":\"event\""), 1U) << text;
  EXPECT_EQ(occurrences(text, "\"waited_seconds\":"), 1U) << text;
  TaskSnapshot odd;
  odd.awaits_at = std::source_location::current();
  odd.awaits = WaitKind::read;
  odd.fd = 7;
  std::string object;
  append_json(object, odd);
  EXPECT_NE(object.find("\"fd\":7"), std::string::npos) << object;
  EXPECT_EQ(occurrences(object, "\"") % 2, 0U) << object;
}

/// An awaitable of a program.
struct OwnWait {
  [[nodiscard]] static bool await_ready() noexcept { return false; }
  template <HasTaskContext Promise>
  void await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    note_wait(awaiting, WaitNote(WaitKind::other, this), at);
  }
  static void await_resume() noexcept {}
};

TEST_P(TaskDumps, awaitables_of_the_program) {
  TaskScope scope(loop());
  auto awaiting = []() -> Task<> {
    OwnWait wait;
    co_await wait;
  };
  scope.spawn(awaiting());
  const TaskSnapshot task = only_task(loop());
  EXPECT_EQ(task.awaits, WaitKind::other);
  EXPECT_NE(task.object, nullptr);
  EXPECT_TRUE(std::string_view(task.awaits_at.file_name()).ends_with("dump_test.cpp"));
}

TEST(TaskDump, of_a_task_that_block_on_runs) {
  EventLoop loop;
  std::size_t tasks = 0;
  auto count = [&]() -> Task<> {
    tasks = all_tasks(loop).size();
    co_return;
  };
  block_on(loop, count());
  EXPECT_EQ(tasks, 1U);
  EXPECT_TRUE(all_tasks(loop).empty());
}

TEST(TaskDump, of_a_loop_of_another_thread) {
  LoopGroup group;
  EventLoop loop;
  EventLoop& other = group[0];
  auto dump = [](EventLoop& there) -> Task<std::string> { co_return dump_tasks(there); };
  auto ask = [&]() -> Task<> {
    const Result<std::string> text = co_await run_on(other, dump, std::ref(other));
    EXPECT_TRUE(text);
    if (text) {
      EXPECT_NE(text->find("running"), std::string::npos) << *text;
    }
  };
  block_on(loop, ask());
}

TEST(TaskDump, names_of_kinds) {
  EXPECT_EQ(name_of(WaitKind::unknown), "unknown");
  EXPECT_EQ(name_of(WaitKind::semaphore), "semaphore");
  EXPECT_EQ(name_of(WaitKind::callback), "callback");
  EXPECT_EQ(name_of(WaitKind::other), "other");
  EXPECT_EQ(name_of(static_cast<WaitKind>(200)), "unknown");
}

TEST(WaitNote, keeps_kinds_and_values) {
  EXPECT_EQ(WaitNote().kind(), WaitKind::unknown);
  EXPECT_EQ(WaitNote(WaitKind::read, 7).value(), 7U);
  EXPECT_EQ(WaitNote(WaitKind::other, 7).kind(), WaitKind::other);
  EXPECT_EQ(WaitNote(WaitKind::sleep, Duration(-1)).value(), 0U);
  EXPECT_EQ(WaitNote(WaitKind::sleep, Duration::max()).value(),
            static_cast<std::uint64_t>(WaitNote::time_max));
  EXPECT_EQ(WaitNote(WaitKind::sleep, Duration::max()).kind(), WaitKind::sleep);
}

}  // namespace
}  // namespace tambour::dump_test
