// WorkerMailbox and WorkerReturns: calls come back to their loop, which resumes the tasks that
// await them.
#include "threads/worker_returns.h"

#include <cerrno>
#include <coroutine>
#include <utility>

#include <tambour/detail/resumption.h>

#include "loop/core.h"
#include "threads/worker_queue.h"

namespace tambour::detail::threads {

void WorkerMailbox::put(WorkerCall& call) noexcept {
  if (!Mailbox::put(call)) call.release();
}

void WorkerMailbox::close() noexcept {
  Mailbox::close();
  // From here on put() adds no call.
  while (WorkerCall* call = take()) call->release();
}

const std::shared_ptr<WorkerMailbox>& WorkerReturns::mailbox() {
  if (mailbox_ == nullptr) mailbox_ = std::make_shared<WorkerMailbox>(core_);
  return mailbox_;
}

void WorkerReturns::expect(WorkerCall& call) noexcept {
  expected_.push_back(call);
  core_.add_reference();
}

void WorkerReturns::notify_later(WorkerCall& call) noexcept {
  call.OnLoop::unlink();
  due_.push_back(call);
  core_.queue(*this);
}

void WorkerReturns::remove(WorkerCall& call) noexcept {
  call.OnLoop::unlink();
  core_.drop_reference();
}

void WorkerReturns::collect() noexcept {
  if (mailbox_ == nullptr) return;
  while (WorkerCall* call = mailbox_->take()) {
    call->returned_ = true;
    notify_later(*call);
  }
}

void WorkerReturns::run(detail::ReadyNode& ready) {
  auto& self = static_cast<WorkerReturns&>(ready);
  // Calls that become due meanwhile are delivered in the next iteration.
  while (WorkerCall* const call = self.due_.front()) {
    call->OnLoop::unlink();
    self.delivering_.push_back(*call);
  }
  while (WorkerCall* const call = self.delivering_.front()) self.deliver(*call);
}

void WorkerReturns::deliver(WorkerCall& call) {
  remove(call);
  const bool is_simulated = call.queue_ == nullptr;
  if (is_simulated && call.error_ == 0) call.work();
  // The task stops waiting while a worker still runs the call. A worker of the parent process never
  // returns it.
  if (!call.returned_) call.returned_ = call.mailbox_->refuse(call);
  const std::coroutine_handle<> awaiting = std::exchange(call.awaiting_, nullptr);
  core_.name_callback(call.spawned_at_);
  if (call.returned_) call.release();
  Resumption::run(awaiting);
}

Result<> WorkerReturns::reopen() noexcept {
  if (mailbox_ == nullptr) return {};
  if (auto replaced = replace_mailbox(mailbox_, core_); !replaced) return replaced;
  while (WorkerCall* const call = expected_.front()) {
    call->error_ = ECANCELED;
    notify_later(*call);
  }
  return {};
}

void WorkerReturns::close() noexcept {
  for (Calls* list : {&expected_, &due_, &delivering_}) {
    while (WorkerCall* const call = list->front()) {
      remove(*call);
      if (call->returned_) call->release();
    }
  }
  unlink();
  if (mailbox_ != nullptr) mailbox_->close();
}

}  // namespace tambour::detail::threads
