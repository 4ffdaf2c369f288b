// Stream sockets: bind, listen, connect and accept.

#include <algorithm>
#include <cerrno>
#include <utility>

#include "sim/sockets/stream_socket.h"

namespace tambour::sim::detail {

int StreamSocket::bind(const Address& address) {
  // A Unix socket can be bound after it is connected, but only once.
  if (bound_ || (is_unix() ? !local_.path.empty() : state_ != State::fresh)) return -EINVAL;
  Address chosen = address;
  // unix(7): autobind, which is not supported.
  if (is_unix() && chosen.path.empty()) return -EOPNOTSUPP;
  if (const int error = machine_.bind(*this, chosen)) return error;
  local_ = std::move(chosen);
  bound_ = true;
  return 0;
}

int StreamSocket::listen(int backlog) {
  if (state_ != State::fresh && state_ != State::listening) return -EINVAL;
  if (!bound_) {
    if (is_unix()) return -EINVAL;
    Address any;
    any.family = family_;
    if (const int error = bind(any)) return error;
  }
  constexpr int somaxconn = 4096;
  backlog_ = std::clamp(backlog, 0, somaxconn);
  state_ = State::listening;
  return 0;
}

int StreamSocket::acceptable() const noexcept {
  if (state_ != State::listening) return -EINVAL;
  return accept_queue_.empty() ? -EAGAIN : 0;
}

std::shared_ptr<Socket> StreamSocket::accept() {
  auto accepted = std::move(accept_queue_.front());
  accept_queue_.pop_front();
  accepted->told_connected_ = true;
  return accepted;
}

/// A connection request that is not answered yet.
struct StreamSocket::Request {
  std::weak_ptr<StreamSocket> from;
  Machine* target;
  Address to;
  std::int64_t give_up_ns;
  std::int64_t retry_ns;
};

int StreamSocket::progress() noexcept {
  switch (state_) {
    case State::listening:
      return -EISCONN;
    case State::connecting:
      return -EALREADY;
    case State::connected:
      return std::exchange(told_connected_, true) ? -EISCONN : 0;
    case State::broken:
      if (error_ != 0) return -take_error();
      return told_connected_ ? -EISCONN : -ECONNABORTED;
    case State::fresh:
      break;
  }
  return 0;
}

int StreamSocket::connect(const Address& address) {
  if (is_unix()) return connect_unix(address);
  if (state_ != State::fresh) return progress();
  Machine* target = machine_.route(address);
  if (target == nullptr) return -ENETUNREACH;
  if (!bound_) {
    Address source = machine_.source_for(address);
    if (const int error = machine_.bind(*this, source)) return error;
    local_ = std::move(source);
    bound_ = true;
  } else if (local_.any()) {
    const std::uint16_t port = local_.port;
    local_ = machine_.source_for(address);
    local_.port = port;
  }
  peer_ = address;
  if (address.any()) peer_.ip = machine_.source_for(address).ip;
  state_ = State::connecting;
  World& world = machine_.world;
  auto request = std::make_shared<Request>(Request{
      .from = weak_from_this(),
      .target = target,
      .to = peer_,
      .give_up_ns = base::saturating_add(world.now_ns(), world.options.connect_timeout.count()),
      .retry_ns = base::ns_per_s,
  });
  knock(request);
  return -EINPROGRESS;
}

// tcp(7): an unanswered SYN is retransmitted after one second, two, four and so on.
void StreamSocket::knock(const std::shared_ptr<Request>& request) {
  World& world = machine_.world;
  const bool is_delivered =
      !world.is_cut(machine_, *request->target) && !world.random.chance(world.options.stream_loss);
  if (request->target == &machine_) {
    answer(request);
  } else if (is_delivered) {
    world.schedule_in(world.draw_delay_ns(), [request] {
      if (const auto self = request->from.lock()) self->answer(request);
    });
  }
  const std::int64_t next_ns =
      std::min(base::saturating_add(world.now_ns(), request->retry_ns), request->give_up_ns);
  request->retry_ns *= 2;
  if (state_ != State::connecting) return;
  world.schedule(next_ns, [request] {
    const auto self = request->from.lock();
    if (self == nullptr || self->state_ != State::connecting || self->has_channels()) return;
    if (self->machine_.world.now_ns() >= request->give_up_ns) {
      self->break_off(ETIMEDOUT);
    } else {
      self->knock(request);
    }
  });
}

void StreamSocket::answer(const std::shared_ptr<Request>& request) {
  if (state_ != State::connecting || has_channels()) return;
  Machine& target = *request->target;
  auto* listener = static_cast<StreamSocket*>(target.find(SOCK_STREAM, request->to));
  if (listener == nullptr || !listener->listening()) {
    refuse();
    return;
  }
  if (listener->queue_is_full()) return;  // Drop the request; it is sent again.
  const auto accepted = listener->admit(request->to, local_);
  const auto [there, back] = Channel::open(machine_, target);
  use(back, there);
  accepted->use(there, back);
  back->send(SegmentKind::established);
  listener->changed();
}

void StreamSocket::refuse() {
  World& world = machine_.world;
  if (machine_.route(peer_) == &machine_) {
    break_off(ECONNREFUSED);
    return;
  }
  world.schedule_in(world.draw_delay_ns(), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self != nullptr && self->state_ == State::connecting) self->break_off(ECONNREFUSED);
  });
}

std::shared_ptr<StreamSocket> StreamSocket::admit(const Address& local, const Address& peer) {
  auto accepted = std::make_shared<StreamSocket>(machine_, family_);
  accepted->state_ = State::connected;
  accepted->local_ = local;
  accepted->peer_ = peer;
  accepted->send_buffer_bytes_ = send_buffer_bytes_;
  accept_queue_.push_back(accepted);
  return accepted;
}

int StreamSocket::connect_unix(const Address& address) {
  auto* listener = static_cast<StreamSocket*>(machine_.find(SOCK_STREAM, address));
  if (listener == nullptr || !listener->listening()) {
    return machine_.error_for_missing(SOCK_STREAM, address.path);
  }
  // unix_stream_connect() checks the listener's state before that of the socket.
  if (listener->queue_is_full()) return -EAGAIN;
  if (state_ != State::fresh) return listening() ? -EINVAL : -EISCONN;
  const auto accepted = listener->admit(address, local_);
  accepted->peer_.family = AF_UNIX;
  pair(*this, *accepted);
  peer_ = address;
  accepted->peer_ = local_;
  accepted->peer_.family = AF_UNIX;
  listener->changed();
  return 0;
}

const Address* StreamSocket::peer() const noexcept {
  return state_ == State::connected ? &peer_ : nullptr;
}

std::size_t StreamSocket::buffer_bytes(bool sending) const noexcept {
  if (sending && send_buffer_bytes_ != 0) return send_buffer_bytes_;
  return machine_.world.options.stream_buffer_bytes;
}

void StreamSocket::set_buffer_bytes(bool sending, std::size_t bytes) noexcept {
  if (!sending) return;
  send_buffer_bytes_ = std::max<std::size_t>(bytes, 1);
  if (has_channels()) out_->set_capacity(send_buffer_bytes_);
}

}  // namespace tambour::sim::detail
