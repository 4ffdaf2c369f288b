// The event structure of the emulation of libevent 1.4 that libev has in it.
//
// Its header, event.h, can't be installed beside libevent's of the same name, so this is written
// down here, as a fact about programs that were built with it. What calls the functions below is
// tested against the original (tests/walk_event.c).
#pragma once

#include <sys/time.h>

#include <ev.h>

#ifdef __cplusplus
extern "C" {
#endif

struct event_base;  // A struct ev_loop under another name.
// C reads this too, and the names are libev's.
// NOLINTBEGIN(modernize-use-using,readability-identifier-naming)
typedef void (*event_callback_fn)(int, short, void*);
// NOLINTEND(modernize-use-using,readability-identifier-naming)

// NOLINTNEXTLINE(readability-identifier-naming)
struct event {
  union {
    ev_io io;
    ev_signal sig;
  } iosig;
  ev_timer to;
  struct event_base* ev_base;
  event_callback_fn ev_callback;
  void* ev_arg;
  int ev_fd;
  int ev_pri;
  int ev_res;
  int ev_flags;
  short ev_events;
};

const char* event_get_version(void);
const char* event_get_method(void);
void* event_init(void);
struct event_base* event_base_new(void);
const char* event_base_get_method(const struct event_base* base);
void event_base_free(struct event_base* base);
int event_base_set(struct event_base* base, struct event* ev);
int event_base_loop(struct event_base* base, int flags);
int event_base_dispatch(struct event_base* base);
int event_base_loopexit(struct event_base* base, struct timeval* tv);
int event_base_once(struct event_base* base, int fd, short events, event_callback_fn cb, void* arg,
                    struct timeval* tv);
int event_base_priority_init(struct event_base* base, int npri);
int event_loop(int flags);
int event_loopexit(struct timeval* tv);
int event_dispatch(void);
int event_once(int fd, short events, event_callback_fn cb, void* arg, struct timeval* tv);
int event_priority_init(int npri);
event_callback_fn event_get_callback(const struct event* ev);
void event_set(struct event* ev, int fd, short events, event_callback_fn cb, void* arg);
int event_add(struct event* ev, struct timeval* tv);
int event_del(struct event* ev);
void event_active(struct event* ev, int res, short ncalls);
int event_pending(struct event* ev, short events, struct timeval* tv);
int event_priority_set(struct event* ev, int pri);

#ifdef __cplusplus
}
#endif
