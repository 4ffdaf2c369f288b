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

#include "inspector/json.h"

namespace tambour::inspector {
namespace {

/// Takes a fraction of a millisecond, unless a task awaits many.
constexpr std::size_t tasks_of_slice = 128;

using Selector = PageSelector<TaskRow>;

/// What the loops have answered. Shared, because a loop may answer too late.
struct TaskAnswers {
  ListQuery query;
  std::size_t tasks_max = 0;
  std::map<const ObservedLoop*, std::size_t> indexes;
  std::mutex mutex;
  bool is_complete = true;
  std::size_t total = 0;
  std::size_t matching = 0;
  std::map<const ObservedLoop*, std::vector<TaskRow>> rows;
};

Selector::IsBefore order_of(const ListQuery& query) {
  return [by_wait = query.sort == "waited"](const TaskRow& a, const TaskRow& b) {
    if (by_wait && a.waited_ns != b.waited_ns) return a.waited_ns > b.waited_ns;
    if (a.loop_index != b.loop_index) return a.loop_index < b.loop_index;
    return a.index < b.index;
  };
}

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
  const ListQuery& query = answers->query;
  // Any row of this loop that is on the page is among its first ones.
  Selector selector(0, query.offset + query.limit, order_of(query));
  Slices slices(loop->loop());
  std::size_t total = 0;
  TaskWalk walk(loop->loop());
  bool is_complete = true;
  for (auto tasks = walk.next(tasks_of_slice); !tasks.empty(); tasks = walk.next(tasks_of_slice)) {
    is_complete = total + tasks.size() <= answers->tasks_max;
    for (const TaskSnapshot& task : tasks) {
      if (total == answers->tasks_max) break;
      TaskRow row = row_of(*loop, task);
      row.loop_index = answers->indexes.at(loop.get());
      row.index = total++;
      if (matches(row, query.text)) selector.add(std::move(row));
    }
    if (!is_complete) break;
    const Result<> resumed = co_await slices.next();
    if (!resumed) co_return;
  }
  std::vector<TaskRow> rows;
  rows.reserve(selector.page_size());
  while (selector.move_row(rows)) {
    if (!slices.is_over()) continue;
    const Result<> resumed = co_await slices.next();
    if (!resumed) co_return;
  }
  const std::lock_guard lock(answers->mutex);
  answers->rows[loop.get()] = std::move(rows);
  answers->total += total;
  answers->matching += selector.added();
  answers->is_complete = answers->is_complete && is_complete;
}

}  // namespace

Task<TaskRows> list_tasks(EventLoop& loop, ObservedLoops loops, Duration patience,
                          std::size_t tasks_max, ListQuery query) {
  const auto answers = std::make_shared<TaskAnswers>();
  answers->query = query;
  answers->tasks_max = tasks_max;
  for (std::size_t i = 0; i < loops.size(); ++i) answers->indexes.emplace(loops[i].get(), i);
  auto ask = [answers](const std::shared_ptr<ObservedLoop>& observed,
                       const std::shared_ptr<void>& end) noexcept {
    try {
      static_cast<void>(spawn(observed->loop(), walk_tasks(observed, answers, end)));
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the loop is silent.
    }
  };
  Task<> asking = run_on_each(loops, std::move(ask), patience);
  co_await std::move(asking);
  TaskRows list;
  std::map<const ObservedLoop*, std::vector<TaskRow>> rows;
  {
    const std::lock_guard lock(answers->mutex);
    list.matching = answers->matching;
    list.total = answers->total;
    list.is_complete = answers->is_complete;
    rows.swap(answers->rows);
  }
  Slices slices(loop);
  Selector selector(query.offset, query.limit, order_of(query));
  for (const auto& observed : loops) {
    const auto found = rows.find(observed.get());
    if (found == rows.end()) {
      list.silent_loops.push_back(observed->name());
      continue;
    }
    for (; !found->second.empty(); found->second.pop_back()) {
      selector.add(std::move(found->second.back()));
      if (!slices.is_over()) continue;
      const Result<> resumed = co_await slices.next();
      if (!resumed) co_return list;
    }
  }
  Task<> finishing = finish_page(selector, list.rows, slices);
  co_await std::move(finishing);
  co_return list;
}

}  // namespace tambour::inspector
