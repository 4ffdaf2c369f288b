/* The main function of the walk through events, what its sections share, and the sections about
   bases and functions without one. */
#define _GNU_SOURCE
#include "walk_event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event_compat.h>
#include <event2/event_struct.h>
#include <event2/util.h>

struct event_base* base;

void section(const char* name) { say("%s", name); }

const struct timeval* ms(int milliseconds) {
  static struct timeval times[8];
  static int next;
  struct timeval* const time = &times[next++ % 8];
  time->tv_sec = milliseconds / 1000;
  time->tv_usec = milliseconds % 1000 * 1000;
  return time;
}

void on_event(int fd, short what, void* name) {
  say("    %s: %#x%s", (const char*)name, what, fd < 0 ? " without fd" : "");
}

void on_read(int fd, short what, void* name) {
  char bytes[64];
  const ssize_t got = what & EV_READ ? read(fd, bytes, sizeof bytes) : 0;
  say("    %s: %#x, %zd bytes", (const char*)name, what, got);
}

struct event* make(int fd, short events, const char* name) {
  return event_new(base, fd, events, on_event, (void*)name);
}

void counts(void) {
  /* How many are active at most depends on how many timeouts end at once. */
  say("  added %d, active %d, virtual %d, most added %d",
      event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED),
      event_base_get_num_events(base, EVENT_BASE_COUNT_ACTIVE),
      event_base_get_num_events(base, EVENT_BASE_COUNT_VIRTUAL),
      event_base_get_max_events(base, EVENT_BASE_COUNT_ADDED, 0));
}

void begin_section(const char* name) {
  section(name);
  base = event_base_new();
}
void end_section(void) {
  event_base_free(base);
  base = NULL;
}

void on_log(int severity, const char* text) { say("    log %d: %s", severity, text); }

void pair(int ends[2]) {
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) abort();
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
    end_section();
  }
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
