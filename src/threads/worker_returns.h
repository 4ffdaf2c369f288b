// Returns calls from worker threads to the loop whose task awaits them.
//
// A worker may outlive the loop, so it refers only to the loop's mailbox. The workers and the loop
// share it, and the loop closes it when it is destroyed.
#pragma once

#include <memory>
#include <mutex>

#include <tambour/detail/operation.h>
#include <tambour/result.h>
#include <tambour/worker_pool.h>

#include "loop/service.h"

namespace tambour::threads {

using detail::WorkerCall;

class WorkerMailbox {
 public:
  explicit WorkerMailbox(loop::Core& core) noexcept : core_(&core) {}

  /// Callable from any thread. Returns a call to the loop, or drops it if no task waits for it.
  void put(WorkerCall& call) noexcept;

  /// The functions below are called by the loop.

  /// Returns the first call that has arrived, or null.
  WorkerCall* take() noexcept;

  /// The call is no longer awaited. Returns true if it had arrived: the caller then owns it.
  bool disown(WorkerCall& call) noexcept;

  void close() noexcept;

 private:
  std::mutex mutex_;
  loop::Core* core_;  ///< Null: the loop is destroyed.
  detail::IntrusiveList<WorkerCall> arrived_;
};

/// The calls that one loop awaits. Each holds a reference to the loop.
class WorkerReturns final : public loop::Service, private detail::ReadyNode {
 public:
  explicit WorkerReturns(loop::Core& core) noexcept : detail::ReadyNode(&run), core_(core) {}

  /// Throws std::bad_alloc.
  const std::shared_ptr<WorkerMailbox>& mailbox();

  [[nodiscard]] loop::Core& core() noexcept { return core_; }

  void expect(WorkerCall& call) noexcept;
  /// Resumes the call's task in a later iteration.
  void notify_later(WorkerCall& call) noexcept;
  /// Call when the awaiting task is destroyed.
  void remove(WorkerCall& call) noexcept;

  /// Collects calls that have arrived.
  void collect() noexcept override;

  /// In the child after fork(2): cancels all calls, because the workers exist in the parent only.
  Result<> reopen() noexcept override;
  void close() noexcept override;

 private:
  static void run(detail::ReadyNode& ready);
  void deliver(WorkerCall& call);

  loop::Core& core_;
  std::shared_ptr<WorkerMailbox> mailbox_;
  using Calls = detail::IntrusiveList<WorkerCall, WorkerReturns>;
  Calls expected_;
  Calls due_;
  Calls delivering_;
};

}  // namespace tambour::threads
