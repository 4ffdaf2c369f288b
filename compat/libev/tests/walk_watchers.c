/* ANATOMY OF A WATCHER, and the watchers that are hooks: idle, prepare, check, cleanup */
#include <string.h>

#include "walk.h"

static void states(void) {
  Loop* loop = ev_loop_new(0);
  ev_timer w;
  ev_init(&w, on_timer);
  w.data = "timer";
  say("init: active %d, pending %d, priority %d, cb %d", ev_is_active(&w), ev_is_pending(&w),
      ev_priority(&w), ev_cb(&w) == on_timer);
  ev_timer_set(&w, 0., 0.);
  ev_timer_start(loop, &w);
  ev_timer_start(loop, &w);
  say("started: active %d", !!ev_is_active(&w));
  ev_feed_event(loop, &w, EV_TIMER);
  say("fed: pending %d, count %u", ev_is_pending(&w), ev_pending_count(loop));
  ev_feed_event(loop, &w, EV_CUSTOM);
  say("fed again: pending %d, count %u", ev_is_pending(&w), ev_pending_count(loop));
  say("cleared: %s", names(ev_clear_pending(loop, &w)));
  say("cleared again: %s", names(ev_clear_pending(loop, &w)));
  say("active %d, pending %d", !!ev_is_active(&w), ev_is_pending(&w));
  ev_feed_event(loop, &w, EV_TIMER | EV_CUSTOM);
  ev_timer_stop(loop, &w);
  say("stopped: active %d, pending %d", ev_is_active(&w), ev_is_pending(&w));
  ev_timer_stop(loop, &w);
  ev_invoke_pending(loop);
  ev_feed_event(loop, &w, EV_CUSTOM);
  ev_invoke_pending(loop);
  ev_invoke(loop, &w, EV_READ | EV_ERROR);
  ev_loop_destroy(loop);
}

static void clamping(void) {
  Loop* loop = ev_loop_new(0);
  ev_prepare w;
  int priority;
  for (priority = -4; priority <= 4; ++priority) {
    ev_prepare_init(&w, on_prepare);
    w.data = "prepare";
    ev_set_priority(&w, priority);
    ev_prepare_start(loop, &w);
    say("%d becomes %d", priority, ev_priority(&w));
    ev_prepare_stop(loop, &w);
  }
  say("range %d..%d", EV_MINPRI, EV_MAXPRI);
  ev_loop_destroy(loop);
}

static ev_prepare rest[12];

static void order(void) {
  static const char* labels[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
  Loop* loop = ev_loop_new(0);
  int i;
  for (i = 0; i < 12; ++i) {
    ev_prepare_init(&rest[i], on_prepare);
    rest[i].data = (void*)labels[i];
    ev_set_priority(&rest[i], i % 5 - 2);
    ev_prepare_start(loop, &rest[i]);
  }
  ITERATE(loop);
  ev_prepare_stop(loop, &rest[3]);
  ev_prepare_stop(loop, &rest[0]);
  ITERATE(loop);
  ev_prepare_start(loop, &rest[0]);
  ITERATE(loop);
  for (i = 0; i < 12; ++i) ev_feed_event(loop, &rest[i], EV_CUSTOM);
  say("pending %u", ev_pending_count(loop));
  ev_clear_pending(loop, &rest[5]);
  ev_prepare_stop(loop, &rest[7]);
  say("pending %u", ev_pending_count(loop));
  ev_verify(loop);
  ev_invoke_pending(loop);
  ev_loop_destroy(loop);
}

static ev_idle fed[4];
static void feeding(Loop* loop, ev_idle* w, int revents) {
  on_idle(loop, w, revents);
  if (w == &fed[0] && revents == EV_CUSTOM) {
    ev_feed_event(loop, &fed[1], EV_CUSTOM); /* a higher priority */
    ev_feed_event(loop, &fed[2], EV_CUSTOM); /* a lower one */
    ev_feed_event(loop, &fed[3], EV_CUSTOM); /* the same */
    ev_feed_event(loop, &fed[0], EV_READ);   /* itself */
  }
  if (w == &fed[1]) ev_clear_pending(loop, &fed[2]);
}

static void feeding_in_callbacks(void) {
  static const char* labels[] = {"normal", "high", "low", "normal too"};
  static const int priorities[] = {0, 2, -2, 0};
  Loop* loop = ev_loop_new(0);
  int i;
  for (i = 0; i < 4; ++i) {
    ev_idle_init(&fed[i], feeding);
    fed[i].data = (void*)labels[i];
    ev_set_priority(&fed[i], priorities[i]);
  }
  ev_feed_event(loop, &fed[0], EV_CUSTOM);
  ev_feed_event(loop, &fed[3], EV_WRITE);
  ITERATE(loop);
  ev_loop_destroy(loop);
}

static void freed_while_pending(void) {
  Loop* loop = ev_loop_new(0);
  int i;
  for (i = 0; i < 100; ++i) {
    ev_timer* w = malloc(sizeof *w);
    ev_timer_init(w, on_timer, 1., 0.);
    w->data = "freed";
    ev_set_priority(w, i % 5 - 2);
    if (i & 1) ev_timer_start(loop, w);
    ev_feed_event(loop, w, EV_CUSTOM);
    if (i & 1) ev_timer_stop(loop, w);
    if (!(i & 1)) ev_clear_pending(loop, w);
    memset(w, 0xff, sizeof *w);
    free(w);
  }
  say("pending %d", ev_pending_count(loop) > 0);
  ev_verify(loop);
  ev_invoke_pending(loop);
  say("pending %u", ev_pending_count(loop));
  ev_loop_destroy(loop);
}

static void idles(void) {
  Loop* loop = ev_loop_new(0);
  struct ends ends = make_pipe();
  ev_idle low, normal, high;
  ev_io io;
  ev_timer timer;
  ev_idle_init(&low, on_idle);
  ev_idle_init(&normal, on_idle);
  ev_idle_init(&high, on_idle);
  low.data = "low";
  normal.data = "normal";
  high.data = "high";
  ev_set_priority(&low, -1);
  ev_set_priority(&high, 1);
  ev_io_init(&io, on_io, ends.read, EV_READ);
  io.data = "io";
  ev_io_start(loop, &io);
  ev_idle_start(loop, &low);
  ITERATE(loop);
  ev_idle_start(loop, &normal);
  ITERATE(loop);
  ev_idle_start(loop, &high);
  ITERATE(loop);
  ev_idle_stop(loop, &high);
  put(ends.write, "x");
  ITERATE(loop); /* the io watcher of the same priority is invoked instead */
  ev_idle_start(loop, &high);
  ITERATE(loop);
  ev_idle_stop(loop, &high);
  ev_idle_stop(loop, &normal);
  ITERATE(loop);
  drain(ends.read);
  ITERATE(loop);
  ev_timer_init(&timer, on_timer, 60., 0.);
  ev_timer_start(loop, &timer);
  say("an idle watcher keeps the loop from blocking: %d", !!ev_run(loop, EVRUN_ONCE));
  ev_idle_stop(loop, &low);
  ev_idle_stop(loop, &low);
  ev_verify(loop);
  ev_loop_destroy(loop);
}

static ev_prepare prepares[3];
static ev_check checks[3];
static void changing(Loop* loop, ev_prepare* w, int revents) {
  on_prepare(loop, w, revents);
  if (w == &prepares[2]) ev_prepare_stop(loop, &prepares[0]); /* pending, not yet invoked */
  if (w == &prepares[1]) ev_prepare_start(loop, &prepares[0]);
}

static void prepares_and_checks(void) {
  static const char* labels[] = {"prepare 1", "prepare 2", "prepare 3"};
  static const char* check_labels[] = {"check 1", "check 2", "check 3"};
  Loop* loop = ev_loop_new(0);
  struct ends ends = make_pipe();
  ev_io io, urgent;
  ev_timer timer;
  int i;
  for (i = 0; i < 3; ++i) {
    ev_prepare_init(&prepares[i], changing);
    ev_check_init(&checks[i], on_check);
    prepares[i].data = (void*)labels[i];
    checks[i].data = (void*)check_labels[i];
    ev_prepare_start(loop, &prepares[i]);
    ev_check_start(loop, &checks[i]);
  }
  ev_set_priority(&checks[1], EV_MAXPRI); /* while active, for the next start */
  ev_check_stop(loop, &checks[1]);
  ev_set_priority(&checks[1], EV_MAXPRI);
  ev_check_start(loop, &checks[1]);
  ev_io_init(&io, on_io, ends.read, EV_READ);
  ev_io_init(&urgent, on_io, ends.read, EV_READ);
  ev_set_priority(&urgent, EV_MAXPRI);
  io.data = "io";
  urgent.data = "urgent io";
  ev_io_start(loop, &io);
  ev_io_start(loop, &urgent);
  ev_timer_init(&timer, on_timer, 0., 0.);
  timer.data = "timer";
  ev_timer_start(loop, &timer);
  put(ends.write, "x");
  ITERATE(loop);
  ITERATE(loop);
  ev_check_stop(loop, &checks[0]);
  ev_check_stop(loop, &checks[1]);
  ITERATE(loop);
  ev_verify(loop);
  ev_loop_destroy(loop);
}

static void cleanups(void) {
  Loop* loop = ev_loop_new(0);
  ev_cleanup first, second, urgent;
  ev_cleanup_init(&first, on_cleanup);
  ev_cleanup_init(&second, on_cleanup);
  ev_cleanup_init(&urgent, on_cleanup);
  first.data = "first";
  second.data = "second";
  urgent.data = "urgent";
  ev_set_priority(&urgent, 2);
  ev_cleanup_start(loop, &first);
  ev_cleanup_start(loop, &urgent);
  ev_cleanup_start(loop, &second);
  say("they keep nothing going: %d", ev_run(loop, 0));
  ev_cleanup_stop(loop, &first);
  ev_cleanup_start(loop, &first);
  ev_loop_destroy(loop);
  loop = ev_default_loop(0);
  ev_cleanup_init(&first, on_cleanup);
  first.data = "default";
  ev_cleanup_start(loop, &first);
  ev_loop_destroy(loop);
}

static ev_timer inner;
static void modal(Loop* loop, ev_io* w, int revents) {
  static int depth;
  on_io(loop, w, revents);
  if (depth++ > 0) return;
  drain(w->fd);
  ev_timer_start(loop, &inner);
  say("    inner: %d", !!ev_run(loop, EVRUN_ONCE));
}

static void modal_interaction(void) {
  Loop* loop = ev_loop_new(0);
  struct ends a = make_pipe(), b = make_pipe();
  ev_io first, second;
  ev_io_init(&first, modal, a.read, EV_READ);
  ev_io_init(&second, on_io, b.read, EV_READ);
  first.data = "first";
  second.data = "second";
  ev_io_start(loop, &first);
  ev_io_start(loop, &second);
  ev_timer_init(&inner, on_timer, 60., 0.);
  inner.data = "inner timer";
  put(b.write, "x");
  put(a.write, "x");
  ITERATE(loop);
  ITERATE(loop);
  ev_loop_destroy(loop);
}

const struct section watcher_sections[] = {{"states", states},
                                           {"clamping", clamping},
                                           {"order", order},
                                           {"feeding in callbacks", feeding_in_callbacks},
                                           {"freed while pending", freed_while_pending},
                                           {"idle", idles},
                                           {"prepare and check", prepares_and_checks},
                                           {"cleanup", cleanups},
                                           {"modal interaction", modal_interaction},
                                           {0, 0}};
