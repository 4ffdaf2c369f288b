// The threads of a pool, and what they have to do.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

#include <tambour/operation.h>
#include <tambour/result.h>
#include <tambour/worker_pool.h>

#include "base/process_number.h"

namespace tambour::loop {

/// Each call in it is owned by it. Any thread; but of its functions, none is called in the child
/// after fork(2), where the lock may be held by a thread that is not there.
class WorkerQueue {
 public:
  /// Throws std::bad_alloc.
  WorkerQueue(unsigned threads_max, std::size_t queued_max);
  WorkerQueue(const WorkerQueue&) = delete;
  WorkerQueue& operator=(const WorkerQueue&) = delete;
  ~WorkerQueue() = default;

  /// EAGAIN or ENOMEM if there is no thread, and the system allows none; EAGAIN if as many calls as
  /// may be queued wait for one.
  Result<> push(WorkerCall& call) noexcept;

  /// What had become of the call. If it waited, it is the caller's again.
  WorkerCall::State withdraw(WorkerCall& call) noexcept;

  void wait_until_ended(const WorkerCall& call) noexcept;

  /// Sends back what waits, and waits for what runs. Not from one of the threads.
  void close() noexcept;

  /// True in the child of the process that made it.
  [[nodiscard]] bool is_of_parent() const noexcept { return made_in_ != base::process_number(); }

 private:
  Result<> start_thread() noexcept;
  void work() noexcept;
  /// Under the lock; it is to be sent back then.
  static void cancel(WorkerCall& call) noexcept;
  /// Never under the lock: what nobody waits for is destroyed, and its destructor may push more.
  static void send_back(WorkerCall& call) noexcept;

  const unsigned threads_max_;
  const std::size_t queued_max_;
  unsigned made_in_ = 0;  ///< base::process_number()
  std::mutex mutex_;
  std::condition_variable pushed_;
  std::condition_variable ended_;
  LinkList waiting_;
  std::size_t waiting_count_ = 0;
  unsigned idle_ = 0;
  std::size_t busy_ = 0;     ///< Threads that run a call.
  unsigned reclaiming_ = 0;  ///< How many wait for a call to end.
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tambour::loop
