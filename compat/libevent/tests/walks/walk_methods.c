/* What is easily different with epoll, poll and select: descriptors that are not open, EV_CLOSED,
   signals. */
#define _GNU_SOURCE
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "walk_buffer.h"

static struct event_base* base;

static struct event_base* base_with(const char* method) {
  static const char* const names[] = {"epoll", "poll", "select"};
  struct event_config* config = event_config_new();
  struct event_base* made;
  size_t i;
  for (i = 0; i < sizeof names / sizeof *names; ++i)
    if (strcmp(names[i], method) != 0) event_config_avoid_method(config, names[i]);
  made = event_base_new_with_config(config);
  need(made != NULL, "event_base_new_with_config");
  event_config_free(config);
  say(" %s", event_base_get_method(made));
  return made;
}

static void with_each_method(void (*walk)(void)) {
  static const char* const names[] = {"epoll", "poll", "select"};
  size_t i;
  for (i = 0; i < sizeof names / sizeof *names; ++i) {
    base = base_with(names[i]);
    walk();
    event_base_free(base);
  }
}

static int calls;
static void on_event(int fd, short what, void* name) {
  (void)fd;
  ++calls;
  say("    %s: %#x", (const char*)name, what);
}

static long peak_kib(void) {
  char line[128];
  long peak = 0;
  FILE* const file = fopen("/proc/self/status", "r");
  need(file != NULL, "/proc/self/status");
  while (fgets(line, sizeof line, file) != NULL) sscanf(line, "VmPeak: %ld", &peak);
  fclose(file);
  return peak;
}

static void add_huge(void) {
  static const int fds[] = {INT_MAX, INT_MAX / 2 + 1, INT_MAX / 2, 1 << 27};
  static const struct timeval soon = {0, 1000};
  const long before = peak_kib();
  struct event* ev;
  size_t i;
  for (i = 0; i < sizeof fds / sizeof *fds; ++i) {
    ev = event_new(base, fds[i], i % 2 ? EV_READ : EV_WRITE | EV_PERSIST, on_event, "huge");
    SAY(event_add(ev, i % 2 ? &soon : NULL));
    SAY(event_pending(ev, EV_READ | EV_WRITE | EV_TIMEOUT, NULL));
    SAY(event_del(ev));
    event_free(ev);
  }
  SAY(event_base_loop(base, EVLOOP_NONBLOCK));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  say("  memory: %d", peak_kib() - before < 100000);
#endif
}

static void huge_descriptors(void) {
  freopen("/dev/null", "w", stderr);
  with_each_method(add_huge);
}

static void close_peer(void) {
  static const short kinds[] = {EV_CLOSED, EV_CLOSED | EV_READ, EV_CLOSED | EV_WRITE};
  static const struct timeval soon = {0, 10000}, late = {100, 0};
  size_t i;
  for (i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    struct event *ev, *reader;
    int ends[2];
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    ev = event_new(base, ends[0], kinds[i] | EV_PERSIST, on_event, "closed");
    reader = event_new(base, ends[0], EV_READ | EV_PERSIST, on_event, "reader");
    SAY(event_add(ev, NULL));
    SAY(event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK));
    shutdown(ends[1], SHUT_WR);
    SAY(event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK));
    SAY(event_add(reader, NULL));
    SAY(event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK));
    SAY(event_del(reader));
    SAY(event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK));
    SAY(event_del(ev));
    calls = 0;
    SAY(event_add(ev, &late));
    SAY(event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK));
    /* With a short timeout from the start, a busy machine could report both at once. */
    if (calls == 0) {
      SAY(event_add(ev, &soon));
      SAY(event_base_loop(base, EVLOOP_ONCE));
    }
    event_free(reader);
    event_free(ev);
    close(ends[0]);
    close(ends[1]);
  }
}

static void closed_peers(void) { with_each_method(close_peer); }

static void greatest_numbers(void) {
  static const unsigned all =
      EVENT_BASE_COUNT_ACTIVE | EVENT_BASE_COUNT_VIRTUAL | EVENT_BASE_COUNT_ADDED;
  static const struct timeval late = {1000, 0};
  struct event* events[4];
  int i;
  base = event_base_new();
  for (i = 0; i < 4; ++i) {
    events[i] = event_new(base, -1, 0, on_event, "event");
    event_add(events[i], &late);
  }
  SAY(event_base_get_max_events(base, EVENT_BASE_COUNT_ADDED, 0));
  SAY(event_base_get_max_events(base, EVENT_BASE_COUNT_ADDED, 1));
  SAY(event_base_get_max_events(base, EVENT_BASE_COUNT_ADDED, 0));
  event_del(events[0]);
  SAY(event_base_get_max_events(base, EVENT_BASE_COUNT_ADDED, 0));
  event_active(events[0], EV_READ, 1);
  event_active(events[1], EV_READ, 1);
  SAY(event_base_get_max_events(base, EVENT_BASE_COUNT_ACTIVE, 1));
  SAY(event_base_get_max_events(base, all, 1));
  event_del(events[0]);
  SAY(event_base_get_max_events(base, EVENT_BASE_COUNT_ACTIVE, 0));
  SAY(event_base_get_max_events(base, all, 0));
  SAY(event_base_loop(base, EVLOOP_NONBLOCK));
  SAY(event_base_get_max_events(base, all, 0));
  event_add(events[0], &late);
  SAY(event_base_get_max_events(base, all, 0));
  for (i = 0; i < 4; ++i) event_free(events[i]);
  SAY(event_base_get_max_events(base, all, 0));
  event_base_free(base);
}

static struct event* raised_in_callback;
static void on_first(int number, short what, void* name) {
  say("    %s: %#x", (const char*)name, what);
  if (raised_in_callback == NULL) return;
  event_active(raised_in_callback, EV_SIGNAL, 1);
  raised_in_callback = NULL;
  raise(number);
}
static void on_readable(int fd, short what, void* name) {
  char byte;
  need(read(fd, &byte, 1) == 1, "read");
  on_event(fd, what, name);
}
static void on_break(int fd, short what, void* name) {
  on_event(fd, what, (void*)name);
  event_base_loopbreak(base);
}

static void raise_active(void) {
  struct event *first, *second, *broken, *readable;
  int ends[2];
  int count;
  need(pipe(ends) == 0, "pipe");
  event_base_priority_init(base, 2);
  first = evsignal_new(base, SIGUSR1, on_first, "first");
  second = evsignal_new(base, SIGUSR2, on_event, "second");
  broken = event_new(base, -1, 0, on_break, "break");
  readable = event_new(base, ends[0], EV_READ | EV_PERSIST, on_readable, "readable");
  event_priority_set(broken, 0);
  event_priority_set(readable, 0);
  event_add(first, NULL);
  event_add(second, NULL);
  for (count = 0; count < 2; ++count) {
    say("  priority %d", count);
    event_priority_set(first, count);
    event_active(first, EV_SIGNAL, 1);
    raise(SIGUSR1);
    SAY(event_base_loop(base, EVLOOP_ONCE));
    SAY(event_base_loop(base, EVLOOP_NONBLOCK));
    event_active(first, EV_SIGNAL, 2);
    raise(SIGUSR1);
    raise(SIGUSR2);
    raise(SIGUSR1);
    SAY(event_base_loop(base, EVLOOP_NONBLOCK));
    /* The callback makes it active, and then the signal comes. */
    raised_in_callback = first;
    raise(SIGUSR1);
    SAY(event_base_loop(base, EVLOOP_NONBLOCK));
    SAY(event_base_loop(base, EVLOOP_NONBLOCK));
    /* The loop ends before the signal is seen. */
    event_active(broken, EV_READ, 1);
    raise(SIGUSR1);
    SAY(event_base_loop(base, EVLOOP_NONBLOCK));
    SAY(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED));
    SAY(event_base_loop(base, EVLOOP_NONBLOCK));
    /* It is deleted before the signal is seen. */
    event_active(first, EV_SIGNAL, 1);
    raise(SIGUSR1);
    event_del(first);
    SAY(event_base_loop(base, EVLOOP_NONBLOCK));
    event_add(first, NULL);
    event_add(readable, NULL);
    need(write(ends[1], "x", 1) == 1, "write");
    raise(SIGUSR1);
    SAY(event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK));
    event_del(readable);
    SAY(event_base_loop(base, EVLOOP_NONBLOCK));
  }
  event_free(first);
  event_free(second);
  event_free(broken);
  event_free(readable);
  close(ends[0]);
  close(ends[1]);
}

static void active_signals(void) { with_each_method(raise_active); }

static const struct section method_sections[] = {{"huge descriptors", huge_descriptors},
                                                 {"closed peers", closed_peers},
                                                 {"greatest numbers of events", greatest_numbers},
                                                 {"signals of active events", active_signals},
                                                 {NULL, NULL}};
const struct section* const all_sections[] = {method_sections, NULL};
