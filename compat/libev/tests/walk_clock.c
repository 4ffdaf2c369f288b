/* The manual's sections on time updates and time jumps: the wall clock is set while a loop runs.
   The test does not set it, but replaces the functions that both libraries read it with, for the
   process of the section only. The kernel does not know of the change, so no timerfd reports it,
   and the loop must detect it by itself, which takes up to half a second and one iteration. */
#define _GNU_SOURCE
#include <math.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "walk.h"

static time_t moved_by;

/* These replace libc's functions in the libraries too, because the program's symbols come first. */
int clock_gettime(clockid_t clock, struct timespec* now) {
  const int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += moved_by;
  return result;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  const int result = (int)syscall(SYS_gettimeofday, now, zone);
  if (result == 0) now->tv_sec += moved_by;
  return result;
}

static const double hour = 3600.;
static int asked;
static double last_asked;
static int appointments;

static ev_tstamp in_two_hours(ev_periodic* w, ev_tstamp now) EV_NOEXCEPT {
  (void)w;
  ++asked;
  last_asked = now;
  return now + 2. * hour;
}

static void keeps_appointment(Loop* loop, ev_periodic* w, int revents) {
  (void)loop, (void)w, (void)revents;
  ++appointments;
}

static void ticks(Loop* loop, ev_timer* w, int revents) { (void)loop, (void)w, (void)revents; }

static void ends(Loop* loop, ev_timer* w, int revents) {
  (void)w, (void)revents;
  ev_break(loop, EVBREAK_ALL);
}

static double in_hours(double seconds) { return round(seconds / hour * 100.) / 100.; }

static double monotonic(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void run_and_tell(Loop* loop, double began, ev_timer* end) {
  double before, took;
  asked = appointments = 0;
  before = monotonic();
  ev_now_update(loop);
  ev_timer_again(loop, end);
  ev_run(loop, 0);
  took = monotonic() - before;
  say("  the timer took its time: %d, and not an hour: %d", took >= end->repeat - .01,
      took < hour / 2.);
  say("  hours since the beginning: %g by ev_now, %g by ev_time", in_hours(ev_now(loop) - began),
      in_hours(ev_time() - began));
  say("  appointments %d, asked again: %d", appointments, asked != 0);
  if (asked != 0) say("  when it was %g", in_hours(last_asked - began));
}

static void clock_is_set(unsigned flags) {
  Loop* loop = ev_loop_new(flags);
  ev_periodic appointment, regular, computed;
  ev_timer tick, end, far;
  double began, left;
  int step;
  ev_now_update(loop);
  began = ev_now(loop);
  ev_periodic_init(&appointment, keeps_appointment, began + hour / 2., 0., 0);
  ev_periodic_init(&regular, keeps_appointment, fmod(began + hour / 4., hour), hour, 0);
  ev_periodic_init(&computed, keeps_appointment, 0., 0., in_two_hours);
  ev_timer_init(&tick, ticks, .02, .02);
  ev_timer_init(&end, ends, 0., .8);
  ev_timer_init(&far, ends, 3. * hour, 0.);
  ev_periodic_start(loop, &appointment);
  ev_periodic_start(loop, &regular);
  ev_periodic_start(loop, &computed);
  ev_timer_start(loop, &tick);
  ev_timer_start(loop, &far);
  /* Back first, which makes nothing due, and then forward past two of the watchers. */
  for (step = 0; step < 2; ++step) {
    static const double hours[] = {-1., 1.};
    const time_t before = moved_by;
    moved_by = (time_t)(hours[step] * hour);
    say("the clock is set by %g hours", (double)(moved_by - before) / hour);
    run_and_tell(loop, began, &end);
    say("  the appointment is %s, at %g", ev_is_active(&appointment) ? "ahead" : "over",
        in_hours(ev_periodic_at(&appointment) - began));
    say("  the regular one is at %g, the computed one at %g",
        in_hours(ev_periodic_at(&regular) - began), in_hours(ev_periodic_at(&computed) - began));
    left = ev_timer_remaining(loop, &far);
    say("  three hours are left to the timer: %d", left <= 3. * hour && left > 2.9 * hour);
    ev_verify(loop);
  }
  ev_loop_destroy(loop);
}

static void clock_set(void) { clock_is_set(0); }
static void clock_set_without_timerfd(void) { clock_is_set(EVFLAG_NOTIMERFD); }

/* A loop that is suspended for a long time: ev_suspend and ev_resume, with the wall clock set in
   between. */
static void clock_set_while_suspended(void) {
  Loop* loop = ev_loop_new(0);
  ev_periodic regular;
  ev_timer timer;
  double began, before, left;
  ev_now_update(loop);
  began = ev_now(loop);
  ev_periodic_init(&regular, keeps_appointment, fmod(began + hour / 4., hour), hour, 0);
  ev_timer_init(&timer, ends, 100., 0.);
  ev_periodic_start(loop, &regular);
  ev_timer_start(loop, &timer);
  ev_suspend(loop);
  before = ev_timer_remaining(loop, &timer);
  moved_by = 3600;
  ev_sleep(.6);
  ev_resume(loop);
  left = ev_timer_remaining(loop, &timer);
  say("hours since the beginning: %g, the regular one is at %g, the timer was kept: %d",
      in_hours(ev_now(loop) - began), in_hours(ev_periodic_at(&regular) - began),
      left > before - .1 && left < before + .1);
  ev_loop_destroy(loop);
}

static int active_when_asked;
static ev_tstamp looks_at_itself(ev_periodic* w, ev_tstamp now) EV_NOEXCEPT {
  active_when_asked = ev_is_active(w) != 0;
  return now + hour;
}

static void active_in_callback(void) {
  Loop* loop = ev_loop_new(0);
  ev_periodic others[3], computed;
  int i;
  for (i = 0; i < 3; ++i) {
    ev_periodic_init(&others[i], keeps_appointment, 0., hour, 0);
    ev_periodic_start(loop, &others[i]);
  }
  ev_periodic_init(&computed, keeps_appointment, 0., 0., looks_at_itself);
  ev_periodic_start(loop, &computed);
  say("when it starts: %d", active_when_asked);
  ev_suspend(loop);
  ev_resume(loop);
  say("when all are computed again: %d", active_when_asked);
  ev_verify(loop);
  ev_loop_destroy(loop);
}

const struct section clock_sections[] = {{"clock set", clock_set},
                                         {"clock set, without timerfd", clock_set_without_timerfd},
                                         {"clock set while suspended", clock_set_while_suspended},
                                         {"active in its callback", active_in_callback},
                                         {0, 0}};
