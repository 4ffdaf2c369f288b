// Tasks from any thread to the loop's: many producers, one consumer, first in first out.
//
// Producers push onto a stack with one compare-and-swap; the consumer takes the whole stack with
// one exchange and turns it over. No lock, so nobody waits for a producer that was preempted.
#pragma once

#include <atomic>

#include <tambour/callback.h>

namespace tambour::loop {

class PostQueue {
 public:
  PostQueue() = default;
  PostQueue(const PostQueue&) = delete;
  PostQueue& operator=(const PostQueue&) = delete;
  ~PostQueue() { clear(); }

  /// The consumer: destroys what was posted, unrun.
  void clear() noexcept;

  /// Any thread. Throws std::bad_alloc.
  void push(Callback<void()> task);

  /// Any thread.
  [[nodiscard]] bool empty() const noexcept {
    return posted_.load(std::memory_order_acquire) == nullptr && taken_ == nullptr;
  }

  /// The consumer: takes what was posted before this call, unless some of what was taken before has
  /// still to be run.
  void take() noexcept;

  /// The consumer: runs what was taken. A task that throws is gone; those behind it are run by the
  /// next call. Returns how many were run.
  std::size_t run();

 private:
  struct Task {
    Task* next;
    Callback<void()> function;
  };

  static void destroy(Task* first) noexcept;

  std::atomic<Task*> posted_{nullptr};
  Task* taken_ = nullptr;  ///< The consumer's, in the order of posting.
};

}  // namespace tambour::loop
