// The tasks of the observed loops, and what they await.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/task/task.h>

#include "inspector/observed_loops.h"
#include "inspector/search.h"

namespace tambour::inspector {

struct TaskRow {
  std::string loop{};
  std::size_t depth = 0;     ///< The number of tasks that await it.
  std::string spawned_at{};  ///< Of the outermost task that awaits it.
  std::string_view awaits{};
  std::string awaits_at{};
  int fd = -1;  ///< Of a wait on a descriptor.
  std::int64_t waited_ns = 0;
  std::size_t loop_index = 0;  ///< The loop, and
  std::size_t index = 0;       ///< the task in the order of its loop.
};

struct TaskRows {
  /// The page. In the order of the loops, a task is followed by those that it awaits.
  std::vector<TaskRow> rows{};
  std::size_t matching = 0;  ///< On any page.
  std::size_t total = 0;     ///< Matching or not.
  std::vector<std::string> silent_loops{};
  bool is_complete = true;  ///< False if a loop has more than the limit.
};

/// Lists the tasks that a query selects: sorted by "waited", longest first, or else in the order of
/// the loops. `tasks_max`: of a loop. Loops that do not answer within `patience` are silent.
/// Awaited on `loop`. Throws std::bad_alloc.
[[nodiscard]] Task<TaskRows> list_tasks(EventLoop& loop, ObservedLoops loops, Duration patience,
                                        std::size_t tasks_max, ListQuery query);

}  // namespace tambour::inspector
