// list_tasks(): each loop walks its tasks in slices.
#include "inspector/tasks.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <tambour/task/dump.h>
#include <tambour/task/scope.h>
#include <tambour/task/sleep.h>

#include "inspector/json.h"
#include "inspector/search.h"

namespace tambour::inspector {
namespace {

/// Takes a fraction of a millisecond, unless a task awaits many.
constexpr std::size_t tasks_of_slice = 256;

/// What the loops have answered. Shared, because a loop may answer too late.
struct TaskAnswers {
  std::mutex mutex;
  std::string text;
  std::size_t tasks_max = 0;
  bool is_complete = true;
  std::size_t total = 0;
  std::map<const ObservedLoop*, std::vector<TaskRow>> rows;
};

TaskRow row_of(const ObservedLoop& loop, const TaskSnapshot& task) {
  return {.loop = loop.name(),
          .depth = task.depth,
          .spawned_at = text_of(task.spawned_at),
          .awaits = name_of(task.awaits),
          .awaits_at = text_of(task.awaits_at),
          .fd = task.fd,
          .waited_ns = task.waited.count()};
}

bool matches(const TaskRow& row, std::string_view text) noexcept {
  return contains(row.loop, text) || contains(row.spawned_at, text) || contains(row.awaits, text) ||
         contains(row.awaits_at, text);
}

/// Runs on the thread of the loop. `end` is destroyed with the task.
Task<> walk_tasks(std::shared_ptr<ObservedLoop> loop, std::shared_ptr<TaskAnswers> answers,
                  std::shared_ptr<void> end) {
  static_cast<void>(end);
  std::vector<TaskRow> rows;
  std::size_t total = 0;
  TaskWalk walk(loop->loop());
  bool is_complete = true;
  for (auto tasks = walk.next(tasks_of_slice); !tasks.empty(); tasks = walk.next(tasks_of_slice)) {
    is_complete = total + tasks.size() <= answers->tasks_max;
    for (const TaskSnapshot& task : tasks) {
      if (total == answers->tasks_max) break;
      ++total;
      TaskRow row = row_of(*loop, task);
      if (matches(row, answers->text)) rows.push_back(std::move(row));
    }
    if (!is_complete) break;
    const Result<> resumed = co_await sleep_for(Duration::zero());
    if (!resumed) co_return;
  }
  const std::lock_guard lock(answers->mutex);
  answers->rows[loop.get()] = std::move(rows);
  answers->total += total;
  answers->is_complete = answers->is_complete && is_complete;
}

}  // namespace

Task<TaskRows> list_tasks(ObservedLoops loops, Duration patience, std::size_t tasks_max,
                          std::string text) {
  const auto answers = std::make_shared<TaskAnswers>();
  answers->text = std::move(text);
  answers->tasks_max = tasks_max;
  auto ask = [answers](const std::shared_ptr<ObservedLoop>& loop,
                       const std::shared_ptr<void>& end) noexcept {
    try {
      static_cast<void>(spawn(loop->loop(), walk_tasks(loop, answers, end)));
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the loop is silent.
    }
  };
  Task<> asking = run_on_each(loops, std::move(ask), patience);
  co_await std::move(asking);
  const std::lock_guard lock(answers->mutex);
  TaskRows list;
  list.total = answers->total;
  list.is_complete = answers->is_complete;
  for (const auto& loop : loops) {
    const auto found = answers->rows.find(loop.get());
    if (found == answers->rows.end()) {
      list.silent_loops.push_back(loop->name());
    } else {
      std::ranges::move(found->second, std::back_inserter(list.rows));
    }
  }
  co_return list;
}

}  // namespace tambour::inspector
