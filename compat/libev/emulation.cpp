// Functions of libevent 1.4, emulated as in libev: the `io` or `sig` watcher of an event waits for
// its descriptor or signal, and `to` for its timeout. One of them is active while the event is
// added.

#include "emulation.h"

#include <cstddef>
#include <cstdlib>

namespace {

enum Flags : int {
  timeout_added = 0x01,
  inserted = 0x02,
  signal_added = 0x04,
  active = 0x08,
  initialised = 0x80
};
constexpr short persist = 0x10;
constexpr int io_events = EV_READ | EV_WRITE;

/// The result of the last event_init(), the default base of events.
event_base* current = nullptr;

struct ev_loop* loop_of(event_base* base) noexcept {
  return reinterpret_cast<struct ev_loop*>(base);
}
struct ev_loop* loop_of(const event* ev) noexcept { return loop_of(ev->ev_base); }

event_base* base_of(struct ev_loop* loop) noexcept { return reinterpret_cast<event_base*>(loop); }

ev_tstamp seconds(const timeval* time) noexcept {
  if (time == nullptr) return -1.;
  const auto micros = static_cast<ev_tstamp>(time->tv_usec) * 1e-6;
  const ev_tstamp sum = static_cast<ev_tstamp>(time->tv_sec) + micros;
  return sum != 0. ? sum : 1e-6;  // Zero would mean no timeout.
}

template <class Watcher>
event* event_of(Watcher* watcher, std::size_t offset) noexcept {
  return reinterpret_cast<event*>(reinterpret_cast<char*>(watcher) - offset);
}

void call(event* ev, int events) {
  events &= EV_READ | EV_WRITE | EV_TIMER | EV_SIGNAL;
  ev->ev_res = events;
  ev->ev_callback(ev->ev_fd, static_cast<short>(events), ev->ev_arg);
}

void on_signal(struct ev_loop*, ev_signal* watcher, int events) {
  event* const ev = event_of(watcher, offsetof(event, iosig));
  if ((events & EV_ERROR) != 0) event_del(ev);
  call(ev, events);
}

void on_io(struct ev_loop*, ev_io* watcher, int events) {
  event* const ev = event_of(watcher, offsetof(event, iosig));
  if ((events & EV_ERROR) != 0 || (ev->ev_events & persist) == 0) event_del(ev);
  call(ev, events);
}

void on_timeout(struct ev_loop*, ev_timer* watcher, int events) {
  event* const ev = event_of(watcher, offsetof(event, to));
  event_del(ev);
  call(ev, events);
}

struct Once {
  int fd;
  event_callback_fn callback;
  void* argument;
};

void on_once(int events, void* argument) {
  auto* const once = static_cast<Once*>(argument);
  once->callback(once->fd, static_cast<short>(events), once->argument);
  std::free(once);
}

void on_exit_time(int, void* base) { ev_break(static_cast<struct ev_loop*>(base), EVBREAK_ONE); }

}  // namespace

const char* event_get_version() { return "4.33"; }
const char* event_get_method() { return "libev"; }
const char* event_base_get_method(const event_base*) { return "libev"; }

void* event_init() {
  current = current == nullptr ? base_of(ev_default_loop(EVFLAG_AUTO))
                               : base_of(ev_loop_new(EVFLAG_AUTO));
  return current;
}

event_base* event_base_new() { return base_of(ev_loop_new(EVFLAG_AUTO)); }

void event_base_free(event_base* base) {
  struct ev_loop* const loop = loop_of(base);
  if (!ev_is_default_loop(loop)) ev_loop_destroy(loop);
}

event_callback_fn event_get_callback(const event* ev) { return ev->ev_callback; }

void event_set(event* ev, int fd, short events, event_callback_fn cb, void* arg) {
  if ((events & EV_SIGNAL) != 0) {
    ev_init(&ev->iosig.sig, &on_signal);
  } else {
    ev_init(&ev->iosig.io, &on_io);
  }
  ev_init(&ev->to, &on_timeout);
  ev->ev_base = current;
  ev->ev_fd = fd;
  ev->ev_events = events;
  ev->ev_pri = 0;
  ev->ev_callback = cb;
  ev->ev_arg = arg;
  ev->ev_res = 0;
  ev->ev_flags = initialised;
}

int event_add(event* ev, timeval* tv) {
  struct ev_loop* const loop = loop_of(ev);
  if ((ev->ev_events & EV_SIGNAL) != 0) {
    if (!ev_is_active(&ev->iosig.sig)) {
      ev_signal_set(&ev->iosig.sig, ev->ev_fd);
      ev_signal_start(loop, &ev->iosig.sig);
      ev->ev_flags |= signal_added;
    }
  } else if ((ev->ev_events & io_events) != 0) {
    if (!ev_is_active(&ev->iosig.io)) {
      ev_io_set(&ev->iosig.io, ev->ev_fd, ev->ev_events & io_events);
      ev_io_start(loop, &ev->iosig.io);
      ev->ev_flags |= inserted;
    }
  }
  if (tv != nullptr) {
    ev->to.repeat = seconds(tv);
    ev_timer_again(loop, &ev->to);
    ev->ev_flags |= timeout_added;
  } else {
    ev_timer_stop(loop, &ev->to);
    ev->ev_flags &= ~timeout_added;
  }
  ev->ev_flags |= active;
  return 0;
}

int event_del(event* ev) {
  struct ev_loop* const loop = loop_of(ev);
  if ((ev->ev_events & EV_SIGNAL) != 0) {
    ev_signal_stop(loop, &ev->iosig.sig);
  } else if ((ev->ev_events & io_events) != 0) {
    ev_io_stop(loop, &ev->iosig.io);
  }
  if (ev_is_active(&ev->to)) ev_timer_stop(loop, &ev->to);
  ev->ev_flags = initialised;
  return 0;
}

void event_active(event* ev, int res, short) {
  struct ev_loop* const loop = loop_of(ev);
  if ((res & EV_TIMER) != 0) ev_feed_event(loop, &ev->to, res & EV_TIMER);
  if ((res & EV_SIGNAL) != 0) ev_feed_event(loop, &ev->iosig.sig, res & EV_SIGNAL);
  if ((res & io_events) != 0) ev_feed_event(loop, &ev->iosig.io, res & io_events);
}

int event_pending(event* ev, short events, timeval* tv) {
  struct ev_loop* const loop = loop_of(ev);
  int waiting = 0;
  const auto* const watcher = reinterpret_cast<const ev_watcher*>(&ev->iosig);
  if (ev_is_active(watcher) || ev_is_pending(watcher))
    waiting = ev->ev_events & (io_events | EV_SIGNAL);
  if ((ev->ev_events & EV_TIMER) != 0 || ev_is_active(&ev->to) || ev_is_pending(&ev->to)) {
    waiting |= EV_TIMER;
    if (tv != nullptr) {
      const ev_tstamp at = ev_now(loop);
      tv->tv_sec = static_cast<time_t>(at);
      tv->tv_usec = static_cast<suseconds_t>((at - static_cast<ev_tstamp>(tv->tv_sec)) * 1e6);
    }
  }
  return events & waiting;
}

int event_priority_init(int npri) { return event_base_priority_init(current, npri); }
int event_base_priority_init(event_base*, int) { return 0; }
int event_priority_set(event* ev, int pri) {
  ev->ev_pri = pri;
  return 0;
}
int event_base_set(event_base* base, event* ev) {
  ev->ev_base = base;
  return 0;
}

int event_loop(int flags) { return event_base_loop(current, flags); }
int event_dispatch() { return event_base_dispatch(current); }
int event_base_loop(event_base* base, int flags) {
  return ev_run(loop_of(base), flags) == 0 ? 1 : 0;
}
int event_base_dispatch(event_base* base) { return event_base_loop(base, 0); }

int event_loopexit(timeval* tv) { return event_base_loopexit(current, tv); }
int event_base_loopexit(event_base* base, timeval* tv) {
  const ev_tstamp after = seconds(tv);
  ev_once(loop_of(base), -1, 0, after >= 0. ? after : 0., &on_exit_time, loop_of(base));
  return 0;
}

int event_once(int fd, short events, event_callback_fn cb, void* arg, timeval* tv) {
  return event_base_once(current, fd, events, cb, arg, tv);
}
int event_base_once(event_base* base, int fd, short events, event_callback_fn cb, void* arg,
                    timeval* tv) {
  auto* const once = static_cast<Once*>(std::malloc(sizeof(Once)));
  if (once == nullptr) return -1;
  *once = {fd, cb, arg};
  ev_once(loop_of(base), fd, events & io_events, seconds(tv), &on_once, once);
  return 0;
}
