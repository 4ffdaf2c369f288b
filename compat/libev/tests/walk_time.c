/* ev_timer - relative and optionally repeating timeouts; ev_periodic - to cron or not to cron? */
#include <math.h>
#include <string.h>

#include "walk.h"

static void expiry(void) {
  static const double after[] = {.03, .01, .02, .012, 0., -1., .022, .015};
  static const char* labels[] = {"30", "10", "20", "12", "0", "past", "22", "15"};
  Loop* loop = ev_loop_new(0);
  ev_timer w[8];
  int i;
  for (i = 0; i < 8; ++i) {
    ev_timer_init(&w[i], on_timer, after[i], 0.);
    w[i].data = (void*)labels[i];
    ev_timer_start(loop, &w[i]);
  }
  ev_verify(loop);
  say("run: %d", ev_run(loop, 0));
  say("stopped: %d", ev_is_active(&w[0]));
  for (i = 0; i < 8; ++i) {
    ev_timer_set(&w[i], after[i], 0.);
    ev_timer_start(loop, &w[i]);
  }
  ev_sleep(.05);
  say("all in one iteration");
  ITERATE(loop);
  ev_loop_destroy(loop);
}

static void order_of_expiry(void) {
  Loop* loop = ev_loop_new(0);
  static ev_timer w[100];
  static char labels[100][8];
  int i;
  for (i = 0; i < 100; ++i) {
    sprintf(labels[i], "%d", i);
    ev_timer_init(&w[i], on_timer, (i * 37 % 100) * .0001, 0.);
    w[i].data = labels[i];
    ev_timer_start(loop, &w[i]);
  }
  for (i = 0; i < 100; i += 9) ev_timer_stop(loop, &w[i]);
  ev_sleep(.02);
  ITERATE(loop);
  ev_loop_destroy(loop);
}

static int expiries;
static void repeating_callback(Loop* loop, ev_timer* w, int revents) {
  on_timer(loop, w, revents);
  if (++expiries == 3) ev_timer_stop(loop, w);
}

static void repeating(void) {
  Loop* loop = ev_loop_new(0);
  ev_timer w;
  ev_timer_init(&w, repeating_callback, .005, .01);
  w.data = "repeating";
  ev_timer_start(loop, &w);
  say("run: %d after %d", ev_run(loop, 0), expiries);
  expiries = 0;
  ev_timer_set(&w, 0., .01);
  ev_timer_start(loop, &w);
  ev_sleep(.1);
  say("late: called once for what was missed");
  ITERATE(loop);
  say("and next in less than the interval: %d", ev_timer_remaining(loop, &w) <= .01);
  ev_timer_stop(loop, &w);
  ev_loop_destroy(loop);
}

static int about(double value, double wanted) { return fabs(value - wanted) < 1e-6; }

static void again(void) {
  Loop* loop = ev_loop_new(0);
  ev_timer w;
  ev_init(&w, on_timer);
  w.data = "again";
  w.repeat = 0.;
  ev_timer_again(loop, &w);
  say("not active, not repeating: active %d", ev_is_active(&w));
  w.repeat = 17.;
  ev_timer_again(loop, &w);
  say("not active, repeating: active %d, %d", !!ev_is_active(&w),
      about(ev_timer_remaining(loop, &w), 17.));
  w.repeat = 60.;
  ev_timer_again(loop, &w);
  say("active, later: %d", about(ev_timer_remaining(loop, &w), 60.));
  w.repeat = 1.;
  ev_timer_again(loop, &w);
  say("active, earlier: %d", about(ev_timer_remaining(loop, &w), 1.));
  ev_feed_event(loop, &w, EV_TIMER);
  ev_timer_again(loop, &w);
  say("what was pending is forgotten: %d", ev_is_pending(&w));
  w.repeat = 0.;
  ev_feed_event(loop, &w, EV_TIMER);
  ev_timer_again(loop, &w);
  say("active, not repeating: active %d, pending %d", ev_is_active(&w), ev_is_pending(&w));
  say("remaining of a stopped one: %d", about(ev_timer_remaining(loop, &w), 1.));
  ev_timer_set(&w, 5., 0.);
  say("remaining of one that is set: %d", ev_timer_remaining(loop, &w) == 5.);
  ev_timer_start(loop, &w);
  say("remaining of a started one: %d", about(ev_timer_remaining(loop, &w), 5.));
  ev_timer_stop(loop, &w);
  say("at is relative again: %d", about(w.at, 5.));
  ev_loop_destroy(loop);
}

/* Idle timeouts that are moved to a later time: each fires once, in the order of the last move. */
static ev_timer pushed[50];
static int push_iterations;
static void push(Loop* loop, ev_timer* w, int revents) {
  int i;
  (void)revents;
  if (++push_iterations == 10) {
    ev_timer_stop(loop, w);
    return;
  }
  for (i = push_iterations; i < 50; i += 3) ev_timer_again(loop, &pushed[i]);
  ev_timer_stop(loop, &pushed[push_iterations]);
}

static void ended(Loop* loop, ev_timer* w, int revents) {
  on_timer(loop, w, revents);
  ev_timer_stop(loop, w);
}

static void pushed_back(void) {
  static char labels[50][8];
  Loop* loop = ev_loop_new(0);
  ev_timer pusher;
  int i;
  ev_timer_init(&pusher, push, .002, .002);
  pusher.data = "pusher";
  for (i = 0; i < 50; ++i) {
    sprintf(labels[i], "%d", i);
    ev_init(&pushed[i], ended);
    pushed[i].repeat = 100. + i * .003;
    pushed[i].data = labels[i];
    ev_timer_again(loop, &pushed[i]);
  }
  ev_timer_start(loop, &pusher);
  ev_verify(loop);
  while (push_iterations < 10) ev_run(loop, EVRUN_ONCE);
  ev_verify(loop);
  /* Far from their deadlines, in an order that does not depend on the times of the moves. */
  for (i = 0; i < 50; ++i) {
    if (!ev_is_active(&pushed[i])) continue;
    pushed[i].repeat = .01 + (i * 17 % 50) * .001;
    ev_timer_again(loop, &pushed[i]);
  }
  ev_verify(loop);
  say("run: %d", ev_run(loop, 0));
  ev_loop_destroy(loop);
}

static void pushed_beyond_a_wait(void) {
  Loop* loop = ev_loop_new(0);
  ev_timer w;
  ev_tstamp before = ev_now(loop);
  unsigned iterations;
  ev_init(&w, ended);
  w.data = "pushed";
  w.repeat = .01;
  ev_timer_again(loop, &w);
  w.repeat = .08;
  ev_timer_again(loop, &w);
  iterations = ev_iteration(loop);
  ev_run(loop, EVRUN_ONCE);
  say("in one iteration: %u, not early: %d", ev_iteration(loop) - iterations,
      ev_now(loop) - before >= .08);
  ev_loop_destroy(loop);
}

static void order_of_priorities(void) {
  Loop* loop = ev_loop_new(0);
  ev_timer early, late, urgent;
  ev_timer_init(&early, on_timer, .001, 0.);
  ev_timer_init(&late, on_timer, .002, 0.);
  ev_timer_init(&urgent, on_timer, .003, 0.);
  early.data = "early";
  late.data = "late";
  urgent.data = "urgent";
  ev_set_priority(&urgent, 2);
  ev_timer_start(loop, &late);
  ev_timer_start(loop, &urgent);
  ev_timer_start(loop, &early);
  ev_sleep(.01);
  ITERATE(loop);
  ev_loop_destroy(loop);
}

static ev_tstamp next_time(ev_periodic* w, ev_tstamp now) EV_NOEXCEPT {
  (void)w;
  return now + .01;
}

static void periodics(void) {
  Loop* loop = ev_loop_new(0);
  ev_periodic past, soon, regular, computed;
  ev_tstamp now;
  ev_now_update(loop);
  now = ev_now(loop);
  ev_periodic_init(&past, on_periodic, now - 100., 0., 0);
  ev_periodic_init(&soon, on_periodic, now + .01, 0., 0);
  ev_periodic_init(&regular, on_periodic, 10., 3600., 0);
  ev_periodic_init(&computed, on_periodic, 0., 0., next_time);
  past.data = "past";
  soon.data = "soon";
  regular.data = "regular";
  computed.data = "computed";
  ev_periodic_start(loop, &past);
  ev_periodic_start(loop, &past);
  say("active %d, at as given: %d", !!ev_is_active(&past), ev_periodic_at(&past) == now - 100.);
  ITERATE(loop);
  say("active %d", ev_is_active(&past));
  ev_periodic_start(loop, &soon);
  say("run: %d", ev_run(loop, 0));
  ev_periodic_start(loop, &regular);
  say("at the full hour and ten seconds: %d, in the next hour: %d",
      fmod(ev_periodic_at(&regular), 3600.) == 10.,
      ev_periodic_at(&regular) > ev_now(loop) && ev_periodic_at(&regular) <= ev_now(loop) + 3600.);
  regular.interval = 60.;
  ev_periodic_again(loop, &regular);
  say("again: %d", fmod(ev_periodic_at(&regular), 60.) == 10.);
  ev_verify(loop);
  ev_periodic_stop(loop, &regular);
  ev_periodic_start(loop, &computed);
  say("computed: %d", ev_periodic_at(&computed) == ev_now(loop) + .01);
  ev_run(loop, EVRUN_ONCE);
  ev_run(loop, EVRUN_ONCE);
  say("active %d", !!ev_is_active(&computed));
  ev_periodic_stop(loop, &computed);
  ev_periodic_set(&regular, 0., .02, 0);
  ev_periodic_start(loop, &regular);
  ev_run(loop, EVRUN_ONCE);
  say("a multiple of the interval: %d",
      fabs(ev_periodic_at(&regular) / .02 - round(ev_periodic_at(&regular) / .02)) < 1e-3);
  ev_periodic_stop(loop, &regular);
  ev_loop_destroy(loop);
}

static void no_timerfd(void) {
  Loop* loop = ev_loop_new(EVFLAG_NOTIMERFD);
  ev_periodic w;
  ev_timer timer;
  ev_periodic_init(&w, on_periodic, ev_time() + .2, 0., 0);
  w.data = "periodic";
  ev_timer_init(&timer, on_timer, .005, 0.);
  timer.data = "timer";
  /* Runs first, even if a busy machine delays the loop until both are due. */
  ev_set_priority(&timer, 1);
  ev_periodic_start(loop, &w);
  ev_timer_start(loop, &timer);
  say("run: %d", ev_run(loop, 0));
  ev_loop_destroy(loop);
}

static void many_iterations(void) {
  Loop* loop = ev_loop_new(0);
  static ev_timer w[300];
  static char labels[300][8];
  unsigned seed = 7;
  int i;
  for (i = 0; i < 300; ++i) {
    sprintf(labels[i], "%d", i);
    ev_init(&w[i], on_timer);
    w[i].data = labels[i];
    w[i].repeat = 0.;
  }
  for (i = 0; i < 3000; ++i) {
    ev_timer* each;
    seed = seed * 1103515245u + 12345u;
    each = &w[seed / 65536 % 300];
    switch (seed / 7 % 3) {
      case 0:
        ev_timer_stop(loop, each);
        break;
      case 1:
        each->repeat = 0.;
        ev_timer_stop(loop, each);
        ev_timer_set(each, 1. + (double)(seed / 131072 % 1000), 0.);
        ev_timer_start(loop, each);
        break;
      default:
        each->repeat = 1. + (double)(seed / 131072 % 1000);
        ev_timer_again(loop, each);
    }
    if (i % 100 == 0) ev_verify(loop);
  }
  /* Distinct deadlines, all of which have passed when the iteration below starts. */
  for (i = 0; i < 300; ++i) {
    if (!ev_is_active(&w[i])) continue;
    ev_timer_stop(loop, &w[i]);
    ev_timer_set(&w[i], (i * 101 % 300) * 1e-5, 0.);
    ev_timer_start(loop, &w[i]);
  }
  ev_sleep(.01);
  ITERATE(loop);
  ev_loop_destroy(loop);
}

/* Times that are no numbers, infinite, or out of proportion. Each watcher is alone on its loop,
   because the order of libev's heap is undefined with NaN. */
static int odd_calls;
static void odd_callback(Loop* loop, ev_periodic* w, int revents) {
  (void)loop, (void)w, (void)revents;
  ++odd_calls;
}
static void odd_timer_callback(Loop* loop, ev_timer* w, int revents) {
  (void)loop, (void)w, (void)revents;
  ++odd_calls;
}

static void run_for_some_time(Loop* loop) {
  ev_timer end;
  ev_timer_init(&end, ended, .005, 0.);
  end.data = "end";
  ev_timer_start(loop, &end);
  while (ev_is_active(&end)) ev_run(loop, EVRUN_ONCE);
}

static const char* kind_of(ev_tstamp at, ev_tstamp now) {
  if (isnan(at)) return "no number";
  if (isinf(at)) return "infinite";
  return at > now ? "in the future" : at == now ? "now" : "past";
}

static void try_periodic(double offset, double interval,
                         ev_tstamp (*next)(ev_periodic*, ev_tstamp) EV_NOEXCEPT) {
  Loop* loop = ev_loop_new(0);
  ev_periodic w;
  ev_periodic_init(&w, odd_callback, offset, interval, next);
  odd_calls = 0;
  ev_now_update(loop);
  ev_periodic_start(loop, &w);
  say(" %g, %g: %s", offset, interval, kind_of(ev_periodic_at(&w), ev_now(loop)));
  run_for_some_time(loop);
  ev_suspend(loop);
  ev_resume(loop);
  run_for_some_time(loop);
  say("  active %d, called %d", !!ev_is_active(&w), odd_calls != 0);
  ev_periodic_again(loop, &w);
  ev_periodic_stop(loop, &w);
  ev_loop_destroy(loop);
}

static ev_tstamp never(ev_periodic* w, ev_tstamp now) EV_NOEXCEPT {
  (void)w, (void)now;
  return INFINITY;
}

static void odd_periodics(void) {
  static const double intervals[] = {INFINITY, 1.7e308, 1e18};
  static const double offsets[] = {0., 10., -10., 1e18, -1e18, 1.7e308, INFINITY, -INFINITY, NAN};
  static const double small[] = {1e-300, 5e-324, 1e-9, 1e-7, 3e-7, 1e-6, 1. / 8192.};
  size_t i, k;
  for (i = 0; i < sizeof intervals / sizeof *intervals; ++i)
    for (k = 0; k < sizeof offsets / sizeof *offsets; ++k)
      try_periodic(offsets[k], intervals[i], 0);
  for (i = 0; i < sizeof small / sizeof *small; ++i) try_periodic(.5, small[i], 0);
  for (k = 0; k < sizeof offsets / sizeof *offsets; ++k) try_periodic(offsets[k], 0., 0);
  try_periodic(INFINITY, 1., 0);
  try_periodic(-INFINITY, 1., 0);
  try_periodic(NAN, 1., 0);
  try_periodic(1e16, 10., 0);
  try_periodic(-1e16, 10., 0);
  try_periodic(0., 0., never);
}

static void odd_timers(void) {
  static const double after[] = {INFINITY, -INFINITY, NAN, 1e300, -1e300};
  static const double repeat[] = {0., INFINITY, 1e300, 1e-300};
  size_t i, k;
  for (i = 0; i < sizeof after / sizeof *after; ++i)
    for (k = 0; k < sizeof repeat / sizeof *repeat; ++k) {
      Loop* loop = ev_loop_new(0);
      ev_timer w;
      ev_timer_init(&w, odd_timer_callback, after[i], repeat[k]);
      odd_calls = 0;
      ev_timer_start(loop, &w);
      run_for_some_time(loop);
      ev_suspend(loop);
      ev_resume(loop);
      say(" %g, %g: active %d, called %d, remaining %s", after[i], repeat[k], !!ev_is_active(&w),
          odd_calls != 0, kind_of(ev_timer_remaining(loop, &w), 0.));
      ev_timer_again(loop, &w);
      ev_timer_stop(loop, &w);
      ev_loop_destroy(loop);
    }
}

const struct section time_sections[] = {{"expiry", expiry},
                                        {"order of expiry", order_of_expiry},
                                        {"repeating", repeating},
                                        {"again", again},
                                        {"pushed back", pushed_back},
                                        {"pushed beyond a wait", pushed_beyond_a_wait},
                                        {"order of priorities", order_of_priorities},
                                        {"periodic", periodics},
                                        {"no timerfd", no_timerfd},
                                        {"many iterations", many_iterations},
                                        {"odd periodics", odd_periodics},
                                        {"odd timers", odd_timers},
                                        {0, 0}};
