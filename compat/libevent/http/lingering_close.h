// Closes a connection of which the peer's data has not been read.
//
// close(2) would send RST then, and the peer's kernel would discard the response, for example 413.
// The write side is shut down, and what arrives is discarded until the peer closes too.
#pragma once

#include <sys/queue.h>

#include <event2/event.h>
#include <event2/event_struct.h>

namespace tambour::libevent {

struct LingeringClose;
TAILQ_HEAD(LingeringList, LingeringClose);

struct LingeringClose {
  // As in nginx: the time without data, and the time altogether.
  static constexpr timeval idle_max{5, 0};
  static constexpr long seconds_max = 30;
  /// Per server. Beyond it, connections are closed at once.
  static constexpr int count_max = 256;

  TAILQ_ENTRY(LingeringClose) next;
  LingeringList* list;
  event readable;
  int fd;
  timeval begin;

  /// Takes the descriptor in any case.
  static void start(event_base* base, LingeringList& list, int fd) noexcept;
  /// Closes all of them.
  static void stop_all(LingeringList& list) noexcept;

 private:
  void discard(short kind) noexcept;
  void close() noexcept;
  static void on_readable(evutil_socket_t fd, short kind, void* self);
};

}  // namespace tambour::libevent
