// Messages from other threads to a loop that may have been destroyed.
//
// A sender shares the loop's mailbox, and does not refer to the loop. The loop closes the mailbox
// when it is destroyed. Sending allocates nothing and cannot fail for any other reason.
#pragma once

#include <memory>
#include <mutex>

#include <tambour/detail/operation.h>
#include <tambour/result.h>
#include <tambour/run_on.h>

#include "loop/service.h"

namespace tambour::threads {

using detail::LoopMessage;

class LoopMailbox {
 public:
  explicit LoopMailbox(loop::Core& core) noexcept;

  /// Callable from any thread. Returns false if the loop was destroyed or refuses the message,
  /// which then stays with the caller. Otherwise the message must not be used after this call.
  [[nodiscard]] bool put(LoopMessage& message) noexcept;

  /// Guards the state that senders share with the loop.
  [[nodiscard]] std::mutex& mutex() noexcept { return mutex_; }

  /// True in a child after fork(2): the lock may be held by a thread that does not exist there, so
  /// only put() may be called.
  [[nodiscard]] bool is_of_parent() const noexcept;

  // The functions below are called by the loop.

  /// Returns the first message, or null.
  LoopMessage* take() noexcept;
  /// A later put() of this message fails. Returns true if it was in the mailbox: the caller then
  /// owns it.
  [[nodiscard]] bool refuse(LoopMessage& message) noexcept;
  /// A later put() of any message fails.
  void close() noexcept;

 private:
  std::mutex mutex_;
  loop::Core* core_;         ///< Null: the loop is destroyed.
  unsigned process_number_;  ///< Of the process that created the mailbox.
  detail::IntrusiveList<LoopMessage, LoopMailbox> arrived_;
};

/// The messages of one loop: those that it expects, each of which holds a reference to the loop,
/// and those that have arrived.
class LoopInbox final : public loop::Service, private detail::ReadyNode {
 public:
  explicit LoopInbox(loop::Core& core) noexcept : detail::ReadyNode(&run), core_(core) {}

  /// Throws std::bad_alloc.
  const std::shared_ptr<LoopMailbox>& mailbox();

  void expect(LoopMessage& message) noexcept;
  /// The message is not expected any more.
  void remove(LoopMessage& message) noexcept;
  /// A message that is being delivered is not expected any more.
  void delivered() noexcept;
  /// Delivers the message in the next iteration, even if it has not arrived.
  void deliver_later(LoopMessage& message) noexcept;

  void collect() noexcept override;
  /// In the child after fork(2): delivers all expected messages, because the threads that would
  /// send them exist in the parent only.
  Result<> reopen() noexcept override;
  void close() noexcept override;

 private:
  using Messages = detail::IntrusiveList<LoopMessage, LoopInbox>;
  static void run(ReadyNode& ready);

  loop::Core& core_;
  std::shared_ptr<LoopMailbox> mailbox_;
  Messages expected_;
  Messages due_;
  Messages delivering_;
};

}  // namespace tambour::threads
