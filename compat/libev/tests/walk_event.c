/* LIBEVENT EMULATION */
#include <signal.h>
#include <string.h>

#include "emulation.h"
#include "walk.h"

#define PERSIST 0x10
#define IS_INITIALISED 0x80

static void on_event(int fd, short events, void* arg) {
  (void)fd;
  say("    %s: %s", (const char*)arg, names(events));
}

static struct timeval ms(int count) {
  struct timeval time;
  time.tv_sec = count / 1000;
  time.tv_usec = count % 1000 * 1000;
  return time;
}

static void basics(void) {
  struct event ev;
  struct event_base *first, *second;
  say("%s, %s", event_get_version(), event_get_method());
  first = event_init();
  say("the default loop: %d", (struct ev_loop*)first == EV_DEFAULT_UC);
  second = event_init();
  say("another: %d, %s", first != second, event_base_get_method(second));
  event_base_free(second);
  second = event_base_new();
  memset(&ev, 0x5a, sizeof ev);
  event_set(&ev, 5, EV_READ | PERSIST, on_event, "event");
  say("fd %d, events %x, pri %d, res %d, flags %x", ev.ev_fd, ev.ev_events, ev.ev_pri, ev.ev_res,
      ev.ev_flags);
  say("callback %d, arg %d", event_get_callback(&ev) == on_event, ev.ev_arg != 0);
  say("base_set %d, %d", event_base_set(second, &ev), ev.ev_base == second);
  say("priority %d, %d", event_priority_set(&ev, 3), ev.ev_pri);
  say("priorities %d %d", event_priority_init(4), event_base_priority_init(first, 4));
  say("nothing to do: %d", event_base_dispatch(second));
  event_base_free(second);
}

static void events(void) {
  struct event reader, persistent, timer, both, sig;
  struct ends ends = make_pipe(), silent = make_pipe();
  struct timeval tv = ms(100000), later = tv, soon = ms(50), at;
  event_init();
  event_set(&reader, ends.read, EV_READ, on_event, "once");
  event_set(&persistent, ends.read, EV_READ | PERSIST, on_event, "persistent");
  event_set(&timer, -1, 0, on_event, "timer");
  event_set(&both, silent.read, EV_READ, on_event, "timeout of a read");
  event_set(&sig, SIGUSR1, EV_SIGNAL | PERSIST, on_event, "signal");
  say("add %d %d %d %d %d", event_add(&reader, 0), event_add(&persistent, 0),
      event_add(&timer, &tv), event_add(&both, &later), event_add(&sig, 0));
  say("flags %x %x %x %x %x", reader.ev_flags, persistent.ev_flags, timer.ev_flags, both.ev_flags,
      sig.ev_flags);
  say("pending %x %x %x", event_pending(&reader, EV_READ | EV_TIMER, 0),
      event_pending(&both, EV_READ | EV_WRITE | EV_TIMER, &at),
      event_pending(&sig, EV_SIGNAL | EV_READ, 0));
  put(ends.write, "x");
  say("loop %d", event_loop(EVLOOP_NONBLOCK));
  say("flags %x %x, res %x", reader.ev_flags, persistent.ev_flags, reader.ev_res);
  say("loop %d", event_loop(EVLOOP_NONBLOCK));
  drain(ends.read);
  raise(SIGUSR1);
  say("loop %d", event_loop(EVLOOP_ONESHOT));
  event_active(&persistent, EV_READ, 1);
  event_active(&sig, EV_SIGNAL, 1);
  event_active(&timer, EV_TIMER, 1);
  say("loop %d", event_loop(EVLOOP_NONBLOCK));
  event_add(&both, &soon);
  say("loop %d", event_loop(EVLOOP_ONESHOT));
  say("flags %x, pending %x", both.ev_flags, event_pending(&both, EV_READ | EV_TIMER, 0));
  event_add(&persistent, &tv);
  say("flags %x", persistent.ev_flags);
  event_add(&persistent, 0);
  say("flags %x", persistent.ev_flags);
  say("del %d %d", event_del(&persistent), event_del(&sig));
  say("flags %x, initialised %d", sig.ev_flags, !!(sig.ev_flags & IS_INITIALISED));
  say("dispatch %d", event_dispatch());
}

static void exits_and_once(void) {
  struct event_base* base = event_init();
  struct ends ends = make_pipe();
  struct timeval tv = ms(100), zero = ms(0);
  struct event forever;
  event_set(&forever, ends.read, EV_READ | PERSIST, on_event, "forever");
  event_add(&forever, 0);
  say("loopexit %d", event_loopexit(&tv));
  say("dispatch %d", event_dispatch());
  say("loopexit %d", event_base_loopexit(base, 0));
  say("dispatch %d", event_base_loop(base, 0));
  event_once(-1, EV_TIMER, on_event, "once: timeout", &zero);
  event_base_once(base, ends.write, EV_WRITE, on_event, "once: writable", 0);
  event_loopexit(&tv);
  say("dispatch %d", event_dispatch());
  event_del(&forever);
}

const struct section event_sections[] = {
    {"event basics", basics}, {"events", events}, {"event exits and once", exits_and_once}, {0, 0}};
