// ev_once(): the only watcher whose memory belongs to the library instead of the user.

#include <cstddef>
#include <new>

#include "loop.h"

namespace {

struct Once {
  ev_io io;
  ev_timer timer;
  void (*callback)(int, void*);
  void* argument;
};

void finish(struct ev_loop* loop, Once* once, int events) {
  const auto callback = once->callback;
  void* const argument = once->argument;
  // Both may be pending in the same iteration: report them in one call.
  events |= ev_clear_pending(loop, &once->io) | ev_clear_pending(loop, &once->timer);
  ev_io_stop(loop, &once->io);
  ev_timer_stop(loop, &once->timer);
  tambour::libev::reallocate(once, 0);
  callback(events, argument);
}

void on_io(struct ev_loop* loop, ev_io* io, int events) {
  finish(loop, reinterpret_cast<Once*>(reinterpret_cast<char*>(io) - offsetof(Once, io)), events);
}

void on_timer(struct ev_loop* loop, ev_timer* timer, int events) {
  finish(loop, reinterpret_cast<Once*>(reinterpret_cast<char*>(timer) - offsetof(Once, timer)),
         events);
}

}  // namespace

void ev_once(struct ev_loop* loop, int fd, int events, ev_tstamp timeout,
             void (*cb)(int revents, void* arg), void* arg) noexcept {
  auto* const once = new (tambour::libev::reallocate(nullptr, sizeof(Once))) Once{};
  once->callback = cb;
  once->argument = arg;
  ev_init(&once->io, &on_io);
  ev_init(&once->timer, &on_timer);
  if (fd >= 0) {
    ev_io_set(&once->io, fd, events);
    ev_io_start(loop, &once->io);
  }
  if (timeout >= 0.) {
    ev_timer_set(&once->timer, timeout, 0.);
    ev_timer_start(loop, &once->timer);
  }
}
