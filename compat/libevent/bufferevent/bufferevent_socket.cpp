// Bufferevents of sockets, and how they connect.

#include "libevent/bufferevent/bufferevent_socket.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include <event2/buffer.h>

#include "base/system_call.h"
#include "libevent/buffer/buffer.h"
#include "libevent/event/observed.h"

extern "C" {
#include <event2/bufferevent_compat.h>
}

using tambour::detail::base::Call;
using tambour::libevent::BevLocked;
using tambour::libevent::BufferEvent;
using tambour::libevent::Held;
using tambour::libevent::of;
using tambour::libevent::Socket;
namespace base = tambour::detail::base;

extern "C" {
const bufferevent_ops bufferevent_ops_socket = {"socket"};
void evutil_getaddrinfo_cancel_async_(evdns_getaddrinfo_request* request);
}

namespace {

bool is_temporary(int error) noexcept { return error == EAGAIN || error == EINTR; }

// Per event, without a limit or maximum of the user: an echo of 64 KiB takes half as long as with
// libevent's 16 KiB; more does not pay.
constexpr ev_ssize_t bulk_size = 65536;

/// The result of a connection in progress: 1 if it is established, 0 if not yet, -1 with errno.
int connection_state(int fd) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  if (base::system_call(Call::getsockopt, ::getsockopt, fd, SOL_SOCKET, SO_ERROR,
                        static_cast<void*>(&error), &size) != 0)
    return -1;
  if (error == 0) return 1;
  if (error == EINPROGRESS || error == EINTR) return 0;
  errno = error;
  return -1;
}

}  // namespace

namespace tambour::libevent {

Socket::Socket() noexcept : BufferEvent(bufferevent_ops_socket) {}

bool Socket::open(int fd) noexcept {
  evbuffer_set_flags(output, EVBUFFER_FLAG_DRAINS_TO_FD);
  assign(fd);
  if (evbuffer_add_cb(output, &on_output, static_cast<bufferevent*>(this)) == nullptr) return false;
  evbuffer_freeze(input, 0);
  evbuffer_freeze(output, 1);
  return true;
}

void Socket::assign(int fd) noexcept {
  auto* const user = static_cast<bufferevent*>(this);
  event_assign(&ev_read, ev_base, fd, EV_READ | EV_PERSIST | EV_FINALIZE, &on_readable, user);
  event_assign(&ev_write, ev_base, fd, EV_WRITE | EV_PERSIST | EV_FINALIZE, &on_writable, user);
}

void Socket::on_output(evbuffer* /*output*/, const evbuffer_cb_info* info, void* argument) {
  BufferEvent& bev = of(static_cast<bufferevent*>(argument));
  // If the event cannot be added, the bytes remain, and the next addition tries again.
  if (info->n_added != 0 && (bev.enabled & EV_WRITE) != 0 && bev.write_suspended == 0 &&
      ::event_pending(&bev.ev_write, EV_WRITE, nullptr) == 0)
    add_event(bev.ev_write, bev.timeout_write);
}

void Socket::on_readable(evutil_socket_t fd, short events, void* argument) {
  auto& self = static_cast<Socket&>(of(static_cast<bufferevent*>(argument)));
  const Held held(self);
  self.read(fd, events);
}

void Socket::on_writable(evutil_socket_t fd, short events, void* argument) {
  auto& self = static_cast<Socket&>(of(static_cast<bufferevent*>(argument)));
  const Held held(self);
  self.write(fd, events);
}

void Socket::fail_reading(int kind) noexcept {
  bufferevent_disable(this, EV_READ);
  run_event_callback(static_cast<short>(kind | BEV_EVENT_READING), 0);
}

void Socket::fail_writing(int kind) noexcept {
  bufferevent_disable(this, EV_WRITE);
  run_event_callback(static_cast<short>(kind | BEV_EVENT_WRITING), 0);
}

ev_ssize_t Socket::read_size() noexcept {
  if (limit != nullptr || read_max != 0) return read_allowance(*this);
  // Space for large reads is not allocated for small messages.
  return bulk_ ? bulk_size : single_transfer_default;
}

ev_ssize_t Socket::write_size() noexcept {
  return limit != nullptr || write_max != 0 ? write_allowance(*this) : bulk_size;
}

void Socket::read(int fd, short events) noexcept {
  if (events == EV_TIMEOUT) return fail_reading(BEV_EVENT_TIMEOUT);
  ev_ssize_t wanted = read_size();
  if (wm_read.high != 0) {
    const std::size_t there = evbuffer_get_length(input);
    if (there >= wm_read.high) return suspend_reading(suspended::watermark);
    const std::size_t room = wm_read.high - there;
    if (room < static_cast<std::size_t>(wanted)) wanted = static_cast<ev_ssize_t>(room);
  }
  // Reading no bytes would look like the end of the stream.
  if (read_suspended != 0 || wanted == 0) return;
  evbuffer_unfreeze(input, 0);
  const int n = evbuffer_read(input, fd, static_cast<int>(std::min<ev_ssize_t>(wanted, INT_MAX)));
  const int error = errno;
  evbuffer_freeze(input, 0);
  if (n > 0) {
    bulk_ = n >= single_transfer_default;
    count_read(*this, n);
    return trigger(EV_READ, 0);
  }
  errno = error;
  if (n == 0) return fail_reading(BEV_EVENT_EOF);
  if (is_temporary(error)) return;
  if (error == ECONNREFUSED) {
    // Reported by write(), which has the state of the connection.
    refused = true;
    return;
  }
  fail_reading(BEV_EVENT_ERROR);
}

bool Socket::finish_connecting(int fd) noexcept {
  int state = connection_state(fd);
  if (refused) {
    refused = false;
    state = -1;
  }
  if (state == 0) return false;
  connecting = false;
  if (state < 0) {
    const int error = errno;
    event_del(&ev_write);
    event_del(&ev_read);
    errno = error;
    run_event_callback(BEV_EVENT_ERROR, 0);
    return false;
  }
  bufferevent_socket_set_conn_address_fd_(this, fd);
  run_event_callback(BEV_EVENT_CONNECTED, 0);
  // The callback may have begun another connection.
  if (connecting || this->fd() != fd) return false;
  if ((enabled & EV_WRITE) != 0 && write_suspended == 0) return true;
  event_del(&ev_write);
  return false;
}

void Socket::write(int fd, short events) noexcept {
  if (events == EV_TIMEOUT) return fail_writing(BEV_EVENT_TIMEOUT);
  const bool connected = connecting;
  if (connecting && !finish_connecting(fd)) return;
  const ev_ssize_t wanted = write_size();
  if (write_suspended != 0 || wanted == 0) return;
  ssize_t n = 0;
  if (evbuffer_get_length(output) != 0) {
    int error = 0;
    {
      const Locked locked(output);
      output->front_frozen = false;
      n = write_from(*output, fd, static_cast<std::size_t>(wanted), true);
      error = errno;
      output->front_frozen = true;
    }
    if (n < 0) {
      if (is_temporary(error)) return;
      errno = error;
      return fail_writing(BEV_EVENT_ERROR);
    }
    if (n == 0) return fail_writing(BEV_EVENT_EOF);
    count_written(*this, n);
  }
  if (evbuffer_get_length(output) == 0) event_del(&ev_write);
  if (n != 0 || !connected) trigger(EV_WRITE, 0);
}

int Socket::start(short events) noexcept {
  if ((events & EV_READ) != 0 && add_event(ev_read, timeout_read) == -1) return -1;
  if ((events & EV_WRITE) != 0 && add_event(ev_write, timeout_write) == -1) return -1;
  return 0;
}

int Socket::stop(short events) noexcept {
  if ((events & EV_READ) != 0 && event_del(&ev_read) == -1) return -1;
  // The event reports the end of the connection attempt.
  if ((events & EV_WRITE) != 0 && !connecting && event_del(&ev_write) == -1) return -1;
  return 0;
}

void Socket::destruct() noexcept {
  const int closed = fd();
  if ((options & BEV_OPT_CLOSE_ON_FREE) != 0 && closed >= 0) ::close(closed);
  cancel_lookup();
}

void Socket::cancel_lookup() noexcept {
  if (lookup != nullptr) evutil_getaddrinfo_cancel_async_(lookup);
}

int Socket::flush(short /*events*/, bufferevent_flush_mode /*mode*/) noexcept { return 0; }

bool Socket::set_fd(int fd) noexcept {
  event_del(&ev_read);
  event_del(&ev_write);
  // Until the first transfer, the user may add input and remove output, as in libevent.
  evbuffer_unfreeze(input, 0);
  evbuffer_unfreeze(output, 1);
  assign(fd);
  if (fd >= 0) bufferevent_enable(this, enabled);
  cancel_lookup();
  return true;
}

int Socket::fd() noexcept { return event_get_fd(&ev_read); }

}  // namespace tambour::libevent

bufferevent* bufferevent_socket_new(event_base* base, evutil_socket_t fd, int options) {
  auto* const buffer_event = BufferEvent::make<Socket>(base, options);
  if (buffer_event == nullptr) return nullptr;
  if (buffer_event->open(fd)) return buffer_event;
  buffer_event->options &= ~BEV_OPT_CLOSE_ON_FREE;  // The caller keeps the descriptor.
  bufferevent_free(buffer_event);
  return nullptr;
}

bufferevent* bufferevent_new(evutil_socket_t fd, bufferevent_data_cb readcb,
                             bufferevent_data_cb writecb, bufferevent_event_cb eventcb,
                             void* cbarg) {
  bufferevent* const created = bufferevent_socket_new(nullptr, fd, 0);
  if (created != nullptr) bufferevent_setcb(created, readcb, writecb, eventcb, cbarg);
  return created;
}

int bufferevent_priority_set(bufferevent* bufev, int pri) {
  if (bufev->be_ops == &bufferevent_ops_filter || bufev->be_ops == &bufferevent_ops_pair) return -1;
  const BevLocked locked(of(bufev));
  if (event_priority_set(&bufev->ev_read, pri) == -1) return -1;
  if (event_priority_set(&bufev->ev_write, pri) == -1) return -1;
  event_deferred_cb_set_priority_(&of(bufev).deferred, static_cast<std::uint8_t>(pri));
  return 0;
}

int bufferevent_base_set(event_base* base, bufferevent* bufev) {
  if (bufev->be_ops != &bufferevent_ops_socket) return -1;
  const BevLocked locked(of(bufev));
  bufev->ev_base = base;
  if (event_base_set(base, &bufev->ev_read) == -1) return -1;
  return event_base_set(base, &bufev->ev_write);
}

bufferevent* tambour::libevent::bufferevent_of(const event_callback& callback) noexcept {
  const auto& functions = callback.evcb_cb_union;
  const bool is_own = (callback.evcb_flags & EVLIST_INIT) != 0
                          ? Socket::is_callback(functions.evcb_callback)
                          : BufferEvent::is_deferred(functions.evcb_selfcb);
  return is_own ? static_cast<bufferevent*>(callback.evcb_arg) : nullptr;
}

std::size_t tambour::libevent::input_bytes(const bufferevent& bev) noexcept {
  return __atomic_load_n(&bev.input->length, __ATOMIC_RELAXED);
}

std::size_t tambour::libevent::output_bytes(const bufferevent& bev) noexcept {
  return __atomic_load_n(&bev.output->length, __ATOMIC_RELAXED);
}
