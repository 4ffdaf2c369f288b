// IoHandle and IoWait: closing a descriptor while tasks wait for it, moving it to another loop, and
// waiting for readiness.
#include <tambour/net/io_handle.h>

#include <cerrno>
#include <new>
#include <utility>

#include <tambour/loop/event_loop.h>

#include "backend/system.h"
#include "base/check.h"
#include "io/io_operation.h"
#include "loop/core.h"

namespace tambour {

IoHandle::IoHandle(EventLoop& loop, int fd, std::source_location function) noexcept
    : loop_(&loop), system_(&detail::loop::core_of(loop).backend().system()), fd_(fd) {
  detail::loop::Core& core = detail::loop::core_of(loop);
  core.check_thread(function);
  // The loop may still have state for an earlier file with the same descriptor.
  core.backend().invalidate(fd);
}

IoHandle::IoHandle(IoHandle&& other) noexcept { take(other); }

IoHandle& IoHandle::operator=(IoHandle&& other) noexcept {
  if (this != &other) {
    if (is_open()) close();
    take(other);
  }
  return *this;
}

void IoHandle::take(IoHandle& other) noexcept {
  loop_ = other.loop_;
  system_ = other.system_;
  operations_ = std::exchange(other.operations_, {});
  fd_ = std::exchange(other.fd_, -1);
  for (detail::io::IoOperation* operation : operations_) {
    if (operation != nullptr && operation->wait() != nullptr) operation->wait()->handle_ = this;
  }
}

void IoHandle::stop_waiting(bool to_write) noexcept {
  detail::io::IoOperation* const operation = std::exchange(this->operation(to_write), nullptr);
  if (operation == nullptr) return;
  detail::IoWait* const wait = operation->wait();
  if (wait == nullptr) {
    delete operation;
    return;
  }
  wait->operation_ = operation;
  wait->state_ = detail::IoWait::State::dropped;
  wait->detached();
}

int IoHandle::release() noexcept {
  stop_waiting(false);
  stop_waiting(true);
  return std::exchange(fd_, -1);
}

void IoHandle::close() noexcept {
  if (fd_ < 0) return;
  const int fd = release();
  // A handle may be destroyed after its loop.
  if (detail::loop::Core* const core = detail::loop::Core::find_on_this_thread(loop_)) {
    core->backend().close(fd);
  } else {
    system_->close(fd);
  }
}

void IoHandle::leave_loop() noexcept {
  detail::base::check(
      has_loop(),
      "move_to() or spawn_on() was called with a default-constructed stream or socket, which "
      "has no loop; open it first");
  detail::loop::Core& core = detail::loop::core_of(*loop_);
  core.check_thread();
  stop_waiting(false);
  stop_waiting(true);
  if (is_open()) core.backend().deregister(fd_);
  loop_ = nullptr;  // If the handle is destroyed before enter_loop().
}

void IoHandle::enter_loop(EventLoop& loop) noexcept {
  loop_ = &loop;
  detail::backend::Backend& backend = detail::loop::core_of(loop).backend();
  system_ = &backend.system();
  // The loop may still have state for an earlier file with the same descriptor.
  if (is_open()) backend.invalidate(fd_);
}

bool detail::IoWait::try_now() noexcept {
  if (!handle_->is_open()) {
    outcome = -EBADF;
    return true;
  }
  detail::loop::Core& core = detail::loop::core_of(handle_->loop());
  core.check_thread();
  return first_call_ != detail::FirstCall::when_ready && may_continue(core) && step(core);
}

bool detail::IoWait::try_now_or_wait() noexcept {
  detail::io::IoOperation*& operation = handle_->operation(to_write_);
  if (operation != nullptr && operation->wait() != nullptr) [[unlikely]]
    detail::base::fail_check(
        "%s of fd %d: another task is already waiting to %s it; let one task %s at a time",
        to_write_ ? "write" : "read", handle_->fd(), to_write_ ? "write" : "read",
        to_write_ ? "write" : "read");
  if (!handle_->is_open()) [[unlikely]] {
    outcome = -EBADF;
    state_ = State::ended;
    return true;
  }
  // As try_now(), but looks the loop up only once.
  detail::loop::Core& core = detail::loop::core_of(handle_->loop());
  core.check_thread();
  if (first_call_ != detail::FirstCall::when_ready && may_continue(core) && step(core)) {
    state_ = State::ended;
    return true;
  }
  if (operation == nullptr) [[unlikely]]
    operation = new (std::nothrow) detail::io::IoOperation();
  if (operation == nullptr) {
    outcome = -ENOMEM;
    state_ = State::ended;
    return true;
  }
  operation->set_wait(this);
  state_ = State::registered;
  operation->start(core, handle_->fd(), readiness());
  return false;
}

void detail::IoWait::wait_again() noexcept {
  operation().start(detail::loop::core_of(handle_->loop()), fd(), readiness());
}

void detail::IoWait::resume_when_completed(std::coroutine_handle<> awaiting,
                                           const TaskContext& context) noexcept {
  operation().set_awaiting(awaiting, context);
}

void detail::IoWait::set_created_at(const std::source_location& created_at) noexcept {
  operation().set_created_at(created_at);
}

bool detail::IoWait::finish(std::int32_t answer) noexcept {
  if (answer == -EAGAIN) return false;
  outcome = answer;
  return true;
}

bool detail::IoWait::may_continue(detail::loop::Core& core) const noexcept {
  return first_call_ == detail::FirstCall::at_once || !core.io_budget_exhausted();
}

void detail::IoWait::completed() {
  const std::coroutine_handle<> awaiting = operation().awaiting();
  leave();
  detail::Resumption::run(awaiting);
}

void detail::IoWait::detached() noexcept { operation().cancel(); }

void detail::IoWait::cancel() noexcept {
  if (state_ == State::registered || state_ == State::dropped) operation().cancel();
}

void detail::IoWait::leave() noexcept {
  detail::io::IoOperation& operation = this->operation();
  operation.abandon();
  if (state_ == State::dropped) {
    delete &operation;
  } else {
    operation.set_wait(nullptr);
  }
  state_ = State::ended;
}

}  // namespace tambour
