// The event structure of libev's emulation of libevent 1.4.
//
// libev's event.h cannot be installed beside libevent's header of the same name, so the layout and
// prototypes are repeated here: they are part of the ABI of programs built with libev.
// tests/walk_event.c tests the functions against the original.
#pragma once

#include <sys/time.h>

#include <ev.h>

#ifdef __cplusplus
extern "C" {
#endif

struct event_base;  // A struct ev_loop under another name.
// C also reads this file, and the names are libev's.
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
