#include <tambour/stream.h>

#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <utility>

#include <tambour/event_loop.h>
#include <tambour/proxy_header.h>

#include "backend/system.h"
#include "base/check.h"
#include "io/transport.h"
#include "loop/core.h"
#include "net/shared_nonblocking.h"
#include "net/socket_names.h"

namespace tambour {
namespace {

std::unexpected<Error> last_error() noexcept { return std::unexpected(system_error(errno)); }

Result<std::size_t> size_or_error(std::int32_t outcome) noexcept {
  if (outcome < 0) return std::unexpected(system_error(outcome));
  return static_cast<std::size_t>(outcome);
}

Result<> error_or_nothing(std::int32_t outcome) noexcept {
  if (outcome < 0) return std::unexpected(system_error(outcome));
  return {};
}

}  // namespace

Socket::Socket(EventLoop& loop, int fd) noexcept
    : loop_(&loop), system_(&loop::core_of(loop).backend().system()), fd_(fd) {
  loop::Core& core = loop::core_of(loop);
  core.check_thread();
  // The loop may still have state for an earlier file with the same descriptor.
  core.backend().invalidate(fd);
}

Socket::Socket(Socket&& other) noexcept
    : is_socket_(other.is_socket_),
      restores_blocking_(std::exchange(other.restores_blocking_, false)),
      loop_(other.loop_),
      system_(other.system_),
      fd_(std::exchange(other.fd_, -1)),
      read_size_(other.read_size_),
      waits_(std::exchange(other.waits_, {})),
      proxy_header_(std::exchange(other.proxy_header_, nullptr)) {
  for (SocketWait* wait : waits_) {
    if (wait != nullptr) wait->socket_ = this;
  }
}

Socket::~Socket() {
  close();
  delete proxy_header_;
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    std::destroy_at(this);
    std::construct_at(this, std::move(other));
  }
  return *this;
}

Result<Socket> Socket::open(EventLoop& loop, int family, int type, int protocol) noexcept {
  backend::System& system = loop::core_of(loop).backend().system();
  const int fd = system.socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
  if (fd < 0) return last_error();
  return Socket(loop, fd);
}

void Socket::stop_waiting(bool to_write) noexcept {
  SocketWait* const wait = std::exchange(waiting(to_write), nullptr);
  if (wait == nullptr) return;
  wait->socket_ = nullptr;
  wait->detached();
}

int Socket::release() noexcept {
  stop_waiting(false);
  stop_waiting(true);
  if (std::exchange(restores_blocking_, false)) net::restore_blocking(fd_);
  return std::exchange(fd_, -1);
}

void Socket::move_to(EventLoop& to, Callback<void(Socket)> then) {
  loop::Core& core = loop::core_of(*loop_);
  core.check_thread();
  Socket carrier(std::move(*this));
  carrier.stop_waiting(false);
  carrier.stop_waiting(true);
  if (carrier.is_open()) core.backend().deregister(carrier.fd_);
  carrier.loop_ = nullptr;  // The other thread may have to close it.
  to.post([&to, moved = std::move(carrier), call = std::move(then)]() mutable {
    const bool restores_blocking = std::exchange(moved.restores_blocking_, false);
    Socket arrived(to, moved.release());
    arrived.is_socket_ = moved.is_socket_;
    arrived.restores_blocking_ = restores_blocking;
    arrived.read_size_ = moved.read_size_;
    arrived.proxy_header_ = std::exchange(moved.proxy_header_, nullptr);
    call(std::move(arrived));
  });
}

void Socket::close() noexcept {
  if (fd_ < 0) return;
  const int fd = release();
  // A socket may be destroyed after its loop.
  if (loop::Core* const core = loop::Core::find_on_this_thread(loop_)) {
    core->backend().close(fd);
  } else {
    system_->close(fd);
  }
}

Result<Endpoint> Socket::local_endpoint() const noexcept {
  if (!is_open()) return std::unexpected(system_error(EBADF));
  return net::endpoint_of(*system_, fd_, &backend::System::getsockname);
}

Result<Endpoint> Socket::peer_endpoint() const noexcept {
  if (!is_open()) return std::unexpected(system_error(EBADF));
  if (proxy_header_ != nullptr && proxy_header_->source) return *proxy_header_->source;
  return net::endpoint_of(*system_, fd_, &backend::System::getpeername);
}

void Socket::set_proxy_header(std::unique_ptr<const ProxyHeader> header) noexcept {
  delete std::exchange(proxy_header_, header.release());
}

Result<> Socket::set_option(int level, int option, int value) noexcept {
  if (!is_open()) return std::unexpected(system_error(EBADF));
  if (system_->setsockopt(fd_, level, option, &value, sizeof(value)) != 0) return last_error();
  return {};
}

io::Transport Socket::transport() const noexcept { return {*system_, fd_, is_socket_}; }

bool SocketWait::try_now() noexcept {
  if (socket_->is_open()) return start(socket_->loop(), socket_->descriptor());
  outcome = -EBADF;
  return true;
}

bool SocketWait::await_or_finish() noexcept {
  SocketWait*& waiting = socket_->waiting(to_write_);
  if (waiting != nullptr) [[unlikely]]
    base::fail_check(
        "%s of socket fd %d: another task is already waiting to %s it; let one task %s at a time",
        to_write_ ? "write" : "read", socket_->descriptor(), to_write_ ? "write" : "read",
        to_write_ ? "write" : "read");
  if (try_now()) return false;
  waiting = this;
  return true;
}

void SocketWait::completed() {
  leave();
  stop_.reset();
  Resumption::run(awaiting_);
}

void SocketWait::leave() noexcept {
  if (socket_ == nullptr) return;
  if (SocketWait*& waiting = socket_->waiting(to_write_); waiting == this) waiting = nullptr;
  socket_ = nullptr;
}

bool Stream::Read::step(loop::Core& /*core*/) noexcept {
  return finish(socket()->transport().read(into_));
}

Result<std::size_t> Stream::Read::await_resume() const noexcept { return size_or_error(outcome); }

bool Stream::ReadBuffer::step(loop::Core& /*core*/) noexcept {
  return finish(socket()->transport().read(into_, socket()->read_size_, most_));
}

Result<std::size_t> Stream::ReadBuffer::await_resume() const noexcept {
  return size_or_error(outcome);
}

bool Stream::Write::step(loop::Core& core) noexcept {
  do {
    if (!finish(socket()->transport().write(from_))) return false;
    if (outcome < 0) return true;
    from_ = from_.subspan(static_cast<std::size_t>(outcome));
  } while (!from_.empty() && may_continue(core));
  return from_.empty();
}

Result<> Stream::Write::await_resume() const noexcept { return error_or_nothing(outcome); }

bool Stream::WriteBuffer::step(loop::Core& core) noexcept {
  do {
    if (!finish(socket()->transport().write(from_))) return false;
    if (outcome < 0) return true;
  } while (!from_.empty() && may_continue(core));
  return from_.empty();
}

Result<> Stream::WriteBuffer::await_resume() const noexcept { return error_or_nothing(outcome); }

Result<> Stream::shutdown_write() noexcept {
  if (!is_open()) return std::unexpected(system_error(EBADF));
  return error_or_nothing(transport().shutdown_write());
}

}  // namespace tambour
