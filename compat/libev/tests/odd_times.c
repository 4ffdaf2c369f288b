/* Times for which libev's behaviour is undefined, or which keep it busy for seconds: NaN beside
   other times, offsets that are too large for the precision of a double, and endless sleeps. The
   walk has those for which it is defined. Exits with 0, or with the number of the failed step. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <ev.h>

static int calls;
static int order[8];

static void on_timer(struct ev_loop* loop, ev_timer* w, int events) {
  (void)loop, (void)events;
  order[calls++] = (int)(size_t)w->data;
}

static void on_periodic(struct ev_loop* loop, ev_periodic* w, int events) {
  (void)events;
  order[calls++] = (int)(size_t)w->data;
  ev_periodic_stop(loop, w);
}

static int nan_beside_timers(void) {
  static const double after[] = {.003, NAN, .001, -NAN, 0., INFINITY, .002, NAN};
  struct ev_loop* loop = ev_loop_new(0);
  ev_timer w[8];
  size_t i;
  for (i = 0; i < 8; ++i) {
    ev_timer_init(&w[i], on_timer, after[i], 0.);
    w[i].data = (void*)i;
    ev_timer_start(loop, &w[i]);
  }
  ev_verify(loop);
  calls = 0;
  while (ev_is_active(&w[0])) ev_run(loop, EVRUN_ONCE);
  if (calls != 4 || order[0] != 4 || order[1] != 2 || order[2] != 6 || order[3] != 0) return 1;
  w[1].repeat = NAN;
  ev_timer_again(loop, &w[1]);
  ev_run(loop, EVRUN_NOWAIT);
  if (calls != 4) return 2;
  ev_verify(loop);
  for (i = 0; i < 8; ++i) ev_timer_stop(loop, &w[i]);
  ev_loop_destroy(loop);
  return 0;
}

static int nan_beside_periodics(void) {
  struct ev_loop* loop = ev_loop_new(0);
  ev_periodic w[6];
  double now;
  size_t i;
  ev_now_update(loop);
  now = ev_now(loop);
  ev_periodic_init(&w[0], on_periodic, now + .003, 0., 0);
  ev_periodic_init(&w[1], on_periodic, NAN, 0., 0);
  ev_periodic_init(&w[2], on_periodic, 0., INFINITY, 0);
  ev_periodic_init(&w[3], on_periodic, now + .001, 0., 0);
  ev_periodic_init(&w[4], on_periodic, -NAN, 1., 0);
  ev_periodic_init(&w[5], on_periodic, 0., .002, 0);
  for (i = 0; i < 6; ++i) {
    w[i].data = (void*)i;
    ev_periodic_start(loop, &w[i]);
  }
  ev_verify(loop);
  calls = 0;
  while (ev_is_active(&w[0])) ev_run(loop, EVRUN_ONCE);
  while (ev_is_active(&w[5])) ev_run(loop, EVRUN_ONCE);
  if (calls != 3 || !ev_is_active(&w[1]) || !ev_is_active(&w[2]) || !ev_is_active(&w[4])) return 3;
  /* All are computed again. */
  ev_suspend(loop);
  ev_resume(loop);
  ev_verify(loop);
  ev_run(loop, EVRUN_NOWAIT);
  if (calls != 3) return 4;
  for (i = 0; i < 6; ++i) ev_periodic_stop(loop, &w[i]);
  ev_loop_destroy(loop);
  return 0;
}

/* libev adds the interval to a time that may be years ago until it is later than now. */
static int huge_offsets(void) {
  static const double offsets[] = {3e24, -3e24, 7e21, -7e21, 1e20, -1e18};
  static const double intervals[] = {1., .001, 1e-6, 100.};
  struct ev_loop* loop = ev_loop_new(0);
  ev_periodic w;
  size_t i, k;
  for (i = 0; i < sizeof offsets / sizeof *offsets; ++i)
    for (k = 0; k < sizeof intervals / sizeof *intervals; ++k) {
      ev_periodic_init(&w, on_periodic, offsets[i], intervals[k], 0);
      ev_periodic_start(loop, &w);
      if (!(ev_periodic_at(&w) > ev_now(loop))) return 5;
      ev_periodic_stop(loop, &w);
    }
  ev_loop_destroy(loop);
  return 0;
}

static void on_alarm(int number) { (void)number; }

static int endless_sleep(void) {
  static const struct itimerval alarm = {{0, 10000}, {0, 20000}};
  static const struct itimerval none;
  struct sigaction action;
  double before = ev_time();
  memset(&action, 0, sizeof action);
  action.sa_handler = on_alarm;
  if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &alarm, NULL)) abort();
  ev_sleep(INFINITY);
  if (ev_time() - before < .01) return 6;
  before = ev_time();
  if (setitimer(ITIMER_REAL, &alarm, NULL))
    abort(); /* Otherwise, the next signal may be due at once. */
  ev_sleep(1e300);
  if (setitimer(ITIMER_REAL, &none, NULL)) abort();
  return ev_time() - before < .001 ? 7 : 0;
}

int main(void) {
  int failed = nan_beside_timers();
  if (failed == 0) failed = nan_beside_periodics();
  if (failed == 0) failed = huge_offsets();
  if (failed == 0) failed = endless_sleep();
  return failed;
}
