// CompletionState: carries the result of a callback to the loop of the awaiting task, if both still
// exist.
#include <cerrno>
#include <new>

#include <tambour/detail/completion_state.h>
#include <tambour/loop/event_loop.h>

#include "base/check.h"
#include "loop/core.h"
#include "threads/loop_inbox.h"

namespace tambour::detail {

void CompletionState::begin(EventLoop& loop, std::coroutine_handle<> awaiting) {
  loop::Core& core = loop::core_of(loop);
  core.check_thread();
  auto inbox = core.open_service<threads::LoopInbox>();
  if (!inbox) throw std::bad_alloc();
  mailbox_ = (*inbox)->mailbox();
  inbox_ = *inbox;
  loop_ = &loop;
  awaiting_ = awaiting;
  inbox_->expect(*this);
}

void CompletionState::send() noexcept {
  retain();
  // No mailbox: begin() has failed.
  if (mailbox_ == nullptr || !mailbox_->put(*this)) release();
}

void CompletionState::drop_completion() noexcept {
  if (completions_.fetch_sub(1, std::memory_order_acq_rel) == 1 && claim()) {
    error_ = system_error(ECANCELED);
    send();
  }
  release();
}

void CompletionState::set_stop_handler(Callback<void()> handler) noexcept {
  base::check(initiating_ && !stop_handler_,
              "Completion::on_stop() may be called once, by the function that from_callback() "
              "invokes");
  stop_handler_ = std::move(handler);
}

void CompletionState::call_stop_handler() noexcept {
  // The handler may complete the wait, which does not resume the task now.
  const Callback<void()> handler = std::move(stop_handler_);
  // The handler may destroy the task, and this state with it.
  EventLoop* const loop = inbox_ != nullptr ? loop_ : nullptr;
  try {
    handler();
  } catch (...) {
    if (loop != nullptr) loop::core_of(*loop).throw_out_of_run(std::current_exception());
  }
}

void CompletionState::request_stop() noexcept {
  // After the loop was destroyed, the task is never resumed.
  if (inbox_ == nullptr || is_claimed()) return;
  if (stop_handler_) return call_stop_handler();
  if (!claim()) return;
  home_error_ = true;
  inbox_->deliver_later(*this);
}

void CompletionState::deliver() {
  inbox_->delivered();
  if (!received_) {
    // After a stop request, or after fork(2), when another thread may have been completing this.
    home_error_ = true;
    claimed_.store(true, std::memory_order_release);
  }
  delivered_ = true;
  if (received_ || mailbox_->refuse(*this)) release();
  Resumption::run(std::exchange(awaiting_, nullptr));
}

void CompletionState::drop() noexcept {
  inbox_ = nullptr;
  if (received_) release();
}

void CompletionState::abandon() noexcept {
  if (mailbox_ != nullptr && !delivered_) {
    if (OnLoop::linked()) inbox_->remove(*this);
    if (claim() && stop_handler_) call_stop_handler();
    if (inbox_ != nullptr && (received_ || mailbox_->refuse(*this))) release();
  }
  stop_handler_ = nullptr;
  release();
}

Error CompletionState::take_error() const {
  if (home_error_) return system_error(ECANCELED);
  if (thrown_ != nullptr) std::rethrow_exception(thrown_);
  return error_;
}

}  // namespace tambour::detail
