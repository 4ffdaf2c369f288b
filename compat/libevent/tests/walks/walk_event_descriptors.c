/* Sections about events of descriptors, and about events that are pending. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "walk_event.h"

void pending(void) {
  int ends[2];
  struct event* ev;
  struct timeval at;
  begin_section("pending");
  pair(ends);
  ev = make(ends[0], EV_READ | EV_TIMEOUT, "both");
  SAY(event_initialized(ev));
  SAY(event_pending(ev, EV_READ | EV_TIMEOUT | EV_WRITE, NULL));
  SAY(event_add(ev, ms(100000)));
  SAY(event_pending(ev, EV_READ | EV_TIMEOUT | EV_WRITE, &at));
  say("  later than now: %d", at.tv_sec > time(NULL) + 8);
  SAY(event_remove_timer(ev));
  SAY(event_pending(ev, EV_READ | EV_TIMEOUT | EV_WRITE, NULL));
  event_active(ev, EV_WRITE, 1);
  SAY(event_pending(ev, EV_READ | EV_TIMEOUT | EV_WRITE, NULL));
  event_active(ev, EV_READ, 1);
  counts();
  SAY(event_base_loop(base, EVLOOP_NONBLOCK));
  SAY(event_pending(ev, EV_READ | EV_TIMEOUT | EV_WRITE, NULL));
  counts();
  SAY(event_del(ev));
  SAY(event_del(ev));
  say("  %d %d %d", event_get_fd(ev) == ends[0], event_get_events(ev), event_get_base(ev) == base);
  SAY(event_get_priority(ev));
  SAY(event_get_callback(ev) == on_event);
  SAY(event_get_struct_event_size());
  event_free(ev);
  ev = event_new(base, -1, 0, on_event, event_self_cbarg());
  SAY(event_get_callback_arg(ev) == ev);
  event_free(ev);
  SAY(event_new(base, 1, EV_SIGNAL | EV_READ, on_event, NULL) == NULL);
  close(ends[0]);
  close(ends[1]);
  end_section();
}

void bad_descriptors(void) {
  struct event* ev;
  int file;
  begin_section("bad descriptors");
  event_set_log_callback(NULL);
  file = open("/proc/self/exe", O_RDONLY);
  ev = make(file, EV_READ, "file");
  freopen("/dev/null", "w", stderr);
  SAY(event_add(ev, NULL));
  SAY(event_pending(ev, EV_READ, NULL));
  event_free(ev);
  close(file);
  ev = make(file, EV_READ, "closed");
  SAY(event_add(ev, NULL));
  event_free(ev);
  ev = make(-1, EV_READ, "negative");
  SAY(event_add(ev, ms(5)));
  SAY(event_base_loop(base, EVLOOP_ONCE));
  event_free(ev);
  ev = evsignal_new(base, SIGKILL, on_event, "SIGKILL");
  SAY(event_add(ev, NULL));
  event_free(ev);
  ev = evsignal_new(base, 1000, on_event, "1000");
  SAY(event_add(ev, NULL));
  event_free(ev);
  event_set_log_callback(on_log);
  end_section();
}

void once_events(void) {
  int ends[2];
  begin_section("events once");
  pair(ends);
  SAY(event_base_once(base, -1, EV_TIMEOUT, on_event, "now", NULL));
  SAY(event_base_once(base, -1, EV_TIMEOUT, on_event, "soon", ms(5)));
  SAY(event_base_once(base, ends[0], EV_READ, on_event, "read", NULL));
  SAY(event_base_once(base, ends[0], EV_READ | EV_PERSIST, on_event, "no", NULL));
  SAY(event_base_once(base, SIGUSR1, EV_SIGNAL, on_event, "no", NULL));
  SAY(event_base_once(base, -1, 0, on_event, "no", NULL));
  SAY(event_base_once(NULL, -1, EV_TIMEOUT, on_event, "no", NULL));
  put(ends[1], "x");
  SAY(event_base_dispatch(base));
  SAY(event_base_once(base, ends[0], EV_WRITE, on_event, "left behind", NULL));
  end_section();
  close(ends[0]);
  close(ends[1]);
}

void edge_and_closed(void) {
  int ends[2];
  struct event *edge, *closed;
  begin_section("edges and EV_CLOSED");
  pair(ends);
  edge = make(ends[0], EV_READ | EV_ET | EV_PERSIST, "edge");
  SAY(event_add(edge, NULL));
  put(ends[1], "x");
  SAY(event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK));
  SAY(event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK));
  put(ends[1], "x");
  SAY(event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK));
  event_free(edge);
  closed = make(ends[0], EV_CLOSED | EV_PERSIST, "closed");
  SAY(event_add(closed, NULL));
  SAY(event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK));
  shutdown(ends[1], SHUT_WR);
  SAY(event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK));
  event_free(closed);
  close(ends[0]);
  close(ends[1]);
  end_section();
}

static struct event* reused;

static void on_reuse(int fd, short what, void* argument) {
  int* const ends = argument;
  struct event* ev;
  (void)what;
  say("    reuse");
  close(fd);
  close(ends[1]);
  pair(ends);
  ev = event_new(base, ends[0], EV_READ, on_read, "the new file");
  event_add(ev, NULL);
  put(ends[1], "new");
  reused = ev;
}

void reused_descriptors(void) {
  int ends[2], again;
  begin_section("reused descriptors");
  for (again = 0; again < 3; ++again) {
    struct event* ev;
    pair(ends);
    ev = event_new(base, ends[0], EV_READ, on_reuse, ends);
    SAY(event_add(ev, NULL));
    put(ends[1], "x");
    SAY(event_base_loop(base, EVLOOP_ONCE));
    SAY(event_base_loop(base, EVLOOP_ONCE));
    event_free(ev);
    event_free(reused);
    close(ends[0]);
    close(ends[1]);
  }
  end_section();
}

/* The kernel reports descriptors in the order in which they became ready, or were added. */
void order(void) {
  static const char* const names[] = {"first", "second", "third"};
  struct event* events[3];
  int ends[3][2], i;
  begin_section("order of ready descriptors");
  for (i = 0; i < 3; ++i) {
    pair(ends[i]);
    put(ends[i][1], "x");
    events[i] = event_new(base, ends[i][0], EV_READ, on_read, (void*)names[i]);
    SAY(event_add(events[i], NULL));
  }
  SAY(event_base_loop(base, EVLOOP_ONCE));
  for (i = 0; i < 3; ++i) {
    event_free(events[i]);
    close(ends[i][0]);
    close(ends[i][1]);
  }
  end_section();
}
