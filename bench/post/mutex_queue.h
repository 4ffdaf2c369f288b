// A vector of tasks with a mutex, from which the loop takes all tasks at once: common in programs
// whose loop has no queue of its own.
#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace bench {

class MutexQueue {
 public:
  /// Returns true if the queue was empty: the caller must wake the loop.
  template <class Task>
  bool push(Task&& task) {
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
  std::vector<std::function<void()>> running_;  ///< A member, so that its capacity is reused.
};

}  // namespace bench
