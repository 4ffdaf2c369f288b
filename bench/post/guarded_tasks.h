// A vector of tasks behind a mutex, from which the loop takes all at once: what most programs do
// that have a loop without a queue of its own.
#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace bench {

class GuardedTasks {
 public:
  /// True where it was empty: the loop is to be woken.
  template <class Task>
  bool add(Task&& task) {
    const std::lock_guard lock(mutex_);
    tasks_.emplace_back(std::forward<Task>(task));
    return tasks_.size() == 1;
  }

  void run_all() {
    running_.clear();
    {
      const std::lock_guard lock(mutex_);
      running_.swap(tasks_);
    }
    for (auto& task : running_) task();
  }

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;
  std::vector<std::function<void()>> running_;  ///< Keeps its room.
};

}  // namespace bench
