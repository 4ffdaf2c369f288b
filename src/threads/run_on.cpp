// RemoteCall: carries a call to another loop and its result back, if both loops still exist.
#include <tambour/threads/run_on.h>

#include <cerrno>
#include <mutex>
#include <new>

#include <tambour/loop/event_loop.h>

#include "base/current_error.h"
#include "loop/core.h"
#include "task/scope_access.h"
#include "threads/loop_inbox.h"

namespace tambour {

/// The ownership of the remote side. Its destructor ends the call: with its result if the task has
/// ended, otherwise with the error that is set.
class detail::RemoteCall::RemoteEnd {
 public:
  explicit RemoteEnd(detail::RemoteCall& call) noexcept : call_(&call) {}
  RemoteEnd(RemoteEnd&& other) noexcept : call_(std::exchange(other.call_, nullptr)) {}
  RemoteEnd& operator=(RemoteEnd&&) = delete;
  ~RemoteEnd() {
    if (call_ != nullptr) call_->finish();
  }

  [[nodiscard]] detail::RemoteCall& operator*() const noexcept { return *call_; }

 private:
  detail::RemoteCall* call_;
};

void detail::RemoteCall::start(EventLoop& home, EventLoop& to, std::coroutine_handle<> awaiting,
                               const TaskContext& context) {
  detail::loop::Core& core = detail::loop::core_of(home);
  core.check_thread();
  auto inbox = core.open_service<detail::threads::LoopInbox>();
  if (!inbox) throw std::bad_alloc();
  mailbox_ = (*inbox)->mailbox();
  inbox_ = *inbox;
  awaiting_ = awaiting;
  spawned_at_ = context.spawned_at;
  inbox_->expect(returned_);
  if (context.stop.stop_requested()) {
    home_error_ = ECANCELED;
    return inbox_->deliver_later(returned_);
  }
  error_ = ECANCELED;
  retain();
  try {
    to.post([end = RemoteEnd(*this), &to]() mutable { arrive(std::move(end), to); }, spawned_at_);
  } catch (...) {
    // The RemoteEnd is destroyed, so the task resumes in the next iteration.
    error_ = detail::base::errno_of_current_exception();
  }
}

void detail::RemoteCall::arrive(RemoteEnd end, EventLoop& loop) noexcept {
  detail::RemoteCall& call = *end;
  if (call.mailbox_->is_of_parent()) return;
  try {
    call.error_ = ENOMEM;
    auto inbox = detail::loop::core_of(loop).open_service<detail::threads::LoopInbox>();
    if (!inbox) return;
    const auto& mailbox = (*inbox)->mailbox();
    {
      const std::lock_guard lock(call.mailbox_->mutex());
      if (call.stop_requested_) return;
      call.remote_ = mailbox;
    }
    call.arrived_ = true;
    const std::source_location spawned_at = call.spawned_at_;
    spawn(loop, serve(std::move(end), loop), spawned_at);
  } catch (const std::bad_alloc&) {
    return;  // The RemoteEnd is destroyed.
  }
}

Task<> detail::RemoteCall::serve(RemoteEnd end, EventLoop& loop) {
  struct ScopeReset {
    explicit ScopeReset(detail::RemoteCall& served) noexcept : call(served) {}
    ScopeReset(const ScopeReset&) = delete;
    ScopeReset& operator=(const ScopeReset&) = delete;
    ~ScopeReset() { call.scope_ = nullptr; }
    detail::RemoteCall& call;
  };
  detail::RemoteCall& call = *end;
  // If the loop is destroyed, so is this frame.
  call.error_ = ECANCELED;
  try {
    TaskScope scope(loop);
    const ScopeReset reset(call);
    call.scope_ = &scope;
    scope.spawn(call.run(), call.spawned_at_);
    co_await detail::task::ScopeAccess::join_to_end(scope);
  } catch (...) {
    call.thrown_ = std::current_exception();
  }
  call.error_ = 0;
}

void detail::RemoteCall::finish() noexcept {
  if (arrived_) destroy_task();
  // The home side may delete this object as soon as it has the message.
  const std::shared_ptr<detail::threads::LoopMailbox> mailbox = mailbox_;
  if (!mailbox->put(returned_)) release();
}

void detail::RemoteCall::request_stop() noexcept {
  if (mailbox_->is_of_parent()) return;
  std::shared_ptr<detail::threads::LoopMailbox> remote;
  {
    const std::lock_guard lock(mailbox_->mutex());
    if (std::exchange(stop_requested_, true)) return;
    remote = remote_;
  }
  if (remote == nullptr) return stop_waiting();
  retain();
  if (!remote->put(stop_)) release();
}

/// The call has not arrived, and now never starts.
void detail::RemoteCall::stop_waiting() noexcept {
  destroy_task();
  if (!returned_.OnLoop::linked() || returned_.received_) return;
  home_error_ = ECANCELED;
  inbox_->deliver_later(returned_);
}

void detail::RemoteCall::Stop::deliver() {
  if (call.scope_ != nullptr) call.scope_->request_stop();
  call.release();
}

void detail::RemoteCall::Returned::deliver() {
  call.inbox_->delivered();
  // After fork(2), or after a stop request.
  if (!received_ && call.home_error_ == 0) call.home_error_ = ECANCELED;
  call.delivered_ = true;
  if (received_ || call.mailbox_->refuse(*this)) call.release();
  detail::Resumption::run(std::exchange(call.awaiting_, nullptr));
}

void detail::RemoteCall::Returned::drop() noexcept {
  if (!received_) return;
  call.delivered_ = true;
  call.release();
}

void detail::RemoteCall::abandon() noexcept {
  if (inbox_ != nullptr && !delivered_) {
    if (returned_.OnLoop::linked()) inbox_->remove(returned_);
    if (!returned_.received_) request_stop();
    if (returned_.received_ || mailbox_->refuse(returned_)) release();
  }
  release();
}

}  // namespace tambour
