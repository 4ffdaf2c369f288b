#include <tambour/io_handle.h>

#include <cerrno>
#include <utility>

#include <tambour/event_loop.h>

#include "backend/system.h"
#include "base/check.h"
#include "loop/core.h"

namespace tambour {

IoHandle::IoHandle(EventLoop& loop, int fd, std::source_location function) noexcept
    : loop_(&loop), system_(&loop::core_of(loop).backend().system()), fd_(fd) {
  loop::Core& core = loop::core_of(loop);
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
  waits_ = std::exchange(other.waits_, {});
  fd_ = std::exchange(other.fd_, -1);
  for (IoWait* wait : waits_) {
    if (wait != nullptr) wait->handle_ = this;
  }
}

void IoHandle::stop_waiting(bool to_write) noexcept {
  IoWait* const wait = std::exchange(waiting(to_write), nullptr);
  if (wait == nullptr) return;
  wait->handle_ = nullptr;
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
  if (loop::Core* const core = loop::Core::find_on_this_thread(loop_)) {
    core->backend().close(fd);
  } else {
    system_->close(fd);
  }
}

void IoHandle::leave_loop() noexcept {
  base::check(
      has_loop(),
      "move_to() or spawn_on() was called with a default-constructed stream or socket, which "
      "has no loop; open it first");
  loop::Core& core = loop::core_of(*loop_);
  core.check_thread();
  stop_waiting(false);
  stop_waiting(true);
  if (is_open()) core.backend().deregister(fd_);
  loop_ = nullptr;  // If the handle is destroyed before enter_loop().
}

void IoHandle::enter_loop(EventLoop& loop) noexcept {
  loop_ = &loop;
  backend::Backend& backend = loop::core_of(loop).backend();
  system_ = &backend.system();
  // The loop may still have state for an earlier file with the same descriptor.
  if (is_open()) backend.invalidate(fd_);
}

bool IoWait::try_now() noexcept {
  if (handle_->is_open()) return start(handle_->loop(), handle_->descriptor());
  outcome = -EBADF;
  return true;
}

bool IoWait::try_now_or_wait() noexcept {
  IoWait*& waiting = handle_->waiting(to_write_);
  if (waiting != nullptr) [[unlikely]]
    base::fail_check(
        "%s of fd %d: another task is already waiting to %s it; let one task %s at a time",
        to_write_ ? "write" : "read", handle_->descriptor(), to_write_ ? "write" : "read",
        to_write_ ? "write" : "read");
  if (try_now()) return true;
  waiting = this;
  return false;
}

void IoWait::completed() {
  leave();
  stop_.reset();
  Resumption::run(awaiting_);
}

void IoWait::leave() noexcept {
  if (handle_ == nullptr) return;
  if (IoWait*& waiting = handle_->waiting(to_write_); waiting == this) waiting = nullptr;
  handle_ = nullptr;
}

}  // namespace tambour
