// The part of evhttp_connection that clients and servers share: its life, its timeouts, and its
// end.
#include "libevent/http/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include <event2/buffer.h>
#include <event2/bufferevent_struct.h>

#include "libevent/http/http_text.h"
#include "libevent/http/server.h"

extern "C" {
const sockaddr* bufferevent_socket_get_conn_address_(bufferevent* bev);
int bufferevent_disable_hard_(bufferevent* bev, short events);
int bufferevent_get_options_(bufferevent* bev);
}

namespace flags_of = tambour::libevent::connection_flags;
using tambour::libevent::Kept;
using tambour::libevent::LingeringClose;

namespace {

// Of clients, in seconds.
constexpr timeval transfer_timeout{50, 0};

void on_read_more(event_callback* /*callback*/, void* argument) {
  auto& connection = *static_cast<evhttp_connection*>(argument);
  bufferevent* const bev = connection.bufev;
  if (bev->readcb != nullptr) bev->readcb(bev, bev->cbarg);
}

}  // namespace

void evhttp_connection::unlink(evhttp_request& request) noexcept {
  TAILQ_REMOVE(&requests, &request, next);
  request.evcon = nullptr;
}

void evhttp_connection::drop(evhttp_request& request) noexcept {
  unlink(request);
  tambour::libevent::free_unless_owned(request);
}

void evhttp_connection::release() noexcept {
  if (--references != 0) return;
  this->~evhttp_connection();
  event_mm_free_(this);
}

void evhttp_connection::invoke_close_callback() noexcept {
  if (fd == -1 || !is_connected() || close_callback == nullptr || in_close_callback) return;
  // It may free the connection, which would invoke it again.
  in_close_callback = true;
  close_callback(this, close_argument);
  in_close_callback = false;
}

void evhttp_connection::reset() noexcept {
  const Kept kept(*this);
  cancel_reading();
  resume_reading();
  bufferevent_setcb(bufev, nullptr, nullptr, nullptr, nullptr);
  // An attempt to connect would still time out.
  bufferevent_disable_hard_(bufev, EV_READ | EV_WRITE);
  if (fd == -1) fd = bufferevent_getfd(bufev);
  if (fd != -1) {
    invoke_close_callback();
    if (freed) return;
    ::shutdown(fd, SHUT_WR);
    ::close(fd);
    fd = -1;
  }
  bufferevent_setfd(bufev, -1);
  // Closing may have been in the middle of a transfer.
  evbuffer_unfreeze(output(), 1);
  evbuffer_drain(output(), evbuffer_get_length(output()));
  evbuffer_unfreeze(input(), 1);
  evbuffer_drain(input(), evbuffer_get_length(input()));
  flags &= ~(flags_of::reads_after_error | flags_of::closes);
  state = State::disconnected;
}

void evhttp_connection::close() noexcept {
  const bool closes_on_free = (bufferevent_get_options_(bufev) & BEV_OPT_CLOSE_ON_FREE) != 0;
  if (fd == -1) fd = bufferevent_getfd(bufev);
  const bool does_linger = has(flags_of::lingers) && server != nullptr && fd != -1;
  const int lingering = does_linger && closes_on_free ? ::dup(fd) : fd;
  bufferevent_free(bufev);
  bufev = nullptr;
  if (does_linger && lingering != -1) {
    LingeringClose::start(base, server->lingering, lingering);
  } else if (fd != -1 && !closes_on_free) {
    ::shutdown(fd, SHUT_WR);
    ::close(fd);
  }
  fd = -1;
}

void evhttp_connection_free(evhttp_connection* evcon) {
  // The close callback may call this function.
  if (evcon->freed) return;
  evcon->freed = true;
  evcon->retire();
}

void evhttp_connection::retire() noexcept {
  const Kept kept(*this);
  invoke_close_callback();
  while (evhttp_request* const request = current()) drop(*request);
  cancel_reading();
  if (waits_for_retry) event_del(&retry);
  if (event_initialized(&retry) != 0) event_debug_unassign(&retry);
  close();
  if (pool != nullptr) tambour::libevent::leave_pool(*this);
  if (server != nullptr) TAILQ_REMOVE(&server->connections, this, next);
  for (char* const text : {bind_address, address})
    if (text != nullptr) event_mm_free_(text);
  bind_address = address = nullptr;
  --references;
}

evhttp_connection* evhttp_connection_base_bufferevent_new(event_base* base, evdns_base* dnsbase,
                                                          bufferevent* bev, const char* address,
                                                          unsigned short port) {
  void* const memory = event_mm_malloc_(sizeof(evhttp_connection));
  if (memory == nullptr) {
    event_warn("evhttp_connection: no memory");
    return nullptr;
  }
  auto* const created = new (memory) evhttp_connection{};
  TAILQ_INIT(&created->requests);
  created->port = port;
  created->base = base;
  created->dns = dnsbase;
  created->address = event_mm_strdup_(address);
  created->bufev = bev != nullptr ? bev : bufferevent_socket_new(base, -1, 0);
  if (created->address == nullptr || created->bufev == nullptr) {
    event_warn("evhttp_connection: no memory");
    if (created->address != nullptr) event_mm_free_(created->address);
    // The caller keeps its own.
    if (created->bufev != nullptr && bev == nullptr) bufferevent_free(created->bufev);
    created->release();
    return nullptr;
  }
  if (base != nullptr && bufferevent_get_base(created->bufev) != base)
    bufferevent_base_set(base, created->bufev);
  event_deferred_cb_init_(&created->read_more,
                          static_cast<std::uint8_t>(bufferevent_get_priority(created->bufev)),
                          &on_read_more, created);
  return created;
}

evhttp_connection* evhttp_connection_base_new(event_base* base, evdns_base* dnsbase,
                                              const char* address, unsigned short port) {
  return evhttp_connection_base_bufferevent_new(base, dnsbase, nullptr, address, port);
}

extern "C" evhttp_connection* evhttp_connection_new(const char* address, unsigned short port) {
  return evhttp_connection_base_new(nullptr, nullptr, address, port);
}

extern "C" void evhttp_connection_set_base(evhttp_connection* evcon, event_base* base) {
  evcon->base = base;
  bufferevent_base_set(base, evcon->bufev);
}

void evhttp_connection_free_on_completion(evhttp_connection* evcon) {
  evcon->flags |= flags_of::free_on_completion;
}

bufferevent* evhttp_connection_get_bufferevent(evhttp_connection* evcon) { return evcon->bufev; }
evhttp* evhttp_connection_get_server(evhttp_connection* evcon) { return evcon->server; }
event_base* evhttp_connection_get_base(evhttp_connection* req) { return req->base; }

void evhttp_connection_set_max_headers_size(evhttp_connection* evcon,
                                            ev_ssize_t new_max_headers_size) {
  evcon->head_bytes_max =
      new_max_headers_size < 0 ? SIZE_MAX : static_cast<std::size_t>(new_max_headers_size);
}
void evhttp_connection_set_max_body_size(evhttp_connection* evcon, ev_ssize_t new_max_body_size) {
  evcon->body_bytes_max =
      new_max_body_size < 0 ? UINT64_MAX : static_cast<std::uint64_t>(new_max_body_size);
}

void evhttp_connection_set_local_address(evhttp_connection* evcon, const char* address) {
  if (evcon->bind_address != nullptr) event_mm_free_(evcon->bind_address);
  evcon->bind_address = event_mm_strdup_(address);
  if (evcon->bind_address == nullptr) event_warn("evhttp_connection_set_local_address: no memory");
}
void evhttp_connection_set_local_port(evhttp_connection* evcon, ev_uint16_t port) {
  evcon->bind_port = port;
}

void evhttp_connection_set_family(evhttp_connection* evcon, int family) { evcon->family = family; }

int evhttp_connection_set_flags(evhttp_connection* evcon, int flags) {
  constexpr int available = EVHTTP_CON_REUSE_CONNECTED_ADDR | EVHTTP_CON_READ_ON_WRITE_ERROR;
  if ((flags & ~available) != 0) return 1;
  evcon->flags = (evcon->flags & ~available) | flags;
  return 0;
}

void evhttp_connection_set_timeout(evhttp_connection* evcon, int timeout_in_secs) {
  const timeval timeout{timeout_in_secs, 0};
  evhttp_connection_set_timeout_tv(evcon, timeout_in_secs != -1 ? &timeout : nullptr);
}
void evhttp_connection_set_timeout_tv(evhttp_connection* evcon, const timeval* tv) {
  evcon->timeout = tv != nullptr ? *tv : timeval{};
  if (tv == nullptr) tv = &transfer_timeout;
  bufferevent_set_timeouts(evcon->bufev, tv, tv);
}

void evhttp_connection_set_initial_retry_tv(evhttp_connection* evcon, const timeval* tv) {
  evcon->initial_retry_timeout = tv != nullptr ? *tv : timeval{2, 0};
}
void evhttp_connection_set_retries(evhttp_connection* evcon, int retry_max) {
  evcon->retries_max = retry_max;
}

void evhttp_connection_set_closecb(evhttp_connection* evcon, void (*cb)(evhttp_connection*, void*),
                                   void* cbarg) {
  evcon->close_callback = cb;
  evcon->close_argument = cbarg;
}

void evhttp_connection_get_peer(evhttp_connection* evcon, char** address, ev_uint16_t* port) {
  *address = evcon->address;
  *port = evcon->port;
}
const sockaddr* evhttp_connection_get_addr(evhttp_connection* evcon) {
  return bufferevent_socket_get_conn_address_(evcon->bufev);
}

extern "C" {

void evhttp_connection_reset_(evhttp_connection* evcon) { evcon->reset(); }
void evhttp_connection_fail_(evhttp_connection* evcon, evhttp_request_error error) {
  evcon->fail(error);
}
int evhttp_connection_connect_(evhttp_connection* evcon) { return evcon->connect(); }
void evhttp_start_read_(evhttp_connection* evcon) { evcon->start_reading(); }

}  // extern "C"
