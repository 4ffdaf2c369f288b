/* Pairs, filters and rate limits. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "walk_bufferevent.h"

static void pairs(void) {
  static const short directions[] = {EV_READ, EV_WRITE, EV_READ | EV_WRITE};
  static const enum bufferevent_flush_mode modes[] = {BEV_NORMAL, BEV_FLUSH, BEV_FINISHED};
  struct event_base* base = event_base_new();
  struct bufferevent* ends[2];
  struct peer a = {.name = "a"}, b = {.name = "b"};
  size_t i, j;
  SAY(bufferevent_pair_new(base, 0, ends));
  a.bev = ends[0];
  b.bev = ends[1];
  bufferevent_setcb(a.bev, on_read, on_write, on_event, &a);
  bufferevent_setcb(b.bev, on_read, on_write, on_event, &b);
  SAY(bufferevent_pair_get_partner(a.bev) == b.bev);
  SAY(bufferevent_pair_get_partner(b.bev) == a.bev);
  SAY(bufferevent_getfd(a.bev));
  SAY(bufferevent_setfd(a.bev, 0));
  SAY(bufferevent_priority_set(a.bev, 0));
  SAY(bufferevent_base_set(base, a.bev));
  SAY(bufferevent_get_priority(a.bev));
  SAY(bufferevent_write(a.bev, "to b", 4));
  turn(base);
  SAY(bufferevent_enable(b.bev, EV_READ));
  turn(base);
  SAY(bufferevent_write(a.bev, " and more", 9));
  turn(base);
  SAY(evbuffer_add(bufferevent_get_input(b.bev), "x", 1));
  SAY(evbuffer_drain(bufferevent_get_output(b.bev), 1));
  SAY(bufferevent_disable(a.bev, EV_WRITE));
  SAY(bufferevent_write(a.bev, "held", 4));
  turn(base);
  SAY(bufferevent_enable(a.bev, EV_WRITE));
  turn(base);
  evbuffer_drain(bufferevent_get_input(b.bev), 100);
  b.drain_at = 4;
  bufferevent_setwatermark(b.bev, EV_READ, 0, 4);
  SAY(bufferevent_write(a.bev, "123456789", 9));
  turn(base);
  show("left", bufferevent_get_output(a.bev));
  evbuffer_drain(bufferevent_get_input(b.bev), 3);
  turn(base);
  show("left", bufferevent_get_output(a.bev));
  for (i = 0; i < 3; ++i) {
    for (j = 0; j < 3; ++j) {
      bufferevent_write(a.bev, "A", 1);
      bufferevent_write(b.bev, "B", 1);
      say("  flush %x %d: %d", (unsigned)directions[i], (int)modes[j],
          bufferevent_flush(a.bev, directions[i], modes[j]));
      turn(base);
    }
  }
  bufferevent_setwatermark(b.bev, EV_READ, 0, 0);
  bufferevent_free(b.bev);
  turn(base);
  SAY(bufferevent_pair_get_partner(a.bev) == NULL);
  SAY(bufferevent_write(a.bev, "nobody", 6));
  SAY(bufferevent_flush(a.bev, EV_WRITE, BEV_FLUSH));
  turn(base);
  bufferevent_free(a.bev);
  turn(base);
  event_base_free(base);
}

static void pair_callbacks(void) {
  struct event_base* base = event_base_new();
  struct bufferevent* ends[2];
  struct timeval shortly = {0, 20000}, bound = {0, 100000};
  struct peer a = {.name = "a"}, b = {.name = "b", .free_read = 1};
  SAY(bufferevent_pair_new(base, BEV_OPT_UNLOCK_CALLBACKS, ends));
  a.bev = ends[0];
  b.bev = ends[1];
  bufferevent_setcb(a.bev, on_read, on_write, on_event, &a);
  bufferevent_setcb(b.bev, on_read, on_write, on_event, &b);
  bufferevent_enable(a.bev, EV_READ);
  bufferevent_enable(b.bev, EV_READ);
  bufferevent_write(a.bev, "data", 4);
  bufferevent_write(b.bev, "data", 4);
  turn(base);
  SAY(b.bev == NULL);
  bufferevent_set_timeouts(a.bev, &shortly, &shortly);
  event_base_loopexit(base, &bound);
  event_base_dispatch(base);
  bufferevent_write(a.bev, "data", 4);
  bufferevent_enable(a.bev, EV_WRITE);
  event_base_loopexit(base, &bound);
  event_base_dispatch(base);
  bufferevent_free(a.bev);
  turn(base);
  event_base_free(base);
}

static enum bufferevent_filter_result invert_case(struct evbuffer* from, struct evbuffer* to,
                                                  ev_ssize_t limit,
                                                  enum bufferevent_flush_mode mode, void* name) {
  char bytes[64];
  size_t i, size = sizeof bytes;
  int n;
  if (limit >= 0 && (size_t)limit < size) size = (size_t)limit;
  n = evbuffer_remove(from, bytes, size);
  say("    %s: limit %zd, mode %d, %d bytes", (const char*)name, limit, (int)mode, n);
  if (n <= 0) return BEV_NEED_MORE;
  for (i = 0; i < (size_t)n; ++i)
    if (bytes[i] >= 'a') bytes[i] = (char)(bytes[i] - 32);
  evbuffer_add(to, bytes, (size_t)n);
  return BEV_OK;
}

static enum bufferevent_filter_result whole_lines(struct evbuffer* from, struct evbuffer* to,
                                                  ev_ssize_t limit,
                                                  enum bufferevent_flush_mode mode, void* name) {
  size_t size;
  char* line = evbuffer_readln(from, &size, EVBUFFER_EOL_LF);
  say("    %s: limit %zd, mode %d, %s", (const char*)name, limit, (int)mode, line ? line : "-");
  if (line == NULL) {
    if (mode == BEV_FINISHED) evbuffer_add_buffer(to, from);
    return mode == BEV_FINISHED ? BEV_OK : BEV_NEED_MORE;
  }
  evbuffer_add_printf(to, "%s\n", line);
  free(line);
  return BEV_OK;
}

static enum bufferevent_filter_result fail(struct evbuffer* from, struct evbuffer* to,
                                           ev_ssize_t limit, enum bufferevent_flush_mode mode,
                                           void* name) {
  (void)from, (void)to, (void)limit;
  say("    %s: mode %d", (const char*)name, (int)mode);
  return BEV_ERROR;
}

static void context_freed(void* name) { say("    context %s is freed", (const char*)name); }

static void filters(void) {
  static const struct {
    const char* name;
    bufferevent_filter_cb in, out;
  } kinds[] = {{"none", NULL, NULL},
               {"upper case", invert_case, invert_case},
               {"lines", whole_lines, whole_lines},
               {"failing", fail, fail}};
  size_t i;
  for (i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    struct event_base* base = event_base_new();
    struct peer p;
    struct bufferevent* below;
    say("  filter: %s", kinds[i].name);
    make_peer(&p, "p", base, BEV_OPT_CLOSE_ON_FREE);
    below = p.bev;
    p.bev = bufferevent_filter_new(below, kinds[i].in, kinds[i].out, BEV_OPT_CLOSE_ON_FREE,
                                   context_freed, (void*)kinds[i].name);
    SAY(bufferevent_get_underlying(p.bev) == below);
    SAY(bufferevent_getfd(p.bev) == bufferevent_getfd(below));
    SAY(bufferevent_get_enabled(p.bev));
    SAY(bufferevent_get_enabled(below));
    SAY(bufferevent_priority_set(p.bev, 0));
    bufferevent_setcb(p.bev, on_read, on_write, on_event, &p);
    put(p.other, "early\nand");
    turn(base);
    bufferevent_enable(p.bev, EV_READ);
    turn(base);
    put(p.other, " more\nrest");
    turn(base);
    bufferevent_write(p.bev, "written\nhalf", 12);
    turn(base);
    get(p.other);
    evbuffer_drain(bufferevent_get_input(p.bev), 100);
    p.drain_at = 4;
    bufferevent_setwatermark(p.bev, EV_READ, 0, 4);
    put(p.other, "123\n");
    event_base_loop(base, EVLOOP_NONBLOCK);
    event_base_loop(base, EVLOOP_NONBLOCK);
    evbuffer_drain(bufferevent_get_input(p.bev), 100);
    event_base_loop(base, EVLOOP_NONBLOCK);
    bufferevent_setwatermark(p.bev, EV_READ, 0, 0);
    p.drain_at = 0;
    bufferevent_setwatermark(below, EV_WRITE, 0, 4);
    bufferevent_write(p.bev, "a\nb\nc\nd\ne\n", 10);
    turn(base);
    get(p.other);
    say("  flush: %d", bufferevent_flush(p.bev, EV_READ | EV_WRITE, BEV_FLUSH));
    turn(base);
    get(p.other);
    say("  finish: %d", bufferevent_flush(p.bev, EV_READ | EV_WRITE, BEV_FINISHED));
    turn(base);
    get(p.other);
    bufferevent_disable(p.bev, EV_READ);
    put(p.other, "unread\n");
    turn(base);
    close(p.other);
    bufferevent_enable(p.bev, EV_READ);
    turn(base);
    bufferevent_free(p.bev);
    turn(base);
    event_base_free(base);
  }
}

static void filter_ends(void) {
  struct event_base* base = event_base_new();
  struct peer p;
  struct bufferevent* below;
  SAY(bufferevent_filter_new(NULL, NULL, NULL, 0, NULL, NULL) == NULL);
  make_peer(&p, "freed by its callback", base, BEV_OPT_CLOSE_ON_FREE);
  p.bev = bufferevent_filter_new(p.bev, invert_case, invert_case, BEV_OPT_CLOSE_ON_FREE,
                                 context_freed, "first");
  p.free_read = 1;
  bufferevent_setcb(p.bev, on_read, on_write, on_event, &p);
  bufferevent_enable(p.bev, EV_READ);
  put(p.other, "data");
  turn(base);
  get(p.other);
  /* The one below remains. */
  make_peer(&p, "p", base, BEV_OPT_CLOSE_ON_FREE);
  below = p.bev;
  p.bev = bufferevent_filter_new(below, invert_case, invert_case, 0, context_freed, "second");
  bufferevent_setcb(p.bev, on_read, on_write, on_event, &p);
  bufferevent_enable(p.bev, EV_READ);
  put(p.other, "data");
  turn(base);
  bufferevent_free(p.bev);
  turn(base);
  p.bev = below;
  SAY(bufferevent_get_enabled(below));
  bufferevent_setcb(below, on_read, on_write, on_event, &p);
  put(p.other, "below");
  turn(base);
  bufferevent_free(below);
  turn(base);
  get(p.other);
  event_base_free(base);
}

static void limits(void) {
  struct event_base* base = event_base_new();
  struct timeval tick = {1000, 0}, none = {0, 0}, negative = {-1, 0};
  struct peer p;
  struct ev_token_bucket_cfg *cfg, *smaller;
  SAY(ev_token_bucket_cfg_new(0, 1, 1, 1, NULL) == NULL);
  SAY(ev_token_bucket_cfg_new(1, 0, 1, 1, NULL) == NULL);
  SAY(ev_token_bucket_cfg_new(2, 1, 1, 1, NULL) == NULL);
  SAY(ev_token_bucket_cfg_new(1, 1, 2, 1, NULL) == NULL);
  SAY(ev_token_bucket_cfg_new(1, (size_t)EV_RATE_LIMIT_MAX + 1, 1, 1, NULL) == NULL);
  (void)none, (void)negative;
  cfg = ev_token_bucket_cfg_new(10, 20, 5, 8, &tick);
  smaller = ev_token_bucket_cfg_new(4, 6, 4, 6, &tick);
  make_peer(&p, "p", base, BEV_OPT_CLOSE_ON_FREE);
  SAY(bufferevent_get_read_limit(p.bev));
  SAY(bufferevent_get_write_limit(p.bev));
  SAY(bufferevent_get_max_to_read(p.bev));
  SAY(bufferevent_get_max_to_write(p.bev));
  SAY(bufferevent_get_max_single_read(p.bev));
  SAY(bufferevent_get_max_single_write(p.bev));
  SAY(bufferevent_set_max_single_read(p.bev, 3));
  SAY(bufferevent_set_max_single_write(p.bev, 2));
  SAY(bufferevent_get_max_to_read(p.bev));
  SAY(bufferevent_get_max_single_write(p.bev));
  bufferevent_enable(p.bev, EV_READ);
  put(p.other, "12345");
  bufferevent_write(p.bev, "123", 3);
  turn(base);
  get(p.other);
  SAY(bufferevent_set_max_single_read(p.bev, 0));
  SAY(bufferevent_set_max_single_write(p.bev, (size_t)EV_SSIZE_MAX + 1));
  SAY(bufferevent_get_max_single_read(p.bev));
  SAY(bufferevent_get_max_single_write(p.bev));
  evbuffer_drain(bufferevent_get_input(p.bev), 100);
  SAY(bufferevent_get_token_bucket_cfg(p.bev) == NULL);
  SAY(bufferevent_set_rate_limit(p.bev, NULL));
  SAY(bufferevent_set_rate_limit(p.bev, cfg));
  SAY(bufferevent_set_rate_limit(p.bev, cfg));
  SAY(bufferevent_get_token_bucket_cfg(p.bev) == cfg);
  SAY(bufferevent_get_read_limit(p.bev));
  SAY(bufferevent_get_max_to_write(p.bev));
  put(p.other, "0123456789abcdef");
  bufferevent_write(p.bev, "0123456789abcdef", 16);
  turn(base);
  get(p.other);
  SAY(bufferevent_get_read_limit(p.bev));
  SAY(bufferevent_get_write_limit(p.bev));
  SAY(bufferevent_decrement_read_limit(p.bev, -4));
  SAY(bufferevent_decrement_write_limit(p.bev, -3));
  turn(base);
  get(p.other);
  SAY(bufferevent_decrement_read_limit(p.bev, 100));
  SAY(bufferevent_get_read_limit(p.bev));
  SAY(bufferevent_get_max_to_read(p.bev));
  SAY(bufferevent_set_rate_limit(p.bev, smaller));
  SAY(bufferevent_get_read_limit(p.bev));
  SAY(bufferevent_get_write_limit(p.bev));
  turn(base);
  SAY(bufferevent_set_rate_limit(p.bev, NULL));
  turn(base);
  get(p.other);
  SAY(bufferevent_get_read_limit(p.bev));
  bufferevent_free(p.bev);
  turn(base);
  ev_token_bucket_cfg_free(cfg);
  ev_token_bucket_cfg_free(smaller);
  event_base_free(base);
}

static void say_totals(struct bufferevent_rate_limit_group* group) {
  ev_uint64_t read_total = 0, written_total = 0;
  bufferevent_rate_limit_group_get_totals(group, &read_total, &written_total);
  say("  totals: %d %d, limits: %zd %zd", (int)read_total, (int)written_total,
      bufferevent_rate_limit_group_get_read_limit(group),
      bufferevent_rate_limit_group_get_write_limit(group));
}

static void groups(void) {
  struct event_base* base = event_base_new();
  struct timeval tick = {1000, 0}, other_tick = {2000, 0};
  struct ev_token_bucket_cfg *cfg = ev_token_bucket_cfg_new(20, 40, 20, 40, &tick),
                             *other = ev_token_bucket_cfg_new(10, 10, 10, 10, &other_tick);
  struct bufferevent_rate_limit_group* group = bufferevent_rate_limit_group_new(base, cfg);
  struct peer a, b;
  SAY(bufferevent_rate_limit_group_set_min_share(group, 5));
  SAY(bufferevent_rate_limit_group_set_min_share(group, (size_t)EV_SSIZE_MAX + 1));
  say_totals(group);
  make_peer(&a, "a", base, BEV_OPT_CLOSE_ON_FREE);
  make_peer(&b, "b", base, BEV_OPT_CLOSE_ON_FREE);
  /* The members of a group are resumed in any order. */
  bufferevent_setcb(b.bev, on_read, NULL, on_event, &b);
  bufferevent_enable(a.bev, EV_READ);
  bufferevent_enable(b.bev, EV_READ);
  SAY(bufferevent_remove_from_rate_limit_group(a.bev));
  SAY(bufferevent_add_to_rate_limit_group(a.bev, group));
  SAY(bufferevent_add_to_rate_limit_group(a.bev, group));
  SAY(bufferevent_get_max_to_read(a.bev));
  SAY(bufferevent_add_to_rate_limit_group(b.bev, group));
  SAY(bufferevent_get_max_to_read(a.bev));
  put(a.other, "0123456789abcdef");
  turn(base);
  say_totals(group);
  put(b.other, "0123456789abcdef");
  turn(base);
  say_totals(group);
  SAY(bufferevent_rate_limit_group_decrement_read(group, -30));
  turn(base);
  say_totals(group);
  SAY(bufferevent_rate_limit_group_decrement_write(group, 30));
  bufferevent_write(a.bev, "waits", 5);
  turn(base);
  get(a.other);
  SAY(bufferevent_rate_limit_group_decrement_write(group, -40));
  turn(base);
  get(a.other);
  say_totals(group);
  SAY(bufferevent_rate_limit_group_set_cfg(group, other));
  SAY(bufferevent_rate_limit_group_set_cfg(group, NULL));
  SAY(bufferevent_rate_limit_group_set_cfg(NULL, other));
  say_totals(group);
  bufferevent_rate_limit_group_reset_totals(group);
  say_totals(group);
  SAY(bufferevent_remove_from_rate_limit_group(a.bev));
  SAY(bufferevent_get_max_to_read(a.bev));
  bufferevent_free(a.bev);
  bufferevent_free(b.bev);
  turn(base);
  bufferevent_rate_limit_group_free(group);
  ev_token_bucket_cfg_free(cfg);
  ev_token_bucket_cfg_free(other);
  event_base_free(base);
}

static void refills(void) {
  struct event_base* base = event_base_new();
  struct timeval tick = {0, 20000}, bound = {0, 400000};
  struct ev_token_bucket_cfg* cfg = ev_token_bucket_cfg_new(4, 4, 4, 4, &tick);
  struct peer p;
  int i;
  make_peer(&p, "p", base, BEV_OPT_CLOSE_ON_FREE);
  bufferevent_setcb(p.bev, NULL, NULL, on_event, &p);
  bufferevent_enable(p.bev, EV_READ);
  bufferevent_set_rate_limit(p.bev, cfg);
  put(p.other, "0123456789abcdef");
  bufferevent_write(p.bev, "0123456789abcdef", 16);
  /* On a busy machine, several ticks may cause one refill. */
  for (i = 0; i < 100 && (evbuffer_get_length(bufferevent_get_input(p.bev)) < 16 ||
                          evbuffer_get_length(bufferevent_get_output(p.bev)) > 0);
       ++i) {
    event_base_loopexit(base, &bound);
    event_base_dispatch(base);
  }
  show("input", bufferevent_get_input(p.bev));
  get(p.other);
  bufferevent_free(p.bev);
  turn(base);
  ev_token_bucket_cfg_free(cfg);
  event_base_free(base);
}

const struct section pair_sections[] = {
    {"pairs", pairs}, {"callbacks of pairs", pair_callbacks}, {NULL, NULL}};
const struct section filter_sections[] = {
    {"filters", filters}, {"ends of filters", filter_ends}, {NULL, NULL}};
const struct section limit_bev_sections[] = {
    {"rate limits", limits}, {"groups", groups}, {"refills", refills}, {NULL, NULL}};
