// evconnlistener: accepts connections on a listening socket.
#pragma once

#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/listener.h>

/// Counted by the user and by the callbacks in progress. The lock is held except while a callback
/// runs.
struct evconnlistener {
  event readable;
  event retry;  ///< Ends a pause after accept(2) has failed.
  evconnlistener_cb callback;
  evconnlistener_errorcb error_callback;
  void* argument;
  void* lock;
  unsigned flags;
  int references;
  int accept_flags;
  bool enabled;

  int start() noexcept;
  int stop() noexcept;
  void accept_all(int fd) noexcept;
  /// Invokes the callback with the lock released. Returns false if the listener was freed or
  /// disabled, and then does not hold the lock.
  bool report(int fd, sockaddr* address, int size) noexcept;
  void fail(int fd, int error) noexcept;
  /// Releases a reference, and the lock.
  void release() noexcept;
};
