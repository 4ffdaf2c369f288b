#include <tambour/io_operation.h>

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
constexpr bool must_wait(IoKind kind, std::int32_t outcome) noexcept {
  return outcome == (kind == IoKind::connect ? -EINPROGRESS : -EAGAIN);
}

/// For sockets. A connecting socket is not ready before connect(2) is called; read(2) and write(2)
/// are also used on files, which often cannot be watched.
constexpr bool can_wait_first(IoKind kind) noexcept {
  return kind != IoKind::connect && kind != IoKind::read && kind != IoKind::write;
}

}  // namespace

Events IoOperation::readiness() const noexcept {
  switch (io_kind) {
    case IoKind::accept:
    case IoKind::recv:
    case IoKind::recvmsg:
    case IoKind::recvmmsg:
    case IoKind::read:
      return Events::read;
    case IoKind::connect:
    case IoKind::send:
    case IoKind::sendmsg:
    case IoKind::sendmmsg:
    case IoKind::write:
      return Events::write;
  }
  return Events::none;
}

std::int32_t IoOperation::attempt(loop::Core& core) noexcept {
  if (make_room != nullptr && !make_room(*this)) return -ENOMEM;
  std::int32_t answer;
  do {
    answer = call(core.backend().system());
  } while (answer == -EINTR);
  return answer;
}

/// The result of a connect(2) that returned EINPROGRESS.
std::int32_t IoOperation::progress(backend::System& system) noexcept {
  int error = 0;
  socklen_t error_size = sizeof(error);
  if (system.getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_size) != 0) return -errno;
  if (error != 0) return -error;
  // SO_ERROR may also be 0 because the connection is still in progress: readiness can be reported
  // spuriously.
  if (system.connect(fd, address, *address_size) == 0 || errno == EISCONN) return 0;
  return errno == EALREADY ? -EINPROGRESS : -errno;
}

std::int32_t IoOperation::call(backend::System& system) noexcept {
  constexpr int accepted = SOCK_NONBLOCK | SOCK_CLOEXEC;
  constexpr int now = MSG_DONTWAIT;
  constexpr int quietly = MSG_DONTWAIT | MSG_NOSIGNAL;
  ssize_t answer = -1;
  switch (io_kind) {
    case IoKind::accept:
      answer = system.accept4(fd, address, address_size, accepted);
      break;
    case IoKind::connect:
      if (connecting_) return progress(system);
      answer = system.connect(fd, address, *address_size);
      connecting_ = answer < 0 && errno == EINPROGRESS;
      break;
    case IoKind::recv:
      answer = system.recv(fd, data, size, flags | now);
      break;
    case IoKind::recvmsg:
      answer = system.recvmsg(fd, static_cast<msghdr*>(data), flags | now | MSG_CMSG_CLOEXEC);
      break;
    case IoKind::send:
      answer = system.send(fd, data, size, flags | quietly);
      break;
    case IoKind::sendmsg:
      answer = system.sendmsg(fd, static_cast<const msghdr*>(data), flags | quietly);
      break;
    case IoKind::recvmmsg:
      answer = system.recvmmsg(fd, static_cast<mmsghdr*>(data), static_cast<unsigned>(size),
                               flags | now | MSG_CMSG_CLOEXEC);
      break;
    case IoKind::sendmmsg:
      answer = system.sendmmsg(fd, static_cast<mmsghdr*>(data), static_cast<unsigned>(size),
                               flags | quietly);
      break;
    case IoKind::read:
      answer = system.read(fd, data, size);
      break;
    case IoKind::write:
      answer = system.write(fd, data, size);
      break;
  }
  return answer < 0 ? -errno : static_cast<std::int32_t>(answer);
}

bool IoOperation::submit_known(EventLoop& loop, int descriptor) noexcept {
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
  } else if (wait_first || (can_wait_first(io_kind) && core.overstays())) {
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

bool IoOperation::submit_or_finish(EventLoop& loop, int descriptor) noexcept {
  if (submit_known(loop, descriptor)) return true;
  core_->backend().doubt(descriptor);
  return false;
}

void IoOperation::submit(EventLoop& loop, int descriptor) noexcept {
  // A connection accepted now would have no owner until the completion is dispatched, and would be
  // lost if the operation were destroyed before that.
  if (io_kind == IoKind::accept) wait_first = true;
  if (!submit_or_finish(loop, descriptor)) return;
  begin(loop::core_of(loop));
  core_->queue(*this);
}

void IoOperation::begin(loop::Core& core) noexcept {
  core_ = &core;
  core_->attach();
  core_->add_reference();
}

void IoOperation::end() noexcept {
  loop::Core& core = *std::exchange(core_, nullptr);
  if (!core.closed()) core.drop_reference();
  core.detach();
}

void IoOperation::cancel() noexcept {
  if (!busy() || core_->closed()) return;
  core_->check_thread();
  // It has already completed or failed; its completion is queued.
  if (link_on_fd == nullptr) return;
  core_->backend().cancel(*this);
  outcome = -ECANCELED;
  result = 0;
  core_->queue(*this);
}

void IoOperation::abandon() noexcept {
  if (!busy()) return;
  // A destroyed loop has already dropped its references.
  if (!core_->closed()) {
    core_->check_thread();
    if (link_on_fd != nullptr) core_->backend().cancel(*this);
  }
  unlink();
  end();
}

void IoOperation::run(Ready& ready) {
  auto& self = static_cast<IoOperation&>(ready);
  if (self.link_on_fd != nullptr) {
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
