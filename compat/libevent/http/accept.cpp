// The sockets of servers, and the connections that they accept.

#include <netdb.h>
#include <netinet/in.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <event2/bufferevent.h>
#include <event2/util.h>

#include "base/system_call.h"
#include "libevent/bufferevent/listener.h"
#include "libevent/event/core.h"
#include "libevent/http/server.h"

using tambour::detail::base::Call;
using tambour::libevent::bind_socket;
namespace base = tambour::detail::base;
namespace flags_of = tambour::libevent::connection_flags;

extern "C" int bufferevent_socket_set_conn_address_(bufferevent* bev, const sockaddr* address,
                                                    std::size_t size);

namespace {

constexpr int backlog = 128;

struct PeerName {
  char address[NI_MAXHOST];
  std::uint16_t port;
};

bool name_peer(sockaddr* peer, int size, PeerName& name) noexcept {
  // The path would be read as far as it is not overwritten.
  if (peer->sa_family == AF_UNIX) reinterpret_cast<sockaddr_un*>(peer)->sun_path[0] = '\0';
  char port[NI_MAXSERV];
  if (::getnameinfo(peer, static_cast<socklen_t>(size), name.address, sizeof name.address, port,
                    sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return false;
  name.port = static_cast<std::uint16_t>(std::atoi(port));
  return true;
}

int open_socket(const evutil_addrinfo* address, bool reuse) noexcept {
  const int family = address != nullptr ? address->ai_family : AF_INET;
  const int fd = base::system_call(Call::socket, ::socket, family,
                                   SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    event_warn("evhttp: socket");
    return -1;
  }
  const int enabled = 1;
  const bool is_set = base::system_call(Call::setsockopt, ::setsockopt, fd, SOL_SOCKET,
                                        SO_KEEPALIVE, static_cast<const void*>(&enabled),
                                        static_cast<socklen_t>(sizeof enabled)) == 0 &&
                      (!reuse || evutil_make_listen_socket_reuseable(fd) == 0);
  const bool is_bound =
      is_set &&
      (address == nullptr ||
       base::system_call(Call::bind, ::bind, fd, static_cast<const sockaddr*>(address->ai_addr),
                         static_cast<socklen_t>(address->ai_addrlen)) == 0);
  if (is_bound) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

/// Returns false if the descriptor is still the caller's.
bool make_connection(evhttp& http, int fd, sockaddr* peer, int size) noexcept {
  PeerName name{};
  if (!name_peer(peer, size, name)) return false;
  bufferevent* const bev = http.make_bufferevent != nullptr
                               ? http.make_bufferevent(http.base, http.make_bufferevent_argument)
                               : nullptr;
  evhttp_connection* const created =
      evhttp_connection_base_bufferevent_new(http.base, nullptr, bev, name.address, name.port);
  if (created == nullptr) {
    if (bev != nullptr) bufferevent_free(bev);
    return false;
  }
  if (bufferevent_setfd(created->bufev, fd) != 0) {
    evhttp_connection_free(created);
    return false;
  }
  created->fd = fd;
  created->state = evhttp_connection::State::reading_head;
  created->head_bytes_max = http.head_bytes_max;
  created->body_bytes_max = http.body_bytes_max;
  created->flags |= flags_of::incoming;
  if ((http.flags & EVHTTP_SERVER_LINGERING_CLOSE) != 0)
    created->flags |= EVHTTP_CON_LINGERING_CLOSE;
  created->server = &http;
  TAILQ_INSERT_TAIL(&http.connections, created, next);
  if (evutil_timerisset(&http.timeout)) evhttp_connection_set_timeout_tv(created, &http.timeout);
  if (bufferevent_socket_set_conn_address_(created->bufev, peer, static_cast<std::size_t>(size)) !=
          0 ||
      !tambour::libevent::expect_request(*created))
    evhttp_connection_free(created);
  return true;
}

}  // namespace

bool tambour::libevent::expect_request(evhttp_connection& connection) noexcept {
  evhttp_request* const request = evhttp_request_new(&evhttp::on_request, connection.server);
  if (request == nullptr) return false;
  request->remote_host = event_mm_strdup_(connection.address);
  if (request->remote_host == nullptr) {
    evhttp_request_free(request);
    return false;
  }
  request->remote_port = connection.port;
  request->evcon = &connection;
  request->flags |= EVHTTP_REQ_OWN_CONNECTION;
  // Until the user has it, the request ends with its connection.
  request->userdone = 1;
  request->kind = EVHTTP_REQUEST;
  TAILQ_INSERT_TAIL(&connection.requests, request, next);
  connection.start_reading();
  return true;
}

void evhttp::on_accept(evconnlistener* /*listener*/, evutil_socket_t fd, sockaddr* peer, int size,
                       void* server) {
  if (make_connection(*static_cast<evhttp*>(server), fd, peer, size)) return;
  event_warnx("evhttp: a connection cannot be accepted");
  ::close(fd);
}

int tambour::libevent::bind_socket(const char* address, std::uint16_t port, bool reuse) noexcept {
  if (address == nullptr && port == 0) return open_socket(nullptr, false);
  evutil_addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = EVUTIL_AI_PASSIVE | EVUTIL_AI_ADDRCONFIG;
  char service[sizeof "65535"];
  std::snprintf(service, sizeof service, "%u", unsigned{port});
  evutil_addrinfo* found = nullptr;
  const int result = evutil_getaddrinfo(address, service, &hints, &found);
  if (result != 0) {
    event_warnx("getaddrinfo: %s", evutil_gai_strerror(result));
    return -1;
  }
  const int fd = open_socket(found, reuse);
  evutil_freeaddrinfo(found);
  return fd;
}

evhttp_bound_socket* evhttp_bind_socket_with_handle(evhttp* http, const char* address,
                                                    ev_uint16_t port) {
  const int fd = bind_socket(address, port, true);
  if (fd == -1) return nullptr;
  if (base::system_call(Call::listen, ::listen, fd, backlog) != 0) {
    const int error = errno;
    event_warn("evhttp_bind_socket: listen");
    ::close(fd);
    errno = error;
    return nullptr;
  }
  evhttp_bound_socket* const bound = evhttp_accept_socket_with_handle(http, fd);
  if (bound == nullptr) ::close(fd);
  return bound;
}

int evhttp_bind_socket(evhttp* http, const char* address, ev_uint16_t port) {
  return evhttp_bind_socket_with_handle(http, address, port) != nullptr ? 0 : -1;
}

evhttp_bound_socket* evhttp_accept_socket_with_handle(evhttp* http, evutil_socket_t fd) {
  constexpr unsigned options = LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_CLOSE_ON_FREE;
  auto* const bound =
      static_cast<evhttp_bound_socket*>(event_mm_calloc_(1, sizeof(evhttp_bound_socket)));
  if (bound == nullptr) return nullptr;
  bound->listener = evconnlistener_new(http->base, &evhttp::on_accept, http, options, 0, fd);
  if (bound->listener == nullptr) {
    event_mm_free_(bound);
    return nullptr;
  }
  // A socket that is never readable would leave clients waiting.
  if (event_pending(&bound->listener->readable, EV_READ, nullptr) == 0) {
    bound->listener->flags &= ~LEV_OPT_CLOSE_ON_FREE;
    evconnlistener_free(bound->listener);
    event_mm_free_(bound);
    return nullptr;
  }
  TAILQ_INSERT_TAIL(&http->sockets, bound, next);
  return bound;
}

int evhttp_accept_socket(evhttp* http, evutil_socket_t fd) {
  return evhttp_accept_socket_with_handle(http, fd) != nullptr ? 0 : -1;
}

evhttp_bound_socket* evhttp_bind_listener(evhttp* http, evconnlistener* listener) {
  auto* const bound =
      static_cast<evhttp_bound_socket*>(event_mm_calloc_(1, sizeof(evhttp_bound_socket)));
  if (bound == nullptr) return nullptr;
  bound->listener = listener;
  TAILQ_INSERT_TAIL(&http->sockets, bound, next);
  evconnlistener_set_cb(listener, &evhttp::on_accept, http);
  return bound;
}

void evhttp_del_accept_socket(evhttp* http, evhttp_bound_socket* bound_socket) {
  TAILQ_REMOVE(&http->sockets, bound_socket, next);
  evconnlistener_free(bound_socket->listener);
  event_mm_free_(bound_socket);
}

void evhttp_foreach_bound_socket(evhttp* http, evhttp_bound_socket_foreach_fn* function,
                                 void* argument) {
  evhttp_bound_socket* entry = nullptr;
  TAILQ_FOREACH(entry, &http->sockets, next) function(entry, argument);
}

evutil_socket_t evhttp_bound_socket_get_fd(evhttp_bound_socket* bound_socket) {
  return evconnlistener_get_fd(bound_socket->listener);
}
evconnlistener* evhttp_bound_socket_get_listener(evhttp_bound_socket* bound) {
  return bound->listener;
}
