#include "loop/worker_returns.h"

#include <cerrno>
#include <coroutine>
#include <new>
#include <utility>

#include <tambour/resumption.h>

#include "loop/core.h"
#include "loop/worker_queue.h"

namespace tambour::loop {

void WorkerMailbox::put(WorkerCall& call) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (core_ != nullptr && !call.abandoned_) {
      arrived_.push_back(call);
      // Under the lock, so that the loop still exists.
      core_->worker_returned();
      return;
    }
  }
  call.release();
}

WorkerCall* WorkerMailbox::take() noexcept {
  const std::lock_guard lock(mutex_);
  auto* call = static_cast<WorkerCall*>(arrived_.first());
  if (call != nullptr) call->unlink();
  return call;
}

bool WorkerMailbox::disown(WorkerCall& call) noexcept {
  const std::lock_guard lock(mutex_);
  call.abandoned_ = true;
  const bool has_come = call.linked();
  call.unlink();
  return has_come;
}

void WorkerMailbox::close() noexcept {
  {
    const std::lock_guard lock(mutex_);
    core_ = nullptr;
  }
  // From here on put() adds no call.
  while (WorkerCall* call = take()) call->release();
}

const std::shared_ptr<WorkerMailbox>& WorkerReturns::mailbox() {
  if (mailbox_ == nullptr) mailbox_ = std::make_shared<WorkerMailbox>(core_);
  return mailbox_;
}

void WorkerReturns::expect(WorkerCall& call) noexcept {
  expected_.push_back(call.on_loop_);
  core_.add_reference();
}

void WorkerReturns::tell_later(WorkerCall& call) noexcept {
  call.on_loop_.unlink();
  due_.push_back(call.on_loop_);
  core_.queue(*this);
}

void WorkerReturns::forget(WorkerCall& call) noexcept {
  call.on_loop_.unlink();
  core_.drop_reference();
}

void WorkerReturns::look() noexcept {
  if (mailbox_ == nullptr) return;
  while (WorkerCall* call = mailbox_->take()) {
    call->returned_ = true;
    tell_later(*call);
  }
}

void WorkerReturns::run(Ready& ready) {
  auto& self = static_cast<WorkerReturns&>(ready);
  // Calls that become due meanwhile are delivered in the next iteration.
  while (Link* link = self.due_.first()) {
    link->unlink();
    self.delivering_.push_back(*link);
  }
  while (Link* link = self.delivering_.first())
    self.deliver(static_cast<WorkerCall::OnLoop*>(link)->call);
}

void WorkerReturns::deliver(WorkerCall& call) {
  forget(call);
  const bool is_simulated = call.queue_ == nullptr;
  if (is_simulated && call.error_ == 0) call.work();
  // The task stops waiting while a worker still runs the call. A worker of the parent process never
  // returns it, and its mailbox must not be locked.
  if (!call.returned_ && !call.queue_->is_of_parent()) call.returned_ = call.mailbox_->disown(call);
  const std::coroutine_handle<> awaiting = std::exchange(call.awaiting_, nullptr);
  if (call.returned_) call.release();
  Resumption::run(awaiting);
}

Result<> WorkerReturns::reopen() noexcept {
  if (mailbox_ == nullptr) return {};
  std::shared_ptr<WorkerMailbox> fresh;
  try {
    fresh = std::make_shared<WorkerMailbox>(core_);
    // The former mailbox may have been locked during the fork: leak it, so that it is never used
    // again.
    static_cast<void>(new std::shared_ptr<WorkerMailbox>(mailbox_));
  } catch (const std::bad_alloc&) {
    return std::unexpected(system_error(ENOMEM));
  }
  mailbox_ = std::move(fresh);
  while (Link* link = expected_.first()) {
    WorkerCall& call = static_cast<WorkerCall::OnLoop*>(link)->call;
    call.error_ = ECANCELED;
    tell_later(call);
  }
  return {};
}

void WorkerReturns::abandon() noexcept {
  for (LinkList* list : {&expected_, &due_, &delivering_}) {
    while (Link* link = list->first()) {
      WorkerCall& call = static_cast<WorkerCall::OnLoop*>(link)->call;
      forget(call);
      if (call.returned_) call.release();
    }
  }
  unlink();
  if (mailbox_ != nullptr) mailbox_->close();
}

}  // namespace tambour::loop
