// evhttp: a server of HTTP/1, or a virtual host of one.
#pragma once

#include <sys/queue.h>

#include <cstddef>
#include <cstdint>

#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

#include "libevent/http/connection.h"
#include "libevent/http/lingering_close.h"

struct evhttp_bound_socket {
  TAILQ_ENTRY(evhttp_bound_socket) next;
  evconnlistener* listener;
};

namespace tambour::libevent {

/// A callback for a path.
struct PathCallback {
  TAILQ_ENTRY(PathCallback) next;
  char* path;
  void (*function)(evhttp_request*, void*);
  void* argument;
};

/// Another name of a server.
struct ServerAlias {
  TAILQ_ENTRY(ServerAlias) next;
  char* name;
};

}  // namespace tambour::libevent

struct evhttp {
  TAILQ_ENTRY(evhttp) next;  ///< In the list of virtual hosts.
  TAILQ_HEAD(, evhttp_bound_socket) sockets;
  TAILQ_HEAD(, tambour::libevent::PathCallback) callbacks;
  TAILQ_HEAD(, evhttp_connection) connections;
  TAILQ_HEAD(, evhttp) virtual_hosts;
  TAILQ_HEAD(, tambour::libevent::ServerAlias) aliases;
  tambour::libevent::LingeringList lingering;

  char* host_pattern;  ///< Null, unless this is a virtual host.
  timeval timeout;     ///< Zero: none.
  std::size_t head_bytes_max;
  std::uint64_t body_bytes_max;
  int flags;
  const char* default_content_type;
  std::uint16_t allowed_methods;             ///< Bits of evhttp_cmd_type.
  void (*callback)(evhttp_request*, void*);  ///< For paths without one of their own.
  void* callback_argument;
  bufferevent* (*make_bufferevent)(event_base*, void*);
  void* make_bufferevent_argument;
  event_base* base;

  /// The server or virtual host with this name, or null if there is none.
  [[nodiscard]] evhttp* find_host(const char* name) noexcept;

  /// Removes the callbacks with this argument. Unlike evhttp_del_cb(), needs no path.
  void remove_callbacks(const void* argument) noexcept;

  /// Invokes the callback for a request.
  static void on_request(evhttp_request* request, void* server);
  /// Accepts a connection.
  static void on_accept(evconnlistener* listener, evutil_socket_t fd, sockaddr* peer, int size,
                        void* server);
};

extern "C" void evhttp_send_page_(evhttp_request* request, evbuffer* page);

namespace tambour::libevent {

/// Begins with the next request on the connection. Returns false if there is no memory.
[[nodiscard]] bool expect_request(evhttp_connection& connection) noexcept;

/// A bound socket, or an unbound one without an address and port. Returns -1 on errors.
[[nodiscard]] int bind_socket(const char* address, std::uint16_t port, bool reuse) noexcept;

}  // namespace tambour::libevent
