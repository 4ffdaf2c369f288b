// Connecting the bufferevents of sockets, by address and by name.

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <event2/util.h>

#include "base/system_call.h"
#include "libevent/bufferevent/bufferevent_socket.h"

using tambour::detail::base::Call;
using tambour::libevent::BevLocked;
using tambour::libevent::BufferEvent;
using tambour::libevent::Held;
using tambour::libevent::of;
namespace base = tambour::detail::base;
namespace suspended = tambour::libevent::suspended;

struct evdns_base;

extern "C" {
evdns_getaddrinfo_request* evutil_getaddrinfo_async_(evdns_base* dns, const char* node,
                                                     const char* service,
                                                     const evutil_addrinfo* hints,
                                                     void (*callback)(int, evutil_addrinfo*, void*),
                                                     void* argument);
int bufferevent_socket_set_conn_address_(bufferevent* bev, const sockaddr* address,
                                         std::size_t size);
}

namespace {

/// Connects to an address, with a new socket if there is none. Returns -1 if that fails at once.
int connect_to(BufferEvent& bev, const sockaddr* to, int size) noexcept {
  int used = bev.fd();
  const bool count = used < 0;
  if (count) {
    if (to == nullptr) return -1;
    used = base::system_call(Call::socket, ::socket, int{to->sa_family},
                             SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (used < 0) return -1;
  }
  // Without an address, the caller has started to connect.
  int error = EINPROGRESS;
  if (to != nullptr &&
      base::system_call(Call::connect, ::connect, used, to, static_cast<socklen_t>(size)) == 0)
    error = 0;
  else if (to != nullptr)
    error = errno;
  if (error != 0 && error != EINPROGRESS && error != EINTR && error != ECONNREFUSED) {
    if (count) ::close(used);
    errno = error;
    return -1;
  }
  bufferevent_setfd(&bev, used);
  if (error == 0) {
    // Connected at once, as Unix sockets are. The callback is invoked from the loop.
    bev.connecting = true;
    bev.trigger(EV_WRITE, BEV_OPT_DEFER_CALLBACKS);
    return 0;
  }
  if (error == ECONNREFUSED) {
    errno = error;
    bev.run_event_callback(BEV_EVENT_ERROR, BEV_OPT_DEFER_CALLBACKS);
    bufferevent_disable(&bev, EV_WRITE | EV_READ);
    return 0;
  }
  if (bev.start(EV_WRITE) != 0) return -1;
  bev.connecting = true;
  return 0;
}

}  // namespace

int bufferevent_socket_connect(bufferevent* bev, const sockaddr* sa, int socklen) {
  const Held held(of(bev));
  if (!of(bev).can_connect()) return -1;
  return connect_to(of(bev), sa, socklen);
}

namespace {

void on_lookup(int result, evutil_addrinfo* addresses, void* argument) {
  BufferEvent& bev = of(static_cast<bufferevent*>(argument));
  tambour::libevent::lock(bev.lock);
  bev.resume_writing(suspended::lookup);
  bev.resume_reading(suspended::lookup);
  bev.lookup = nullptr;
  const auto size = result == 0 ? static_cast<std::size_t>(addresses->ai_addrlen) : 0;
  if (result == 0) result = bufferevent_socket_set_conn_address_(&bev, addresses->ai_addr, size);
  if (result != 0) {
    bev.dns_error = result;
    if (result != EVUTIL_EAI_CANCEL) bev.run_event_callback(BEV_EVENT_ERROR, 0);
  } else {
    if (bufferevent_socket_connect(&bev, addresses->ai_addr, static_cast<int>(size)) != 0)
      bev.run_event_callback(BEV_EVENT_ERROR, 0);
  }
  bev.release();
  if (addresses != nullptr) evutil_freeaddrinfo(addresses);
}

}  // namespace

int bufferevent_socket_connect_hostname(bufferevent* bev, evdns_base* evdns_base, int family,
                                        const char* hostname, int port) {
  constexpr int port_max = 65535;
  if (family != AF_INET && family != AF_INET6 && family != AF_UNSPEC) return -1;
  if (port < 1 || port > port_max) return -1;
  evutil_addrinfo hints{};
  hints.ai_family = family;
  hints.ai_protocol = IPPROTO_TCP;
  hints.ai_socktype = SOCK_STREAM;
  char service[sizeof "65535"];
  std::snprintf(service, sizeof service, "%d", port);

  BufferEvent& self = of(bev);
  const Held held(self);
  self.dns_error = 0;
  self.suspend_writing(suspended::lookup);
  self.suspend_reading(suspended::lookup);
  ++self.references;  // Released by on_lookup().
  evdns_getaddrinfo_request* const request =
      evutil_getaddrinfo_async_(evdns_base, hostname, service, &hints, &on_lookup, bev);
  // Null if the answer was there at once.
  self.lookup = request;
  return 0;
}

int bufferevent_socket_get_dns_error(bufferevent* bev) {
  const BevLocked locked(of(bev));
  return of(bev).dns_error;
}

extern "C" {

const sockaddr* bufferevent_socket_get_conn_address_(bufferevent* bev) {
  static const sockaddr_storage none{};
  const sockaddr_storage* const address = of(bev).address;
  return reinterpret_cast<const sockaddr*>(address != nullptr ? address : &none);
}
/// Returns EVUTIL_EAI_FAIL if the address is longer than any.
int bufferevent_socket_set_conn_address_(bufferevent* bev, const sockaddr* address,
                                         std::size_t size) {
  if (size > sizeof(sockaddr_storage)) return EVUTIL_EAI_FAIL;
  sockaddr_storage*& known = of(bev).address;
  if (known == nullptr) {
    known = static_cast<sockaddr_storage*>(event_mm_calloc_(1, sizeof(sockaddr_storage)));
    if (known == nullptr) return EVUTIL_EAI_MEMORY;
  }
  std::memcpy(known, address, size);
  return 0;
}
void bufferevent_socket_set_conn_address_fd_(bufferevent* bev, int fd) {
  sockaddr_storage* const address = of(bev).address;
  socklen_t size = sizeof *address;
  if (address != nullptr) ::getpeername(fd, reinterpret_cast<sockaddr*>(address), &size);
}

}  // extern "C"
