// The system calls of IoOperation and the waits between them.

#include <tambour/detail/io_operation.h>

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include <tambour/event_loop.h>

#include "base/check.h"
#include "loop/core.h"

namespace tambour {
namespace {

/// connect(2) on a Unix socket fails with EAGAIN if the listener's backlog is full, and no event
/// reports when it is not full any more: the caller has to retry.
constexpr bool must_wait(detail::IoKind kind, std::int32_t outcome) noexcept {
  return outcome == (kind == detail::IoKind::connect ? -EINPROGRESS : -EAGAIN);
}

/// For sockets. A connecting socket is not ready before connect(2) is called; read(2) and write(2)
/// are also used on files, which often cannot be watched.
constexpr bool can_wait_first(detail::IoKind kind) noexcept {
  return kind != detail::IoKind::connect && kind != detail::IoKind::read &&
         kind != detail::IoKind::write;
}

}  // namespace

Events detail::IoOperation::readiness() const noexcept {
  switch (io_kind) {
    case detail::IoKind::accept:
    case detail::IoKind::recv:
    case detail::IoKind::recvmsg:
    case detail::IoKind::recvmmsg:
    case detail::IoKind::read:
      return Events::read;
    case detail::IoKind::connect:
    case detail::IoKind::send:
    case detail::IoKind::sendmsg:
    case detail::IoKind::sendmmsg:
    case detail::IoKind::write:
      return Events::write;
  }
  return Events::none;
}

std::int32_t detail::IoOperation::attempt(loop::Core& core) noexcept {
  if (make_room != nullptr && !make_room(*this)) return -ENOMEM;
  std::int32_t answer;
  do {
    answer = call(core.backend().system());
  } while (answer == -EINTR);
  return answer;
}

/// The result of a connect(2) that returned EINPROGRESS.
std::int32_t detail::IoOperation::progress(backend::System& system) noexcept {
  int error = 0;
  socklen_t error_size = sizeof(error);
  if (system.getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_size) != 0) return -errno;
  if (error != 0) return -error;
  // SO_ERROR may also be 0 because the connection is still in progress: readiness can be reported
  // spuriously.
  if (system.connect(fd, address, *address_size) == 0 || errno == EISCONN) return 0;
  return errno == EALREADY ? -EINPROGRESS : -errno;
}

std::int32_t detail::IoOperation::call(backend::System& system) noexcept {
  constexpr int accepted = SOCK_NONBLOCK | SOCK_CLOEXEC;
  constexpr int now = MSG_DONTWAIT;
  constexpr int quietly = MSG_DONTWAIT | MSG_NOSIGNAL;
  ssize_t answer = -1;
  switch (io_kind) {
    case detail::IoKind::accept:
      answer = system.accept4(fd, address, address_size, accepted);
      break;
    case detail::IoKind::connect:
      if (connecting_) return progress(system);
      answer = system.connect(fd, address, *address_size);
      connecting_ = answer < 0 && errno == EINPROGRESS;
      break;
    case detail::IoKind::recv:
      answer = system.recv(fd, data, size, flags | now);
      break;
    case detail::IoKind::recvmsg:
      answer = system.recvmsg(fd, static_cast<msghdr*>(data), flags | now | MSG_CMSG_CLOEXEC);
      break;
    case detail::IoKind::send:
      answer = system.send(fd, data, size, flags | quietly);
      break;
    case detail::IoKind::sendmsg:
      answer = system.sendmsg(fd, static_cast<const msghdr*>(data), flags | quietly);
      break;
    case detail::IoKind::recvmmsg:
      answer = system.recvmmsg(fd, static_cast<mmsghdr*>(data), static_cast<unsigned>(size),
                               flags | now | MSG_CMSG_CLOEXEC);
      break;
    case detail::IoKind::sendmmsg:
      answer = system.sendmmsg(fd, static_cast<mmsghdr*>(data), static_cast<unsigned>(size),
                               flags | quietly);
      break;
    case detail::IoKind::read:
      answer = system.read(fd, data, size);
      break;
    case detail::IoKind::write:
      answer = system.write(fd, data, size);
      break;
  }
  return answer < 0 ? -errno : static_cast<std::int32_t>(answer);
}

bool detail::IoOperation::submit_known(EventLoop& loop, int descriptor) noexcept {
  loop::Core& core = loop::core_of(loop);
  core.check_thread();
  if (busy()) [[unlikely]] {
    base::fail_check(
        "IoOperation (created in %s:%u) submitted on descriptor %d while it was busy on descriptor "
        "%d; cancel it, or wait until it has completed",
        created_at().file_name(), unsigned(created_at().line()), descriptor, fd);
  }
  fd = descriptor;
  connecting_ = false;
  if (descriptor < 0) {
    outcome = -EBADF;
  } else if (wait_first || (can_wait_first(io_kind) && core.io_budget_exhausted())) {
    outcome = -EAGAIN;
  } else {
    outcome = attempt(core);
  }
  if (!must_wait(io_kind, outcome)) return true;
  begin(core);
  events = readiness();
  result = 0;
  core.backend().submit(*this);
  return false;
}

bool detail::IoOperation::submit_or_finish(EventLoop& loop, int descriptor) noexcept {
  if (submit_known(loop, descriptor)) return true;
  core_->backend().revalidate(descriptor);
  return false;
}

void detail::IoOperation::submit(EventLoop& loop, int descriptor) noexcept {
  // A connection accepted now would have no owner until the completion is dispatched, and would be
  // lost if the operation were destroyed before that.
  if (io_kind == detail::IoKind::accept) wait_first = true;
  if (!submit_or_finish(loop, descriptor)) return;
  begin(loop::core_of(loop));
  core_->queue(*this);
}

void detail::IoOperation::begin(loop::Core& core) noexcept {
  core_ = &core;
  core_->attach();
  core_->add_reference();
}

void detail::IoOperation::end() noexcept {
  loop::Core& core = *std::exchange(core_, nullptr);
  if (!core.closed()) core.drop_reference();
  core.detach();
}

void detail::IoOperation::cancel() noexcept {
  if (!busy() || core_->closed()) return;
  core_->check_thread();
  // It has already completed or failed; its completion is queued.
  if (!submitted()) return;
  core_->backend().cancel(*this);
  outcome = -ECANCELED;
  result = 0;
  core_->queue(*this);
}

void detail::IoOperation::abandon() noexcept {
  if (!busy()) return;
  // A destroyed loop has already dropped its references.
  if (!core_->closed()) {
    core_->check_thread();
    if (submitted()) core_->backend().cancel(*this);
  }
  unlink();
  end();
}

void detail::IoOperation::run(detail::ReadyNode& ready) {
  auto& self = static_cast<detail::IoOperation&>(ready);
  if (self.submitted()) {
    self.result = 0;
    const std::int32_t answer = self.attempt(*self.core_);
    if (must_wait(self.io_kind, answer)) return;
    self.outcome = answer;
    self.core_->backend().cancel(self);
  } else if (self.result < 0) {
    self.outcome = self.result;  // The descriptor cannot be watched.
  }
  self.end();
  self.completed_(self);
}

}  // namespace tambour
