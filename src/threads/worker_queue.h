// The threads of a worker pool and the queue of calls they run.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/detail/operation.h>
#include <tambour/threads/worker_pool.h>

#include "base/process_number.h"

namespace tambour::detail::threads {

using detail::WorkerCall;

/// Owns the calls it contains. Thread-safe. In the child after fork(2) no function may be called,
/// because the lock may be held by a thread that does not exist there.
class WorkerQueue {
 public:
  /// Throws std::bad_alloc.
  WorkerQueue(unsigned threads_max, std::size_t queued_max);
  WorkerQueue(const WorkerQueue&) = delete;
  WorkerQueue& operator=(const WorkerQueue&) = delete;
  ~WorkerQueue() = default;

  /// Fails with EAGAIN or ENOMEM if there is no thread and none can be created, and with EAGAIN if
  /// the queue is full.
  Result<> push(WorkerCall& call) noexcept;

  /// Returns the former state of the call. If it was waiting, the caller owns it again.
  WorkerCall::State withdraw(WorkerCall& call) noexcept;

  void wait_until_ended(const WorkerCall& call) noexcept;

  [[nodiscard]] WorkerPoolStats stats() noexcept;

  /// Cancels and returns the waiting calls, and waits for the running ones. Must not be called on a
  /// thread of the queue.
  void close() noexcept;

  /// True in a forked child of the process that created the queue.
  [[nodiscard]] bool is_of_parent() const noexcept { return !process_.is_current(); }

 private:
  Result<> start_thread() noexcept;
  void work() noexcept;
  /// Requires the lock; the caller must then call send_back().
  static void cancel(WorkerCall& call) noexcept;
  /// Must be called without the lock: a call that is not awaited is destroyed, and its destructor
  /// may push another one.
  static void send_back(WorkerCall& call) noexcept;

  const unsigned threads_max_;
  const std::size_t queued_max_;
  const base::OwningProcess process_;
  std::mutex mutex_;
  std::condition_variable pushed_;
  std::condition_variable ended_;
  detail::IntrusiveList<WorkerCall> waiting_;
  std::size_t waiting_count_ = 0;
  unsigned idle_ = 0;
  std::size_t busy_ = 0;  ///< Threads that run a call.
  std::uint64_t completed_ = 0;
  std::uint64_t refused_ = 0;
  unsigned waiting_threads_ = 0;  ///< The number of threads that wait for a call to end.
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tambour::detail::threads
