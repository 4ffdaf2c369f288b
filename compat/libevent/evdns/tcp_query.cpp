// One query over TCP: connects, writes the query with its length, and reads the response.
#include "libevent/evdns/tcp_query.h"

#include <unistd.h>

#include <cerrno>
#include <new>

#include "base/system_call.h"
#include "libevent/evdns/base.h"
#include "libevent/util/addrinfo.h"

namespace tambour::libevent {

using detail::base::Call;

TcpQuery* TcpQuery::make(evdns_request& request, const sockaddr* address, socklen_t size) noexcept {
  void* const memory = event_mm_malloc_(sizeof(TcpQuery));
  if (memory == nullptr) return nullptr;
  auto* const created = new (memory) TcpQuery(request);
  request.base.retain();
  if (created->open(address, size)) return created;
  created->remove();
  return nullptr;
}

bool TcpQuery::open(const sockaddr* address, socklen_t size) noexcept {
  query_size_ = 2 + request_->write(query_.data() + 2);
  query_[0] = static_cast<std::uint8_t>((query_size_ - 2) >> 8U);
  query_[1] = static_cast<std::uint8_t>(query_size_ - 2);
  const int family = address->sa_family;
  fd_ = detail::base::system_call(Call::socket, ::socket, family,
                                  SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return false;
  const auto& options = base_.options;
  if (options.bind_to_size != 0 && evutil_sockaddr_is_loopback_(address) == 0) {
    sockaddr_storage from = options.bind_to;
    // The port is that of the datagrams.
    if (from.ss_family == AF_INET) reinterpret_cast<sockaddr_in*>(&from)->sin_port = 0;
    if (from.ss_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(&from)->sin6_port = 0;
    if (detail::base::system_call(Call::bind, ::bind, fd_, reinterpret_cast<const sockaddr*>(&from),
                                  static_cast<socklen_t>(options.bind_to_size)) != 0)
      return false;
  }
  if (detail::base::system_call(Call::connect, ::connect, fd_, address, size) != 0 &&
      errno != EINPROGRESS)
    return false;
  return watch(EV_WRITE);
}

bool TcpQuery::watch(short events) noexcept {
  if (is_assigned_) event_del(&event_);
  is_assigned_ = true;
  done_ = 0;
  return event_assign(&event_, base_.events, fd_, static_cast<short>(events | EV_PERSIST),
                      &on_event, this) == 0 &&
         event_add(&event_, nullptr) == 0;
}

void TcpQuery::remove() noexcept {
  request_ = nullptr;
  if (is_assigned_) event_del_noblock(&event_);
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (is_assigned_ && event_finalize(0, &event_, &on_finalize) == 0) return;
  evdns_base& owner = base_;
  destroy();
  --owner.references;
}

void TcpQuery::on_finalize(event* /*ev*/, void* argument) {
  auto& query = *static_cast<TcpQuery*>(argument);
  evdns_base& base = query.base_;
  lock(base.lock);
  query.destroy();
  base.release();
}

void TcpQuery::destroy() noexcept {
  if (is_assigned_) event_debug_unassign(&event_);
  if (reply_ != nullptr) event_mm_free_(reply_);
  event_mm_free_(this);
}

void TcpQuery::on_event(evutil_socket_t /*fd*/, short kind, void* argument) {
  auto& query = *static_cast<TcpQuery*>(argument);
  evdns_base& base = query.base_;
  const HeldLock locked(base.lock);
  if (query.request_ == nullptr) return;
  if ((kind & EV_WRITE) != 0) {
    query.write();
  } else {
    query.read();
  }
  base.pump();
}

void TcpQuery::write() noexcept {
  const ssize_t sent = detail::base::system_call(Call::send, ::send, fd_,
                                                 static_cast<const void*>(query_.data() + done_),
                                                 query_size_ - done_, MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (sent < 0) return end({});
  done_ += static_cast<std::size_t>(sent);
  if (done_ == query_size_ && !watch(EV_READ)) end({});
}

bool TcpQuery::read_into(std::uint8_t* bytes, std::size_t size) noexcept {
  const ssize_t got = detail::base::system_call(Call::recv, ::recv, fd_,
                                                static_cast<void*>(bytes + done_), size - done_, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    end({});
    return false;
  }
  done_ += static_cast<std::size_t>(got);
  return done_ == size;
}

void TcpQuery::read() noexcept {
  if (reply_ == nullptr) {
    if (!read_into(length_.data(), length_.size())) return;
    done_ = 0;
    reply_size_ = length_[0] * std::size_t{256} + length_[1];
    reply_ = static_cast<std::uint8_t*>(event_mm_malloc_(reply_size_));
    return reply_ != nullptr ? void() : end({});
  }
  if (read_into(reply_, reply_size_)) end(std::as_bytes(std::span(reply_, reply_size_)));
}

void TcpQuery::end(dns::detail::Bytes packet) noexcept { request_->take_tcp_reply(packet); }

}  // namespace tambour::libevent
