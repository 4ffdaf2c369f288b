// JoinHandle: observes a spawned task, keeps its result, and passes its end on to the scope.
#include <tambour/task/join_handle.h>

#include <cerrno>
#include <exception>
#include <utility>

#include <tambour/task/scope.h>

#include "base/check.h"
#include "loop/core.h"

namespace tambour::detail {

JoinHandleBase::JoinHandleBase(JoinHandleBase&& other) noexcept
    : TaskObserver(), HlistHook(std::move(other)) {
  replace(other);
}

void JoinHandleBase::replace(JoinHandleBase& other) noexcept {
  if (!listed()) HlistHook::replace(other);
  task_ = std::exchange(other.task_, nullptr);
  scope_ = std::exchange(other.scope_, nullptr);
  core_ = std::exchange(other.core_, nullptr);
  thrown_ = std::exchange(other.thrown_, nullptr);
  join_ = std::exchange(other.join_, nullptr);
  state_ = std::exchange(other.state_, State::empty);
  if (task_ != nullptr) task_->set_observer(*this);
  if (join_ != nullptr) join_->handle_ = this;
  if (TaskWait* const wait = other.waiting_.front()) {
    wait->unlink();
    waiting_.push_back(*wait);
  }
}

void JoinHandleBase::start(TaskScope& scope, TaskPromiseBase& task, const std::source_location& at,
                           const std::source_location& function) {
  scope_ = &scope;
  task_ = &task;
  state_ = State::running;
  scope.start(task, *this, at, function);
}

loop::Core& JoinHandleBase::core() const noexcept {
  return core_ != nullptr ? *core_ : *scope_->core_;
}

std::coroutine_handle<> JoinHandleBase::task_ended(TaskPromiseBase& task) noexcept {
  TaskScope& scope = *scope_;
  thrown_ = task.exception();
  if (thrown_ == nullptr) {
    try {
      store(task);
    } catch (...) {
      thrown_ = std::current_exception();
    }
  }
  end(thrown_ != nullptr ? State::thrown : State::returned);
  if (thrown_ != nullptr) {
    scope_ = &scope;
    scope.failed_handles_.push_front(*this);
  }
  // Destroys the task, which may own this handle.
  return scope.end_task(task, nullptr) ? scope.finish_joins() : nullptr;
}

void JoinHandleBase::task_destroyed() noexcept { end(State::cancelled); }

void JoinHandleBase::end(State state) noexcept {
  core_ = scope_->core_;
  core_->attach();
  task_ = nullptr;
  scope_ = nullptr;
  state_ = state;
  // A stop request until the task is resumed leaves the result in the handle.
  if (!waiting_.empty()) join_->complete_unless_stopped();
}

void JoinHandleBase::outlive_scope() noexcept {
  unlist();
  scope_ = nullptr;
}

void JoinHandleBase::cancel() noexcept {
  if (task_ == nullptr) return;
  TaskScope& scope = *scope_;
  TaskPromiseBase& task = *task_;
  scope.core_->check_thread_unless_closed(scope.created_at_);
  end(State::cancelled);
  task.set_observer(scope);
  scope.destroy_task(task);
}

void JoinHandleBase::drop() noexcept {
  if (state_ != State::empty) core().check_thread_unless_closed(core().created_at());
  if (JoinWait* const join = std::exchange(join_, nullptr)) {
    join->handle_ = nullptr;
    // If the task of the wait has been resumed, there is nothing to complete. Otherwise it
    // completes now: the handle no longer keeps the core for a later stop request.
    if (join->linked()) join->complete(ECANCELED);
  }
  if (task_ != nullptr) std::exchange(task_, nullptr)->set_observer(*scope_);
  TaskScope* const scope = std::exchange(scope_, nullptr);
  const bool has_thrown = state_ == State::thrown;
  state_ = State::empty;
  loop::Core* const core = std::exchange(core_, nullptr);
  if (has_thrown) {
    if (listed()) unlist();
    std::exception_ptr thrown = std::exchange(thrown_, nullptr);
    if (scope != nullptr) {
      // The exception handler may destroy the scope.
      scope->report(std::move(thrown));
    } else if (!core->closed()) {
      core->throw_out_of_run(std::move(thrown));
    }
  }
  if (core != nullptr) core->detach();
}

void JoinHandleBase::begin_take() {
  if (state_ == State::taken) [[unlikely]]
    base::fail_check(
        "JoinHandle::join() was called again after it had returned the result of the task; keep "
        "the result");
  const State state = std::exchange(state_, State::taken);
  if (state != State::thrown) return;
  if (listed()) unlist();
  scope_ = nullptr;
  std::rethrow_exception(std::exchange(thrown_, nullptr));
}

JoinWait::JoinWait(JoinHandleBase& handle) noexcept
    : TaskWait((base::check(static_cast<bool>(handle),
                            "JoinHandle::join() was called on an empty handle; a handle is empty "
                            "when it was default-constructed or moved from"),
                handle.core()),
               std::source_location::current()),
      handle_(&handle) {
  handle.core().check_thread_unless_closed(handle.core().created_at());
}

JoinWait::JoinWait(JoinWait&& other) noexcept
    : TaskWait(static_cast<TaskWait&&>(other), "JoinHandle::join()"),
      handle_(std::exchange(other.handle_, nullptr)) {}

JoinWait::~JoinWait() {
  if (handle_ != nullptr && handle_->join_ == this) handle_->join_ = nullptr;
}

bool JoinWait::await_ready() const noexcept { return handle_->has_ended(); }

TaskWaits& JoinWait::queue() noexcept {
  if (handle_->join_ != nullptr) [[unlikely]]
    base::fail_check(
        "JoinHandle::join() is awaited by two tasks at the same time, but the result can be taken "
        "once; use a TaskEvent, or await it in one task");
  handle_->join_ = this;
  return handle_->waiting_;
}

int JoinWait::finish() noexcept {
  if (handle_ == nullptr) return ECANCELED;
  if (handle_->join_ == this) handle_->join_ = nullptr;
  if (error() != 0) return error();
  return handle_->state_ == JoinHandleBase::State::cancelled ? ECANCELED : 0;
}

}  // namespace tambour::detail
