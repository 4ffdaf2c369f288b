// LoopMailbox and LoopInbox: messages are put under a lock by any thread, and run by the loop, or
// refused after its end.
#include "threads/loop_inbox.h"

#include <new>
#include <utility>

#include "base/failure.h"
#include "base/process_number.h"
#include "loop/core.h"

namespace tambour::threads {

LoopMailbox::LoopMailbox(loop::Core& core) noexcept : core_(&core) {
  base::count_forks();
  process_number_ = base::process_number();
}

bool LoopMailbox::is_of_parent() const noexcept {
  return process_number_ != base::process_number();
}

bool LoopMailbox::put(LoopMessage& message) noexcept {
  if (is_of_parent()) return false;
  const std::lock_guard lock(mutex_);
  if (core_ == nullptr || message.refused_) return false;
  arrived_.push_back(message);
  // Under the lock, so that the loop still exists.
  core_->async_sent();
  return true;
}

LoopMessage* LoopMailbox::take() noexcept {
  const std::lock_guard lock(mutex_);
  LoopMessage* const message = arrived_.front();
  if (message != nullptr) message->InTransit::unlink();
  return message;
}

bool LoopMailbox::refuse(LoopMessage& message) noexcept {
  if (is_of_parent()) return false;
  const std::lock_guard lock(mutex_);
  message.refused_ = true;
  const bool has_arrived = message.InTransit::linked();
  message.InTransit::unlink();
  return has_arrived;
}

void LoopMailbox::close() noexcept {
  const std::lock_guard lock(mutex_);
  core_ = nullptr;
}

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
  std::shared_ptr<LoopMailbox> fresh;
  try {
    fresh = std::make_shared<LoopMailbox>(core_);
    // The former mailbox may have been locked during the fork: leak it, so that it is never used
    // again.
    static_cast<void>(new std::shared_ptr<LoopMailbox>(mailbox_));
  } catch (const std::bad_alloc&) {
    return base::failure(ENOMEM);
  }
  mailbox_ = std::move(fresh);
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

}  // namespace tambour::threads
