// Dumps of tasks: what each task of a loop awaits, where, and since when.
//
// A task records its waits as it suspends, which costs a few instructions and 16 bytes. The CMake
// option TAMBOUR_TASK_DUMP=OFF removes that; dumps then show the tasks without their waits. Dumps
// contain kinds of waits, addresses, descriptors and places of the source, and nothing of what a
// program receives or sends. See docs/observing.md.
#pragma once

#include <cstddef>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/detail/task_lists.h>
#include <tambour/detail/task_promise.h>
#include <tambour/task/wait_kind.h>

namespace tambour::detail {
class TaskList;
}  // namespace tambour::detail
namespace tambour::detail::loop {
class Core;
}  // namespace tambour::detail::loop

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

/// A task at one time.
struct TaskSnapshot {
  /// Identifies the task while it exists.
  const void* task = nullptr;
  /// The task that awaits it. Null: a scope, a loop or block_on() runs it.
  const void* parent = nullptr;
  /// The number of tasks that await it, directly or through others.
  std::size_t depth = 0;
  /// Where the task, or the outermost one that awaits it, was spawned; its line is 0 if that is not
  /// known.
  std::source_location spawned_at;
  WaitKind awaits = WaitKind::unknown;
  /// The place of the co_await expression, in the coroutine that its function_name() contains; its
  /// line is 0 if that is not known. Of a wait in an awaitable of the program that does not call
  /// note_wait(), the place of the wait before it.
  std::source_location awaits_at;
  /// Since when the task waits, with a resolution of 4 ms, up to 208 days. Zero for WaitKind::task,
  /// tasks and running.
  Duration waited{};
  /// Of WaitKind::read, write, accept, connect and readiness; otherwise -1.
  int fd = -1;
  /// The address of the event, channel, scope or other object that is awaited; it may have been
  /// destroyed. Null if the kind has none.
  const void* object = nullptr;
  /// Of WaitKind::sleep.
  std::optional<Duration> time_left;
};

/// The tasks of a loop, in slices, between which the loop may run and tasks may start and end.
///
///   TaskWalk walk(loop);
///   for (auto tasks = walk.next(); !tasks.empty(); tasks = walk.next()) {
///     ...
///     co_await sleep_for(0s);
///   }
///
/// Thread: must be used on the loop's thread, which is checked.
/// Lifetime: may outlive the loop.
class TaskWalk final : private detail::TaskWalkNode {
 public:
  /// Of a spawned task and the tasks that it awaits, the maximum that is returned.
  static constexpr std::size_t tree_tasks_max = 1000;

  /// Begins before the first task of the loop.
  explicit TaskWalk(EventLoop& loop) noexcept;
  TaskWalk(const TaskWalk&) = delete;
  TaskWalk& operator=(const TaskWalk&) = delete;
  ~TaskWalk();

  /// Returns further tasks: a spawned task, the tasks that it awaits, and so on, until there are
  /// `tasks_max` or more. A task is followed by those that it awaits. Returns an empty vector after
  /// the last one, and after the loop was destroyed. Tasks that were spawned after the first call
  /// may be missing. Throws std::bad_alloc; the walk may be continued.
  [[nodiscard]] std::vector<TaskSnapshot> next(std::size_t tasks_max = 1000);

 private:
  friend class detail::TaskList;
  void go_to(detail::TaskList* list) noexcept;

  detail::loop::Core* core_;  ///< Reference-counted; may outlive the loop.
  detail::TaskList* list_ = nullptr;
  detail::TaskPromiseBase* task_ = nullptr;  ///< The next one in `list_`.
};

/// The limit of a dump.
struct TaskDumpOptions {
  /// Further tasks are not in the dump, which says so.
  std::size_t tasks_max = 10'000;
};

/// The tasks of `loop` as a text for people: one line for each task, below the task that awaits it.
/// Must be called on the loop's thread; from another thread, pass a function that calls it to
/// EventLoop::post(), or await run_on(). Throws std::bad_alloc.
[[nodiscard]] std::string dump_tasks(EventLoop& loop, const TaskDumpOptions& options = {});

/// The tasks of `loop` as a JSON object with the members `loop` (where the loop was created),
/// `tasks` (an array of objects, see append_json()) and `complete` (false if there are further
/// tasks).
[[nodiscard]] std::string dump_tasks_as_json(EventLoop& loop, const TaskDumpOptions& options = {});

/// Appends a task as a JSON object: `task`, `parent` (null or the `task` of another object),
/// `depth`, `spawned_at` (null or "file:line"), `awaits` (the name of the kind), `awaits_at`,
/// `function`, `waited_seconds`, and where they apply `fd`, `object` and `seconds_left`. Throws
/// std::bad_alloc.
void append_json(std::string& to, const TaskSnapshot& task);

}  // namespace tambour

#pragma GCC visibility pop
