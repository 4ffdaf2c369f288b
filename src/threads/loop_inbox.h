// Messages from other threads to a loop that may have been destroyed.
#pragma once

#include <memory>

#include <tambour/base/result.h>
#include <tambour/detail/operation.h>
#include <tambour/threads/run_on.h>

#include "loop/service.h"
#include "threads/mailbox.h"

namespace tambour::detail::threads {

using detail::LoopMessage;

class LoopMailbox final : public Mailbox<LoopMessage, LoopMailbox> {
 public:
  using Mailbox::Mailbox;
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

}  // namespace tambour::detail::threads
