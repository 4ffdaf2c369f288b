#include <tambour/connection.h>

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <optional>
#include <utility>

#include <tambour/proxy_protocol.h>
#include <tambour/timer.h>

#include "backend/system.h"
#include "base/clock.h"
#include "loop/core.h"
#include "net/connection_owner.h"
#include "net/read_size.h"
#include "net/socket_names.h"

namespace tambour {
namespace {

constexpr std::size_t pieces_max = 16;
constexpr int send_flags = MSG_DONTWAIT | MSG_NOSIGNAL;

}  // namespace

struct Connection::Idle {
  /// It has been silent for long enough; the timer is only there where it is on a loop.
  Duration time;
  TimePoint deadline;
  std::optional<Timer> timer{};
};

/// A connection on its way. What is never opened closes what is in it.
class Connection::Arrival {
 public:
  explicit Arrival(EventLoop& to) noexcept : to_(to) {}
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;
  ~Arrival() {
    if (connection_ == nullptr) return;
    if (owner_ != nullptr) owner_->left();
    delete connection_;
  }

  [[nodiscard]] EventLoop& to() const noexcept { return to_; }

  void pack(Connection& connection, ConnectionOwner* owner, std::unique_ptr<Idle> idle) noexcept {
    connection_ = &connection;
    owner_ = owner;
    idle_ = std::move(idle);
  }
  /// It could not be sent.
  std::unique_ptr<Idle> unpack() noexcept {
    connection_ = nullptr;
    if (owner_ != nullptr) owner_->never_came();
    return std::move(idle_);
  }
  void open() { std::exchange(connection_, nullptr)->arrive(owner_, std::move(idle_)); }

 private:
  EventLoop& to_;
  Connection* connection_ = nullptr;
  ConnectionOwner* owner_ = nullptr;
  std::unique_ptr<Idle> idle_;
};

struct Connection::Extras {
  Buffer output{};  ///< What waits to be sent.
  std::unique_ptr<Idle> idle{};
  std::unique_ptr<Arrival> arrival{};  ///< Where it is about to move to another loop.
  std::unique_ptr<const ProxyHeader> proxy_header{};

  [[nodiscard]] bool all_as_at_first() const noexcept {
    return output.empty() && idle == nullptr && arrival == nullptr && proxy_header == nullptr;
  }
};

void ConnectionOwner::start(Stream stream, std::shared_ptr<const ConnectionCallbacks> callbacks) {
  Connection::start(std::move(stream), std::move(callbacks), this);
}

void ConnectionOwner::add(Connection& connection) noexcept {
  connections_.push_back(static_cast<LoopOwned&>(connection));
  ++size_;
}

void ConnectionOwner::remove(Connection& connection) noexcept {
  static_cast<LoopOwned&>(connection).unlink();
  --size_;
  left();
}

void ConnectionOwner::close_all() noexcept {
  closing_ = true;
  for (Link* link = connections_.first(); link != nullptr; link = connections_.after(*link))
    static_cast<Connection&>(static_cast<LoopOwned&>(*link)).close();
}

void ConnectionOwner::drop_all() noexcept {
  while (Link* link = connections_.first()) {
    auto& connection = static_cast<Connection&>(static_cast<LoopOwned&>(*link));
    connection.end(0);
    static_cast<Ready&>(connection).unlink();
    link->unlink();
    --size_;
    connection.owner_ = nullptr;
    connection.leave();
  }
}

Connection& Connection::start(Stream stream, std::shared_ptr<const ConnectionCallbacks> callbacks) {
  return start(std::move(stream), std::move(callbacks), nullptr);
}

Connection& Connection::start(Stream stream, std::shared_ptr<const ConnectionCallbacks> callbacks,
                              ConnectionOwner* owner) {
  auto* self = new Connection(std::move(stream), std::move(callbacks));
  self->owner_ = owner;
  loop::core_of(self->loop()).add_reference();
  self->enter_list();
  self->watch();
  // Before anybody is told, who may throw.
  if (owner != nullptr && owner->closing()) self->close();
  if (self->callbacks_->on_connection) self->callbacks_->on_connection(*self);
  return *self;
}

Connection::Connection(Stream stream, std::shared_ptr<const ConnectionCallbacks> callbacks)
    : Operation(OperationKind::poll, &run),
      loop_(&stream.loop()),
      owner_(nullptr),
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

void Connection::enter_list() noexcept {
  if (owner_ != nullptr) return owner_->add(*this);
  loop::core_of(loop()).owned().push_back(static_cast<LoopOwned&>(*this));
}

void Connection::leave_list() noexcept {
  if (ConnectionOwner* owner = std::exchange(owner_, nullptr)) {
    owner->remove(*this);
  } else {
    static_cast<LoopOwned*>(this)->unlink();
  }
}

Connection::~Connection() {
  if (fd < 0) return;
  backend::Backend& backend = loop::core_of(loop()).backend();
  if (link_on_fd != nullptr) backend.cancel(*this);
  backend.close(fd);
}

void Connection::watch() noexcept {
  Events wanted = Events::none;
  if (reads()) wanted |= Events::read;
  if (unsent() > 0) wanted |= Events::write;
  if (moving_) wanted = Events::none;
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
  if (self.moving_) return self.depart();
  if (self.result < 0) return self.end(-self.result);
  const Events got = Events(std::uint16_t(std::exchange(self.result, 0)));
  // Whatever is wrong with the descriptor, reading or writing says what.
  const bool broken = has(got, Events::error);
  if (self.reads() && (broken || has(got, Events::read))) self.read_some();
  if (!self.ended_ && self.unsent() > 0 && (broken || has(got, Events::write))) self.write_some();
  // No callback of its own is under way here, and nobody need wait for a later turn; unless its
  // server was destroyed, which has dropped it.
  if (!self.ended_ || !ready.linked()) return;
  ready.unlink();
  self.tell_end();
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
    if (callbacks_->on_end && !finishing_) {
      watch();
      return callbacks_->on_end(*this);
    }
    close_after_write();
    if (!ended_) watch();
    return;
  }
  const auto count = static_cast<std::size_t>(got);
  read_size_ = net::next_read_size(read_size_, room.size(), count);
  input_.commit(count);
  if (extras_ != nullptr && extras_->idle != nullptr)
    extras_->idle->timer->reset(extras_->idle->time);
  if (callbacks_->on_message && !paused_) {
    callbacks_->on_message(*this, input_);
  } else {
    input_.clear();
  }
}

std::size_t Connection::send_now(std::span<const std::byte> bytes) noexcept {
  backend::System& system = loop::core_of(loop()).backend().system();
  return sent([&] { return system.send(fd, bytes.data(), bytes.size(), send_flags); });
}

std::size_t Connection::send_from(Buffer& bytes) noexcept {
  const auto front = bytes.front();
  std::size_t taken;
  if (front.size() == bytes.size()) {
    taken = send_now(front);
  } else {
    std::array<iovec, pieces_max> pieces;
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = bytes.pieces(pieces);
    backend::System& system = loop::core_of(loop()).backend().system();
    taken = sent([&] { return system.sendmsg(fd, &message, send_flags); });
  }
  bytes.consume(taken);
  return taken;
}

std::size_t Connection::sent(auto&& call) noexcept {
  ssize_t taken;
  do {
    taken = call();
  } while (taken < 0 && errno == EINTR);
  if (taken >= 0) return static_cast<std::size_t>(taken);
  if (errno != EAGAIN) end(errno);
  return 0;
}

std::size_t Connection::unsent() const noexcept {
  return extras_ != nullptr ? extras_->output.size() : 0;
}

void Connection::send(std::span<const std::byte> bytes) {
  if (!may_send() || bytes.empty()) return;
  const std::size_t before = unsent();
  if (before == 0) {
    bytes = bytes.subspan(send_now(bytes));
    if (ended_ || bytes.empty()) return;
  }
  extras().output.append(bytes);
  wait_to_send(before);
}

void Connection::send(Buffer&& bytes) {
  if (!may_send() || bytes.empty()) return bytes.clear();
  const std::size_t before = unsent();
  while (before == 0 && !bytes.empty() && !ended_ && send_from(bytes) > 0) {
  }
  if (ended_) return bytes.clear();
  if (bytes.empty()) return;
  extras().output.append(std::move(bytes));
  wait_to_send(before);
}

void Connection::wait_to_send(std::size_t unsent_before) {
  watch();
  const std::size_t mark = callbacks_->high_water_bytes;
  if (unsent_before >= mark || unsent() < mark) return;
  if (callbacks_->on_high_water) callbacks_->on_high_water(*this, unsent());
}

void Connection::write_some() {
  static_cast<void>(send_from(extras_->output));
  if (ended_ || unsent() > 0) return;
  extras_->output = {};
  if (extras_->all_as_at_first()) extras_.reset();
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
  if (finished_) return;
  finished_ = true;
  loop::core_of(loop()).backend().system().shutdown(fd, SHUT_WR);
  // Paused or not, from now on the peer's end is waited for.
  watch();
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
  if (time <= Duration::zero()) {
    if (extras_ != nullptr) extras_->idle.reset();
    return;
  }
  const std::int64_t now_ns = loop().now().time_since_epoch().count();
  const TimePoint deadline(Duration(base::saturating_add(now_ns, time.count())));
  set_idle(std::make_unique<Idle>(Idle{.time = time, .deadline = deadline}));
}

void Connection::set_idle(std::unique_ptr<Idle> idle) {
  idle->timer.emplace(loop(), [this] { end(ETIMEDOUT); });
  idle->timer->start_at(idle->deadline);
  extras().idle = std::move(idle);
}

void Connection::move_to(EventLoop& to) {
  loop::Core& core = loop::core_of(loop());
  core.check_thread();
  if (ended_) return;
  if (&to != loop_) extras().arrival = std::make_unique<Arrival>(to);
  moving_ = &to != loop_;
  // First, as to stop watching takes out of the queue what has come.
  watch();
  core.queue(*this);
}

void Connection::depart() noexcept {
  loop::Core& core = loop::core_of(loop());
  EventLoop& from = loop();
  moving_ = false;
  Arrival& arrival = *extras_->arrival;
  Callback<void()> task;
  try {
    task = [arrived = std::move(extras_->arrival)]() mutable { arrived->open(); };
  } catch (const std::bad_alloc&) {
    return end(ENOMEM);
  }
  std::unique_ptr<Idle> idle = std::move(extras_->idle);
  if (idle != nullptr) {
    idle->deadline = idle->timer->deadline();
    idle->timer.reset();
  }
  EventLoop& to = arrival.to();
  ConnectionOwner* const owner = owner_;
  arrival.pack(*this, owner != nullptr ? owner->on(to) : nullptr, std::move(idle));
  core.backend().let_go(fd);
  leave_list();
  core.drop_reference();
  // What the other thread finds is all in place before it can look.
  loop_ = &to;
  try {
    loop::core_of(to).post(std::move(task));
  } catch (const std::bad_alloc&) {
    static_cast<void>(arrival.unpack());
    loop_ = &from;
    owner_ = owner != nullptr ? owner->on(from) : nullptr;
    enter_list();
    core.add_reference();
    end(ENOMEM);
  }
}

void Connection::arrive(ConnectionOwner* owner, std::unique_ptr<Idle> idle) {
  owner_ = owner;
  loop::Core& core = loop::core_of(loop());
  // What this loop may know of the number was another file.
  core.backend().forget(fd);
  core.add_reference();
  enter_list();
  result = 0;
  try {
    if (idle != nullptr) set_idle(std::move(idle));
  } catch (const std::bad_alloc&) {
    return end(ENOMEM);
  }
  watch();
  if (owner_ != nullptr && owner_->closing()) return end(0);
  if (callbacks_->on_move) callbacks_->on_move(*this);
}

void Connection::end(int error) noexcept {
  if (ended_) return;
  ended_ = true;
  error_ = static_cast<std::int16_t>(error);
  moving_ = false;
  if (extras_ != nullptr) {
    extras_->idle.reset();
    extras_->arrival.reset();
  }
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
  leave_list();
  if (callbacks_->on_close)
    callbacks_->on_close(*this, error_ != 0 ? system_error(error_) : Error());
}

void Connection::leave() noexcept {
  loop::Core& core = loop::core_of(loop());
  core.backend().close(std::exchange(fd, -1));
  core.drop_reference();
  core.retire(this);
}

}  // namespace tambour
