/* Sections about timeouts, signals, priorities and lists of events. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include <event2/event_struct.h>

#include "walk_event.h"

static void on_repeated(int fd, short what, void* argument) {
  (void)fd;
  say("    again: %#x, %d left", what, --*(int*)argument);
  if (*(int*)argument == 0) event_base_loopbreak(base);
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Adds six timeouts that expire in another order than they were added. Adds them again if that took
   so long that the order would differ. */
static void add_timeouts(struct event* events[6], const struct timeval* after[6]) {
  double began;
  int attempt = 0, i;
  do {
    began = seconds();
    for (i = 0; i < 6; ++i) event_add(events[i], after[i]);
  } while (seconds() - began > .002 && ++attempt < 1000);
}

void timeouts(void) {
  struct event* events[6];
  const struct timeval* after[6];
  static const char* const names[] = {"0", "1", "2", "3", "4", "5"};
  int i;
  begin_section("timeouts");
  for (i = 0; i < 6; ++i) {
    events[i] = make(-1, 0, names[i]);
    after[i] = ms(i == 5 ? 14 : 5 + (i * 7) % 5 * 6);
  }
  add_timeouts(events, after);
  counts();
  event_base_loopexit(base, ms(50));
  SAY(event_base_dispatch(base));
  SAY(event_base_got_exit(base));
  counts();
  SAY(event_add(events[0], ms(20)));
  SAY(event_add(events[0], ms(2)));
  SAY(event_del(events[5]));
  SAY(event_base_dispatch(base));
  for (i = 0; i < 6; ++i) event_free(events[i]);
  {
    const struct timeval *common = event_base_init_common_timeout(base, ms(15)),
                         *other = event_base_init_common_timeout(base, ms(8));
    say("  common: %d, the same: %d", common != NULL,
        common == event_base_init_common_timeout(base, ms(15)));
    for (i = 0; i < 6; ++i) {
      events[i] = make(-1, 0, names[i]);
      after[i] = i % 2 ? common : other;
    }
    add_timeouts(events, after);
    counts();
    event_del(events[2]);
    SAY(event_base_dispatch(base));
    for (i = 0; i < 6; ++i) event_free(events[i]);
    for (i = 0; i < 2; ++i) {
      int left = 3;
      events[0] = event_new(base, -1, EV_PERSIST, on_repeated, &left);
      event_add(events[0], i ? common : ms(3));
      SAY(event_base_dispatch(base));
      event_free(events[0]);
    }
    for (i = 0; i < 70; ++i) {
      /* From a common timeout to another one, and back. */
      static struct event moved[70];
      evtimer_assign(&moved[i], base, on_event, "moved");
      if (event_add(&moved[i], common) || event_add(&moved[i], ms(2 + i))) say("  failed: %d", i);
      if (event_add(&moved[i], i % 2 ? common : ms(1))) say("  failed: %d", i);
      event_del(&moved[i]);
      event_add(&moved[i], common);
      event_add(&moved[i], ms(2));
    }
    SAY(event_base_dispatch(base));
    {
      /* Before the beginning of the clock. */
      struct timeval past = {-1000000000, 0};
      for (i = 0; i < 2; ++i) {
        events[i] = make(-1, 0, "past");
        SAY(event_add(events[i], &past));
        past.tv_sec *= 2;
      }
      SAY(event_base_dispatch(base));
      for (i = 0; i < 2; ++i) event_free(events[i]);
    }
    for (i = 0; i < 300; ++i) {
      if (!event_base_init_common_timeout(base, ms(1000 + i))) break;
    }
    say("  %d further ones", i);
  }
  end_section();
}

static struct event* others[4];

static void on_first(int fd, short what, void* argument) {
  (void)fd;
  say("    first: %#x", what);
  switch ((int)(long)argument) {
    case 0:
      event_active(others[0], EV_READ, 1);
      break;
    case 1:
      event_del(others[3]);
      break;
    case 2:
      event_base_loopbreak(base);
      break;
    case 3:
      event_base_loopexit(base, NULL);
      break;
    case 4:
      event_base_loopcontinue(base);
      break;
    case 5:
      say("    running: %d", event_base_get_running_event(base) == others[2]);
      break;
  }
}

void priorities(void) {
  static const char* const names[] = {"0", "1", "2", "3"};
  int i, what;
  begin_section("priorities");
  SAY(event_base_priority_init(base, 0));
  SAY(event_base_priority_init(base, 256));
  SAY(event_base_priority_init(base, 4));
  SAY(event_base_get_npriorities(base));
  for (i = 0; i < 4; ++i) others[i] = make(-1, 0, names[i]);
  SAY(event_get_priority(others[0]));
  for (i = 0; i < 4; ++i) SAY(event_priority_set(others[i], i));
  SAY(event_priority_set(others[0], 4));
  for (what = 0; what < 6; ++what) {
    say("  case %d", what);
    event_assign(others[2], base, -1, 0, on_first, (void*)(long)what);
    event_priority_set(others[2], 2);
    event_active(others[3], EV_WRITE, 1);
    event_active(others[2], EV_READ, 1);
    event_active(others[2], EV_WRITE, 1);
    SAY(event_priority_set(others[2], 1));
    SAY(event_base_priority_init(base, 2));
    SAY(event_base_loop(base, EVLOOP_NONBLOCK));
    SAY(event_base_got_break(base));
    SAY(event_base_got_exit(base));
    counts();
    SAY(event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK));
    SAY(event_base_dispatch(base));
  }
  for (i = 0; i < 4; ++i) event_free(others[i]);
  end_section();
}

static void on_signal(int number, short what, void* argument) {
  say("    signal %d: %#x", number, what);
  if (argument != NULL) event_del(argument);
}

void signals(void) {
  struct event *first, *second, *once;
  begin_section("signals");
  first = evsignal_new(base, SIGUSR1, on_signal, NULL);
  second = evsignal_new(base, SIGUSR2, on_signal, NULL);
  once = event_new(base, SIGUSR1, EV_SIGNAL, on_signal, NULL);
  SAY(event_add(first, NULL));
  SAY(event_add(second, NULL));
  SAY(event_add(once, NULL));
  counts();
  raise(SIGUSR1);
  SAY(event_base_loop(base, EVLOOP_ONCE));
  raise(SIGUSR2);
  raise(SIGUSR1);
  SAY(event_base_loop(base, EVLOOP_ONCE));
  /* The callback is invoked as often as the signal came. */
  raise(SIGUSR1);
  raise(SIGUSR1);
  raise(SIGUSR2);
  raise(SIGUSR1);
  SAY(event_base_loop(base, EVLOOP_ONCE));
  SAY(event_base_loop(base, EVLOOP_NONBLOCK));
  event_active(first, EV_SIGNAL, 3);
  SAY(event_base_loop(base, EVLOOP_ONCE));
  event_base_active_by_signal(base, SIGUSR2);
  SAY(event_base_loop(base, EVLOOP_ONCE));
  SAY(event_add(once, ms(5)));
  SAY(event_base_loop(base, EVLOOP_ONCE));
  counts();
  event_free(first);
  event_free(once);
  {
    struct sigaction now;
    sigaction(SIGUSR1, NULL, &now);
    say("  restored: %d", now.sa_handler == SIG_DFL);
  }
  event_free(second);
  end_section();
}

static int count_event(const struct event_base* which, const struct event* ev, void* argument) {
  (void)which;
  if (event_get_callback(ev) == on_event) ++*(int*)argument;
  return 0;
}

void listing(void) {
  struct event* events[4];
  int i, count = 0;
  begin_section("all events of a base");
  events[0] = make(0, EV_TIMEOUT, "a");
  events[1] = make(-1, 0, "b");
  events[2] = make(SIGUSR1, EV_SIGNAL | EV_PERSIST, "c");
  events[3] = make(-1, 0, "d");
  event_add(events[0], ms(1000));
  event_add(events[1], event_base_init_common_timeout(base, ms(1000)));
  event_add(events[2], NULL);
  event_active(events[3], EV_READ, 1);
  SAY(event_base_foreach_event(base, count_event, &count));
  say("  %d events", count);
  SAY(event_base_foreach_event(base, NULL, NULL));
  counts();
  for (i = 0; i < 4; ++i) event_free(events[i]);
  counts();
  end_section();
}

static void on_final(struct event* ev, void* argument) {
  say("    finalized %d %s", ev != NULL, (const char*)argument);
}

void finalizers(void) {
  struct event *ev, *freed;
  begin_section("finalizers");
  ev = make(-1, EV_FINALIZE, "finalized");
  freed = make(-1, EV_FINALIZE, "finalized and freed");
  event_active(ev, EV_READ, 1);
  SAY(event_finalize(0, ev, on_final));
  SAY(event_free_finalize(0, freed, on_final));
  SAY(event_add(ev, ms(1)));
  event_active(ev, EV_READ, 1);
  SAY(event_del(ev));
  counts();
  SAY(event_base_loop(base, EVLOOP_NONBLOCK));
  counts();
  freed = make(-1, EV_FINALIZE, "by the base");
  SAY(event_free_finalize(0, freed, on_final));
  end_section();
  free(ev);
}

static void on_limit(int fd, short what, void* argument) {
  (void)fd, (void)what;
  say("    limited %ld", (long)argument);
}

void limits(void) {
  struct event* events[6];
  int i;
  struct event_config* config = event_config_new();
  section("limits of a dispatch");
  event_config_set_max_dispatch_interval(config, NULL, 2, 1);
  base = event_base_new_with_config(config);
  event_config_free(config);
  event_base_priority_init(base, 2);
  for (i = 0; i < 6; ++i) {
    events[i] = event_new(base, -1, 0, on_limit, (void*)(long)i);
    event_priority_set(events[i], i % 2);
    event_active(events[i], EV_READ, 1);
  }
  for (i = 0; i < 4; ++i) SAY(event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK)), counts();
  for (i = 0; i < 6; ++i) event_free(events[i]);
  end_section();
}
