#include <tambour/connection.h>

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include <tambour/proxy_protocol.h>
#include <tambour/timer.h>

#include "backend/system.h"
#include "loop/core.h"
#include "net/read_size.h"
#include "net/socket_names.h"

namespace tambour {
namespace {

constexpr std::size_t pieces_max = 16;

}  // namespace

struct Connection::Extras {
  std::optional<Timer> idle{};
  std::unique_ptr<const ProxyHeader> proxy_header{};
};

Connection& Connection::start(Stream stream, std::shared_ptr<const ConnectionCallbacks> callbacks) {
  LinkList& owner = loop::core_of(stream.loop()).owned();
  return start(std::move(stream), std::move(callbacks), owner);
}

Connection& Connection::start(Stream stream, std::shared_ptr<const ConnectionCallbacks> callbacks,
                              LinkList& owner) {
  auto* self = new Connection(std::move(stream), std::move(callbacks));
  loop::core_of(self->loop()).add_reference();
  owner.push_back(static_cast<LoopOwned&>(*self));
  self->watch();
  if (self->callbacks_->on_connection) self->callbacks_->on_connection(*self);
  return *self;
}

Connection::Connection(Stream stream, std::shared_ptr<const ConnectionCallbacks> callbacks)
    : Operation(OperationKind::poll, &run),
      loop_(&stream.loop()),
      callbacks_(std::move(callbacks)),
      read_size_(stream.read_size_) {
  if (stream.proxy_header() != nullptr)
    extras().proxy_header.reset(std::exchange(stream.proxy_header_, nullptr));
  fd = stream.release();
}

Connection::Extras& Connection::extras() {
  if (extras_ == nullptr) extras_ = std::make_unique<Extras>();
  return *extras_;
}

const ProxyHeader* Connection::proxy_header() const noexcept {
  return extras_ != nullptr ? extras_->proxy_header.get() : nullptr;
}

Connection::~Connection() {
  if (fd < 0) return;
  backend::Backend& backend = loop::core_of(loop()).backend();
  if (link_on_fd != nullptr) backend.cancel(*this);
  backend.system().close(fd);
}

void Connection::watch() noexcept {
  Events wanted = Events::none;
  if (!paused_ && !peer_finished_) wanted |= Events::read;
  if (unsent() > 0) wanted |= Events::write;
  if (wanted == events && (link_on_fd != nullptr) == (wanted != Events::none)) return;
  events = wanted;
  backend::Backend& backend = loop::core_of(loop()).backend();
  if (wanted != Events::none) {
    backend.submit(*this);
  } else if (link_on_fd != nullptr) {
    backend.cancel(*this);
  }
}

void Connection::run(Ready& ready) {
  auto& self = static_cast<Connection&>(ready);
  if (self.ended_) return self.tell_end();
  if (self.result < 0) return self.end(-self.result);
  const Events got = Events(std::uint16_t(std::exchange(self.result, 0)));
  // Whatever is wrong with the descriptor, reading or writing says what.
  const bool broken = has(got, Events::error);
  if (!self.paused_ && !self.peer_finished_ && (broken || has(got, Events::read))) self.read_some();
  if (self.ended_ || self.unsent() == 0) return;
  if (broken || has(got, Events::write)) self.write_some();
}

void Connection::read_some() {
  const auto room = input_.prepare(read_size_);
  backend::System& system = loop::core_of(loop()).backend().system();
  ssize_t got;
  do {
    got = system.recv(fd, room.data(), room.size(), MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) {
    const int error = got < 0 ? errno : 0;
    input_.commit(0);
    if (error == EAGAIN) return;
    if (error != 0) return end(error);
    peer_finished_ = true;
    close_after_write();
    if (!ended_) watch();
    return;
  }
  const auto count = static_cast<std::size_t>(got);
  read_size_ = net::next_read_size(read_size_, room.size(), count);
  input_.commit(count);
  if (extras_ != nullptr && extras_->idle) extras_->idle->reset();
  if (callbacks_->on_message) {
    callbacks_->on_message(*this, input_);
  } else {
    input_.clear();
  }
}

std::size_t Connection::send_now(std::span<iovec> pieces) noexcept {
  backend::System& system = loop::core_of(loop()).backend().system();
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  ssize_t taken;
  do {
    taken = system.sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (taken < 0 && errno == EINTR);
  if (taken >= 0) return static_cast<std::size_t>(taken);
  if (errno != EAGAIN) end(errno);
  return 0;
}

std::size_t Connection::send_from(Buffer& bytes) noexcept {
  std::array<iovec, pieces_max> pieces;
  const std::size_t count = bytes.pieces(pieces);
  if (count == 0) return 0;
  const std::size_t taken = send_now(std::span(pieces).first(count));
  bytes.consume(taken);
  return taken;
}

Buffer& Connection::output() {
  if (output_ == nullptr) output_ = std::make_unique<Buffer>();
  return *output_;
}

void Connection::send(std::span<const std::byte> bytes) {
  if (!may_send() || bytes.empty()) return;
  const std::size_t before = unsent();
  if (before == 0) {
    std::array<iovec, 1> piece{
        {{.iov_base = const_cast<std::byte*>(bytes.data()),  // NOLINT: sendmsg(2) reads.
          .iov_len = bytes.size()}}};
    bytes = bytes.subspan(send_now(piece));
    if (ended_ || bytes.empty()) return;
  }
  output().append(bytes);
  wait_to_send(before);
}

void Connection::send(Buffer&& bytes) {
  if (!may_send() || bytes.empty()) return bytes.clear();
  const std::size_t before = unsent();
  while (before == 0 && !bytes.empty() && !ended_ && send_from(bytes) > 0) {
  }
  if (ended_) return bytes.clear();
  if (bytes.empty()) return;
  output().append(std::move(bytes));
  wait_to_send(before);
}

void Connection::wait_to_send(std::size_t unsent_before) {
  watch();
  if (unsent_before >= high_water_bytes_ || unsent() < high_water_bytes_) return;
  if (callbacks_->on_high_water) callbacks_->on_high_water(*this, unsent());
}

void Connection::write_some() {
  static_cast<void>(send_from(*output_));
  if (ended_ || !output_->empty()) return;
  output_.reset();
  finish_output();
  if (ended_) return;
  watch();
  if (callbacks_->on_write_complete) callbacks_->on_write_complete(*this);
}

void Connection::close_after_write() noexcept {
  if (ended_) return;
  finishing_ = true;
  if (unsent() == 0) finish_output();
}

void Connection::finish_output() noexcept {
  if (!finishing_) return;
  if (peer_finished_) return end(0);
  if (std::exchange(finished_, true)) return;
  loop::core_of(loop()).backend().system().shutdown(fd, SHUT_WR);
}

Result<Endpoint> Connection::local_endpoint() const noexcept {
  backend::System& system = loop::core_of(loop()).backend().system();
  return net::endpoint_of(system, fd, &backend::System::getsockname);
}

Result<Endpoint> Connection::peer_endpoint() const noexcept {
  if (const ProxyHeader* header = proxy_header(); header != nullptr && header->source)
    return *header->source;
  backend::System& system = loop::core_of(loop()).backend().system();
  return net::endpoint_of(system, fd, &backend::System::getpeername);
}

void Connection::pause_reading() noexcept {
  paused_ = true;
  if (!ended_) watch();
}

void Connection::resume_reading() noexcept {
  paused_ = false;
  if (!ended_) watch();
}

void Connection::set_idle_timeout(Duration time) {
  if (ended_) return;
  if (time > Duration::zero()) {
    auto& idle = extras().idle;
    if (!idle) idle.emplace(loop(), [this] { end(ETIMEDOUT); });
    idle->reset(time);
  } else if (extras_ != nullptr) {
    extras_->idle.reset();
  }
}

void Connection::end(int error) noexcept {
  if (std::exchange(ended_, true)) return;
  error_ = error;
  if (extras_ != nullptr) extras_->idle.reset();
  loop::Core& core = loop::core_of(loop());
  if (link_on_fd != nullptr) core.backend().cancel(*this);
  core.queue(*this);
}

void Connection::tell_end() {
  // Also where on_close throws.
  const struct Ending {
    Connection& self;
    ~Ending() { self.leave(); }
  } ending{*this};
  if (callbacks_->on_close)
    callbacks_->on_close(*this, error_ != 0 ? system_error(error_) : Error());
}

void Connection::leave() noexcept {
  loop::Core& core = loop::core_of(loop());
  core.backend().system().close(std::exchange(fd, -1));
  static_cast<LoopOwned*>(this)->unlink();
  core.drop_reference();
  core.retire(this);
}

void Connection::drop(LinkList& owner) noexcept {
  while (Link* link = owner.first()) {
    auto& self = static_cast<Connection&>(static_cast<LoopOwned&>(*link));
    self.end(0);
    static_cast<Ready&>(self).unlink();
    self.leave();
  }
}

void Connection::close_all(LinkList& owner) noexcept {
  for (Link* link = owner.first(); link != nullptr; link = owner.after(*link))
    static_cast<Connection&>(static_cast<LoopOwned&>(*link)).close();
}

}  // namespace tambour
