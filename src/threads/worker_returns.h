// Returns calls from worker threads to the loop whose task awaits them. A worker may outlive the
// loop, so it refers only to the loop's mailbox.
#pragma once

#include <memory>

#include <tambour/base/result.h>
#include <tambour/detail/operation.h>
#include <tambour/threads/worker_pool.h>

#include "loop/service.h"
#include "threads/mailbox.h"

namespace tambour::detail::threads {

using detail::WorkerCall;

class WorkerMailbox final : public Mailbox<WorkerCall, WorkerCall> {
 public:
  using Mailbox::Mailbox;

  /// Callable from any thread. Returns a call to the loop, or drops it if no task waits for it.
  void put(WorkerCall& call) noexcept;

  /// Drops the calls that have arrived, and those that are put later.
  void close() noexcept;
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

}  // namespace tambour::detail::threads
