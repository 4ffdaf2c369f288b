// How what was done on a worker comes back to the loop whose task waits for it.
//
// Workers may outlive the loop. They know its mailbox, which they share, and which is closed when
// the loop is destroyed.
#pragma once

#include <memory>
#include <mutex>

#include <tambour/operation.h>
#include <tambour/result.h>
#include <tambour/worker_pool.h>

namespace tambour::loop {

class Core;

class WorkerMailbox {
 public:
  explicit WorkerMailbox(Core& core) noexcept : core_(&core) {}

  /// Any thread: gives a call back to the loop, or, where nobody waits for it, drops it.
  void put(WorkerCall& call) noexcept;

  /// The loop, from here on:

  /// The first that has come; null: none.
  WorkerCall* take() noexcept;

  /// Nobody waits for the call any more. True where it had come: it is the caller's.
  bool disown(WorkerCall& call) noexcept;

  void close() noexcept;

 private:
  std::mutex mutex_;
  Core* core_;  ///< Null: it is gone.
  LinkList arrived_;
};

/// What one loop waits for. Calls hold the loop in its run().
class WorkerReturns final : private Ready {
 public:
  explicit WorkerReturns(Core& core) noexcept : Ready(&run), core_(core) {}

  /// Throws std::bad_alloc.
  const std::shared_ptr<WorkerMailbox>& mailbox();

  [[nodiscard]] Core& core() noexcept { return core_; }

  void expect(WorkerCall& call) noexcept;
  /// Resumes its task in a later turn.
  void tell_later(WorkerCall& call) noexcept;
  /// Its task is gone.
  void forget(WorkerCall& call) noexcept;

  /// Something may have come.
  void look() noexcept;

  /// In the child after fork(2): no worker of the parent's will ever send anything back.
  Result<> reopen() noexcept;
  void abandon() noexcept;

 private:
  static void run(Ready& ready);
  void deliver(WorkerCall& call);

  Core& core_;
  std::shared_ptr<WorkerMailbox> mailbox_;
  LinkList expected_;  ///< All of these lists are of WorkerCall::OnLoop.
  LinkList due_;
  LinkList delivering_;
};

}  // namespace tambour::loop
