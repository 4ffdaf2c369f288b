// DNS servers: reads requests from the socket, and keeps the responses that it does not accept.
#include "libevent/evdns/server_port.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include <event2/dns_compat.h>
#include <event2/util.h>

#include "base/system_call.h"
#include "libevent/evdns/base.h"
#include "libevent/event/core.h"
#include "libevent/event/log.h"

using tambour::detail::base::Call;
using tambour::libevent::lock;
using tambour::libevent::ServerRequest;
using tambour::libevent::unlock;
namespace base = tambour::detail::base;
namespace libevent = tambour::libevent;

namespace {

constexpr int packets_per_event = 64;
/// The largest query that is read, as in the original.
constexpr std::size_t packet_bytes = 1500;
/// Responses that wait for a full socket; more are lost, as datagrams may be.
constexpr int pending_max = 1000;

}  // namespace

bool evdns_server_port::start(event_base* base) noexcept {
  event_assign(&readable_, base, fd, EV_READ | EV_PERSIST, &on_readable, this);
  event_assign(&writable_, base, fd, EV_WRITE | EV_PERSIST, &on_writable, this);
  return event_add(&readable_, nullptr) == 0;
}

void evdns_server_port::close() noexcept {
  libevent::lock(lock);
  is_closed_ = true;
  event_del_noblock(&readable_);
  release();
}

void evdns_server_port::release() noexcept {
  const bool is_last = --references == 0;
  unlock(lock);
  if (!is_last) return;
  event_del_noblock(&readable_);
  event_del_noblock(&writable_);
  if (fd > 0) ::close(fd);
  // Another thread may be about to run the callbacks.
  event_callback* callbacks[] = {&readable_.ev_evcallback, &writable_.ev_evcallback};
  event_callback_finalize_many_(readable_.ev_base, 2, callbacks, &on_finalize);
}

void evdns_server_port::on_finalize(event_callback* /*function*/, void* argument) {
  auto* const port = static_cast<evdns_server_port*>(argument);
  event_debug_unassign(&port->readable_);
  event_debug_unassign(&port->writable_);
  libevent::free_lock(port->lock, EVTHREAD_LOCKTYPE_RECURSIVE);
  event_mm_free_(port);
}

void evdns_server_port::on_readable(evutil_socket_t /*fd*/, short /*what*/, void* argument) {
  auto& port = *static_cast<evdns_server_port*>(argument);
  libevent::lock(port.lock);
  if (port.references == 0) return unlock(port.lock);
  ++port.references;
  for (int i = 0; i < packets_per_event && !port.is_closed_ && port.receive(); ++i) {
  }
  port.release();
}

bool evdns_server_port::receive() noexcept {
  std::array<std::uint8_t, packet_bytes> packet;
  sockaddr_storage from{};
  auto* const address = reinterpret_cast<sockaddr*>(&from);
  socklen_t size = sizeof from;
  const ssize_t got =
      base::system_call(Call::recv, ::recvfrom, fd, static_cast<void*>(packet.data()),
                        packet.size(), MSG_DONTWAIT, address, &size);
  if (got < 0) {
    if (errno != EAGAIN && errno != EINTR)
      libevent::evdns_log(EVENT_LOG_WARN, "Error %s (%d) while reading request.",
                          evutil_socket_error_to_string(errno), errno);
    return false;
  }
  const auto bytes = std::as_bytes(std::span(packet.data(), static_cast<std::size_t>(got)));
  ServerRequest* const request = ServerRequest::parse(*this, bytes, address, size);
  if (request == nullptr) return true;
  unlock(lock);
  if (request->opcode() != 0) {
    evdns_server_request_respond(request, DNS_ERR_NOTIMPL);
  } else {
    callback(request, argument);
  }
  libevent::lock(lock);
  return true;
}

bool evdns_server_port::respond(ServerRequest& request) noexcept {
  if ((first_pending_ == nullptr && request.send()) || pending_count_ == pending_max) {
    request.free();
    return true;
  }
  request.next = nullptr;
  *std::exchange(last_pending_, &request.next) = &request;
  if (pending_count_++ == 0) event_add(&writable_, nullptr);
  unlock(lock);
  return false;
}

void evdns_server_port::on_writable(evutil_socket_t /*fd*/, short /*what*/, void* argument) {
  auto& port = *static_cast<evdns_server_port*>(argument);
  libevent::lock(port.lock);
  if (port.references == 0) return unlock(port.lock);
  ++port.references;
  port.flush();
  port.release();
}

void evdns_server_port::flush() noexcept {
  while (ServerRequest* const request = first_pending_) {
    if (!request->send()) return;
    first_pending_ = request->next;
    if (first_pending_ == nullptr) last_pending_ = &first_pending_;
    --pending_count_;
    request->free();
    libevent::lock(lock);
  }
  event_del_noblock(&writable_);
}

evdns_server_port* evdns_add_server_port_with_base(event_base* base, evutil_socket_t socket,
                                                   int flags,
                                                   evdns_request_callback_fn_type callback,
                                                   void* user_data) {
  if (flags != 0) return nullptr;
  void* const memory = event_mm_malloc_(sizeof(evdns_server_port));
  if (memory == nullptr) return nullptr;
  auto* const created = new (memory) evdns_server_port(socket, callback, user_data);
  // Before the events, which another thread may run at once.
  created->lock = libevent::make_lock(EVTHREAD_LOCKTYPE_RECURSIVE);
  if (!created->start(base)) {
    libevent::free_lock(created->lock, EVTHREAD_LOCKTYPE_RECURSIVE);
    event_mm_free_(memory);
    return nullptr;
  }
  return created;
}

evdns_server_port* evdns_add_server_port(evutil_socket_t socket, int flags,
                                         evdns_request_callback_fn_type callback, void* user_data) {
  return evdns_add_server_port_with_base(nullptr, socket, flags, callback, user_data);
}

void evdns_close_server_port(evdns_server_port* port) { port->close(); }
