// DatagramSocket: sends to sockets of the host, or over the network, where datagrams are lost,
// duplicated or refused.
#include "sim/sockets/datagram_socket.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.h"

namespace tambour::sim::detail {

void DatagramSocket::pair(DatagramSocket& one, DatagramSocket& other) noexcept {
  one.unix_peer_ = other.weak_from_this();
  other.unix_peer_ = one.weak_from_this();
  for (DatagramSocket* socket : {&one, &other}) {
    socket->connected_ = true;
    socket->peer_.family = AF_UNIX;
  }
}

bool DatagramSocket::has_room(std::size_t bytes) const noexcept {
  constexpr std::size_t unix_queue_max = 11;
  if (is_unix() && queue_.size() >= unix_queue_max) return false;
  return queue_.empty() || queued_bytes_ + bytes <= buffer_bytes(false);
}

Events DatagramSocket::readiness() const noexcept {
  Events events = Events::none;
  if (error_ != 0) events |= Events::error;
  if (shut_read_) events |= Events::read | Events::closed;
  if (shut_read_ && shut_write_) events |= hang_up;
  if (!queue_.empty()) events |= Events::read;
  const auto peer = unix_peer_.lock();
  if (peer == nullptr || peer->has_room(0)) events |= Events::write;
  return events;
}

ssize_t DatagramSocket::receive(Message& message) {
  if (error_ != 0) return -take_error();
  if (queue_.empty()) return -EAGAIN;
  const Datagram& first = queue_.front();
  const std::size_t taken = scatter(first.bytes, message.buffers);
  const std::size_t full = first.bytes.size();
  if (taken < full) message.flags_out |= MSG_TRUNC;
  message.from = first.from;
  if ((message.flags & MSG_PEEK) == 0) {
    queued_bytes_ -= full;
    queue_.pop_front();
    if (const auto peer = unix_peer_.lock()) peer->changed();
  }
  return ssize_t((message.flags & MSG_TRUNC) != 0 ? full : taken);
}

ssize_t DatagramSocket::send(Message& message) {
  if (error_ != 0 && !is_unix()) return -take_error();
  if (shut_write_) return -EPIPE;
  const std::size_t size = total_size(message.buffers);
  std::string bytes = gather(message.buffers, size);
  if (is_unix()) {
    if (size > buffer_bytes(true)) return -EMSGSIZE;
    return send_unix(message.to, std::move(bytes));
  }
  if (message.to == nullptr && !connected_) return -EDESTADDRREQ;
  constexpr std::size_t udp_bytes_max = 65507;
  if (size > udp_bytes_max) return -EMSGSIZE;
  return send_udp(message.to != nullptr ? *message.to : peer_, std::move(bytes));
}

std::shared_ptr<DatagramSocket> DatagramSocket::unix_target(const Address* to) const noexcept {
  if (to == nullptr) return unix_peer_.lock();
  auto* found = static_cast<DatagramSocket*>(machine_.find(SOCK_DGRAM, *to));
  return found == nullptr ? nullptr : found->shared_from_this();
}

ssize_t DatagramSocket::send_unix(const Address* to, std::string bytes) {
  const auto size = ssize_t(bytes.size());
  const auto target = unix_target(to);
  if (target == nullptr) {
    if (to != nullptr) return machine_.error_for_missing(SOCK_DGRAM, to->path);
    // The peer was closed: fail once with ECONNREFUSED, and then with ENOTCONN.
    return std::exchange(connected_, false) ? -ECONNREFUSED : -ENOTCONN;
  }
  // A connected socket accepts datagrams of its peer only: unix(7).
  if (target->connected_ && target->unix_peer_.lock().get() != this) return -EPERM;
  if (target->shut_read_) return -EPIPE;
  if (!target->has_room(bytes.size())) return -EAGAIN;
  Address from = local_;
  from.family = local_.path.empty() ? AF_UNSPEC : AF_UNIX;
  target->accept_datagram({.from = std::move(from), .bytes = std::move(bytes)});
  return size;
}

ssize_t DatagramSocket::send_udp(const Address& to, std::string bytes) {
  Machine* target = machine_.route(to);
  if (target == nullptr) return -ENETUNREACH;
  if (const int error = ensure_bound(to)) return error;
  const auto size = ssize_t(bytes.size());
  if (target == &machine_) {
    arrive(*target, to, std::move(bytes));
    return size;
  }
  World& world = machine_.world;
  const sim::Options& options = world.options;
  if (world.is_cut(machine_, *target) || world.random.chance(options.datagram_loss)) {
    world.trace_line(machine_.name) << "datagram to " << target->name << " lost";
    return size;
  }
  if (world.random.chance(options.datagram_duplication))
    transmit(*target, to, bytes, world.draw_delay_ns());
  std::int64_t delay_ns = world.draw_delay_ns();
  if (world.random.chance(options.datagram_reordering))
    delay_ns = base::saturating_add(
        delay_ns,
        world.random.between(0, base::saturating_multiply(options.delay_max.count(), 10)));
  transmit(*target, to, std::move(bytes), delay_ns);
  return size;
}

int DatagramSocket::ensure_bound(const Address& to) {
  if (bound_) return 0;
  Address any;
  any.family = family_;
  any.ip = connected_ ? machine_.source_for(to).ip : any.ip;
  return bind(any);
}

void DatagramSocket::transmit(Machine& target, const Address& to, std::string bytes,
                              std::int64_t delay_ns) {
  machine_.world.schedule_in(delay_ns,
                             [self = shared_from_this(), &target, to, sent = std::move(bytes)] {
                               self->arrive(target, to, sent);
                             });
}

void DatagramSocket::arrive(Machine& target, const Address& to, std::string bytes) {
  Address source = machine_.source_for(to);
  source.port = local_.port;
  auto* receiver = static_cast<DatagramSocket*>(target.find(SOCK_DGRAM, to));
  // A connected socket only receives datagrams from its peer.
  const bool heard = receiver != nullptr && (!receiver->connected_ || receiver->peer_ == source);
  if (!heard) {
    // udp(7): only connected sockets report an ICMP "port unreachable".
    if (connected_ && peer_ == to) {
      error_ = ECONNREFUSED;
      changed();
    }
    return;
  }
  if (!receiver->has_room(bytes.size())) {
    machine_.world.trace_line(target.name) << "datagram dropped, the buffer is full";
    return;
  }
  receiver->accept_datagram({.from = std::move(source), .bytes = std::move(bytes)});
}

void DatagramSocket::accept_datagram(Datagram datagram) {
  queued_bytes_ += datagram.bytes.size();
  queue_.push_back(std::move(datagram));
  changed();
}

int DatagramSocket::bind(const Address& address) {
  if (bound_) return -EINVAL;
  Address chosen = address;
  if (is_unix() && chosen.path.empty()) return -EOPNOTSUPP;
  if (const int error = machine_.bind(*this, chosen)) return error;
  local_ = std::move(chosen);
  bound_ = true;
  return 0;
}

int DatagramSocket::connect(const Address& address) {
  if (is_unix()) {
    const auto target = unix_target(&address);
    if (target == nullptr) return machine_.error_for_missing(SOCK_DGRAM, address.path);
    unix_peer_ = target;
  } else {
    if (machine_.route(address) == nullptr) return -ENETUNREACH;
    if (const int error = ensure_bound(address)) return error;
    if (local_.any()) local_.ip = machine_.source_for(address).ip;
  }
  peer_ = address;
  if (!is_unix() && address.any()) peer_.ip = machine_.source_for(address).ip;
  connected_ = true;
  return 0;
}

int DatagramSocket::shutdown(int mode) {
  if (mode != SHUT_RD && mode != SHUT_WR && mode != SHUT_RDWR) return -EINVAL;
  const bool reading = mode != SHUT_WR;
  const bool writing = mode != SHUT_RD;
  // Linux fails with ENOTCONN on an unconnected socket, but shuts it down all the same.
  shut_read_ |= reading;
  shut_write_ |= writing;
  changed();
  return connected_ || is_unix() ? 0 : -ENOTCONN;
}

void DatagramSocket::close() {
  if (bound_) machine_.unbind(*this, local_);
  bound_ = false;
  // Datagrams in flight may keep this object alive, but must not keep the peer connected.
  const auto peer = unix_peer_.lock();
  if (peer != nullptr && peer->unix_peer_.lock().get() == this) {
    peer->unix_peer_.reset();
    peer->changed();
  }
  queue_.clear();
}

std::size_t DatagramSocket::buffer_bytes(bool sending) const noexcept {
  if (!sending && receive_buffer_bytes_ != 0) return receive_buffer_bytes_;
  return machine_.world.options.datagram_buffer_bytes;
}

void DatagramSocket::set_buffer_bytes(bool sending, std::size_t bytes) noexcept {
  if (!sending) receive_buffer_bytes_ = std::max<std::size_t>(bytes, 1);
}

}  // namespace tambour::sim::detail
