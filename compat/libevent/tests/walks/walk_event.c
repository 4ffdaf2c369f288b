/* A walk through the chapters of libevent's manual on bases, loops and events. It prints what
   happens, and the test compares the output of the original and of the drop-in line by line. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_compat.h>
#include <event2/event_struct.h>
#include <event2/util.h>

static struct event_base* base;

static void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  putchar('\n');
  fflush(stdout);
}
#define SAY(call) say("  %s = %lld", #call, (long long)(call))

static void section(const char* name) { say("%s", name); }

static const struct timeval* ms(int milliseconds) {
  static struct timeval times[8];
  static int next;
  struct timeval* const time = &times[next++ % 8];
  time->tv_sec = milliseconds / 1000;
  time->tv_usec = milliseconds % 1000 * 1000;
  return time;
}

static void on_event(int fd, short what, void* name) {
  say("    %s: %#x%s", (const char*)name, what, fd < 0 ? " without fd" : "");
}

static void on_read(int fd, short what, void* name) {
  char bytes[64];
  const ssize_t got = what & EV_READ ? read(fd, bytes, sizeof bytes) : 0;
  say("    %s: %#x, %zd bytes", (const char*)name, what, got);
}

static struct event* make(int fd, short events, const char* name) {
  return event_new(base, fd, events, on_event, (void*)name);
}

static void counts(void) {
  /* How many are active at most depends on how many timeouts end at once. */
  say("  added %d, active %d, virtual %d, most added %d",
      event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED),
      event_base_get_num_events(base, EVENT_BASE_COUNT_ACTIVE),
      event_base_get_num_events(base, EVENT_BASE_COUNT_VIRTUAL),
      event_base_get_max_events(base, EVENT_BASE_COUNT_ADDED, 0));
}

static void begin(const char* name) {
  section(name);
  base = event_base_new();
}
static void end(void) {
  event_base_free(base);
  base = NULL;
}

static void on_log(int severity, const char* text) { say("    log %d: %s", severity, text); }

static void pair(int ends[2]) {
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) abort();
}
static void put(int fd, const char* text) {
  if (write(fd, text, strlen(text)) < 0) abort();
}

static void configurations(void) {
  const char** each;
  int features;
  section("configurations");
  for (each = event_get_supported_methods(); *each; ++each) say("  %s", *each);
  SAY(event_get_version_number());
  say("  %s", event_get_version());
  for (features = 0; features < 16; ++features) {
    struct event_config* config = event_config_new();
    event_config_require_features(config, features);
    base = event_base_new_with_config(config);
    say("  features %d: %s %d", features, base ? event_base_get_method(base) : "none",
        base ? event_base_get_features(base) : 0);
    if (base) event_base_free(base);
    event_config_free(config);
  }
  {
    const char* avoided[] = {"epoll", "poll", "select"};
    struct event_config* config = event_config_new();
    for (features = 0; features < 3; ++features) {
      SAY(event_config_avoid_method(config, avoided[features]));
      base = event_base_new_with_config(config);
      say("  without %s: %s", avoided[features], base ? event_base_get_method(base) : "none");
      if (base) event_base_free(base);
    }
    event_config_free(config);
    config = event_config_new();
    SAY(event_config_set_flag(config, EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST));
    SAY(event_config_set_num_cpus_hint(config, 2));
    base = event_base_new_with_config(config);
    say("  %s", event_base_get_method(base));
    event_base_free(base);
    event_config_free(config);
    SAY(event_config_set_flag(NULL, 1));
    SAY(event_config_require_features(NULL, 1));
  }
  event_base_free(NULL);
}

static void methods(void) {
  const char* names[] = {"epoll", "poll", "select"};
  int i, j;
  for (i = 0; i < 3; ++i) {
    int ends[2];
    struct event *readable, *writable, *both;
    struct event_config* config = event_config_new();
    for (j = 0; j < 3; ++j) {
      if (j != i) event_config_avoid_method(config, names[j]);
    }
    section("a method");
    base = event_base_new_with_config(config);
    event_config_free(config);
    say("  %s", event_base_get_method(base));
    pair(ends);
    readable = event_new(base, ends[0], EV_READ | EV_PERSIST, on_read, "readable");
    writable = make(ends[0], EV_WRITE, "writable");
    both = make(ends[1], EV_READ | EV_WRITE, "both");
    SAY(event_add(readable, NULL));
    SAY(event_add(writable, NULL));
    SAY(event_base_loop(base, EVLOOP_NONBLOCK));
    put(ends[1], "abc");
    SAY(event_base_loop(base, EVLOOP_NONBLOCK));
    SAY(event_add(both, NULL));
    SAY(event_base_loop(base, EVLOOP_NONBLOCK));
    counts();
    close(ends[1]);
    SAY(event_base_loop(base, EVLOOP_ONCE));
    event_free(readable);
    event_free(writable);
    event_free(both);
    close(ends[0]);
    counts();
    end();
  }
}

static void pending(void) {
  int ends[2];
  struct event* ev;
  struct timeval at;
  begin("pending");
  pair(ends);
  ev = make(ends[0], EV_READ | EV_TIMEOUT, "both");
  SAY(event_initialized(ev));
  SAY(event_pending(ev, EV_READ | EV_TIMEOUT | EV_WRITE, NULL));
  SAY(event_add(ev, ms(10000)));
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
  end();
}

static void bad_descriptors(void) {
  struct event* ev;
  int file;
  begin("bad descriptors");
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
  end();
}

static void on_repeated(int fd, short what, void* argument) {
  (void)fd;
  say("    again: %#x, %d left", what, --*(int*)argument);
  if (*(int*)argument == 0) event_base_loopbreak(base);
}

static void timeouts(void) {
  struct event* events[6];
  static const char* const names[] = {"0", "1", "2", "3", "4", "5"};
  int i;
  begin("timeouts");
  for (i = 0; i < 6; ++i) {
    events[i] = make(-1, 0, names[i]);
    event_add(events[i], ms(i == 5 ? 14 : 5 + (i * 7) % 5 * 6));
  }
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
      event_add(events[i], i % 2 ? common : other);
    }
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
  end();
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

static void priorities(void) {
  static const char* const names[] = {"0", "1", "2", "3"};
  int i, what;
  begin("priorities");
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
  end();
}

static void on_signal(int number, short what, void* argument) {
  say("    signal %d: %#x", number, what);
  if (argument != NULL) event_del(argument);
}

static void signals(void) {
  struct event *first, *second, *once;
  begin("signals");
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
  end();
}

static void once_events(void) {
  int ends[2];
  begin("events once");
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
  end();
  close(ends[0]);
  close(ends[1]);
}

static void edge_and_closed(void) {
  int ends[2];
  struct event *edge, *closed;
  begin("edges and EV_CLOSED");
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
  end();
}

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
  others[0] = ev;
}

static void reused_descriptors(void) {
  int ends[2], again;
  begin("reused descriptors");
  for (again = 0; again < 3; ++again) {
    struct event* ev;
    pair(ends);
    ev = event_new(base, ends[0], EV_READ, on_reuse, ends);
    SAY(event_add(ev, NULL));
    put(ends[1], "x");
    SAY(event_base_loop(base, EVLOOP_ONCE));
    SAY(event_base_loop(base, EVLOOP_ONCE));
    event_free(ev);
    event_free(others[0]);
    close(ends[0]);
    close(ends[1]);
  }
  end();
}

/* The kernel reports descriptors in the order in which they became ready, or were added. */
static void order(void) {
  static const char* const names[] = {"first", "second", "third"};
  struct event* events[3];
  int ends[3][2], i;
  begin("order of ready descriptors");
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
  end();
}

static int count_event(const struct event_base* which, const struct event* ev, void* argument) {
  (void)which;
  if (event_get_callback(ev) == on_event) ++*(int*)argument;
  return 0;
}

static void listing(void) {
  struct event* events[4];
  int i, count = 0;
  begin("all events of a base");
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
  end();
}

static void on_final(struct event* ev, void* argument) {
  say("    finalized %d %s", ev != NULL, (const char*)argument);
}

static void finalizers(void) {
  struct event *ev, *freed;
  begin("finalizers");
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
  end();
  free(ev);
}

static void on_limit(int fd, short what, void* argument) {
  (void)fd, (void)what;
  say("    limited %ld", (long)argument);
}

static void limits(void) {
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
  end();
}

static void compatible(void) {
  struct event ev;
  section("event_compat.h");
  base = event_init();
  SAY(event_priority_init(3));
  event_set(&ev, -1, 0, on_event, "set");
  SAY(event_add(&ev, ms(2)));
  SAY(event_once(-1, EV_TIMEOUT, on_event, "once", ms(4)));
  say("  %s", event_get_method());
  SAY(event_dispatch());
  SAY(event_loopexit(ms(2)));
  SAY(event_loop(EVLOOP_NO_EXIT_ON_EMPTY));
  SAY(event_base_set(base, &ev));
  event_base_free(NULL);
  base = NULL;
}

static void utilities(void) {
  static const char* const addresses[] = {"1.2.3.4:80", "1.2.3.4",     "[::1]:443",    "::1",
                                          "[::1]",      "1.2.3.4:0",   "[::1",         "1.2.3:5",
                                          "x",          "fe80::1%999", "1.2.3.4:70000"};
  char text[64];
  struct sockaddr_storage first = {0}, other;
  struct tm when = {.tm_mday = 9, .tm_mon = 7, .tm_year = 115, .tm_hour = 1, .tm_wday = 0};
  unsigned i;
  section("event2/util.h");
  for (i = 0; i < sizeof addresses / sizeof *addresses; ++i) {
    int size = sizeof other;
    memset(&other, 0, sizeof other);
    say("  %s: %d, %d bytes", addresses[i],
        evutil_parse_sockaddr_port(addresses[i], (struct sockaddr*)&other, &size), size);
    if (i == 0) first = other;
    {
      const int order = evutil_sockaddr_cmp((struct sockaddr*)&first, (struct sockaddr*)&other, 1);
      say("  order: %d", (order > 0) - (order < 0));
    }
  }
  SAY(evutil_ascii_strcasecmp("ABC", "abc"));
  SAY(evutil_ascii_strcasecmp("ABC", "abd"));
  SAY(evutil_ascii_strncasecmp("ABCd", "abce", 3));
  SAY(evutil_ascii_strncasecmp("b", "A", 9));
  SAY(evutil_snprintf(text, 4, "%s", "abcdef"));
  say("  %s", text);
  SAY(evutil_snprintf(text, 0, "x"));
  SAY(evutil_strtoll("-12345678901234x", NULL, 10));
  SAY(evutil_date_rfc1123(text, sizeof text, &when));
  say("  %s", text);
  say("  %s", evutil_gai_strerror(EVUTIL_EAI_CANCEL));
  SAY(evutil_make_socket_nonblocking(-1));
  SAY(evutil_make_socket_closeonexec(-1));
  SAY(evutil_secure_rng_init());
  SAY(evutil_make_listen_socket_reuseable(-1));
}

int main(void) {
  event_set_log_callback(on_log);
  configurations();
  methods();
  pending();
  timeouts();
  priorities();
  signals();
  once_events();
  edge_and_closed();
  reused_descriptors();
  order();
  listing();
  finalizers();
  limits();
  compatible();
  utilities();
  bad_descriptors();
  return 0;
}
