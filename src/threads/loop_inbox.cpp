// LoopMailbox and LoopInbox: messages are put under a lock by any thread, and run by the loop, or
// refused after its end.
#include "threads/loop_inbox.h"

#include "loop/core.h"

namespace tambour::detail::threads {

const std::shared_ptr<LoopMailbox>& LoopInbox::mailbox() {
  if (mailbox_ == nullptr) mailbox_ = std::make_shared<LoopMailbox>(core_);
  return mailbox_;
}

void LoopInbox::expect(LoopMessage& message) noexcept {
  expected_.push_back(message);
  core_.add_reference();
}

void LoopInbox::remove(LoopMessage& message) noexcept {
  message.OnLoop::unlink();
  delivered();
}

void LoopInbox::delivered() noexcept { core_.drop_reference(); }

void LoopInbox::deliver_later(LoopMessage& message) noexcept {
  message.OnLoop::unlink();
  due_.push_back(message);
  core_.queue(*this);
}

void LoopInbox::collect() noexcept {
  if (mailbox_ == nullptr) return;
  while (LoopMessage* const message = mailbox_->take()) {
    message->received_ = true;
    deliver_later(*message);
  }
}

void LoopInbox::run(ReadyNode& ready) {
  auto& self = static_cast<LoopInbox&>(ready);
  // Messages that become due meanwhile are delivered in the next iteration.
  while (LoopMessage* const message = self.due_.front()) {
    message->OnLoop::unlink();
    self.delivering_.push_back(*message);
  }
  try {
    while (LoopMessage* const message = self.delivering_.front()) {
      message->OnLoop::unlink();
      message->deliver();
    }
  } catch (...) {
    // A coroutine of another library has thrown.
    self.core_.queue(self);
    throw;
  }
}

Result<> LoopInbox::reopen() noexcept {
  if (mailbox_ == nullptr) return {};
  if (auto replaced = replace_mailbox(mailbox_, core_); !replaced) return replaced;
  while (LoopMessage* const message = expected_.front()) deliver_later(*message);
  return {};
}

void LoopInbox::close() noexcept {
  if (mailbox_ != nullptr) {
    mailbox_->close();
    collect();
  }
  for (Messages* list : {&expected_, &due_, &delivering_}) {
    while (LoopMessage* const message = list->front()) {
      message->OnLoop::unlink();
      message->drop();
    }
  }
  unlink();
}

}  // namespace tambour::detail::threads
