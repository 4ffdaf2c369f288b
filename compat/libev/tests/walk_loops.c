/* GLOBAL FUNCTIONS, FUNCTIONS CONTROLLING EVENT LOOPS */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "walk.h"

static void versions(void) {
  say("%d.%d", ev_version_major(), ev_version_minor());
  say("compiled for %d.%d", EV_VERSION_MAJOR, EV_VERSION_MINOR);
  say("supported %x, recommended %x, embeddable %x", ev_supported_backends(),
      ev_recommended_backends(), ev_embeddable_backends());
  say("sizes %zu %zu %zu %zu %zu %zu", sizeof(ev_io), sizeof(ev_timer), sizeof(ev_periodic),
      sizeof(ev_child), sizeof(ev_stat), sizeof(ev_embed));
}

static void clocks(void) {
  Loop* loop = ev_loop_new(0);
  ev_tstamp before = ev_time(), slept;
  say("ev_time is time: %d", before - (double)time(0) < 99. && before - (double)time(0) > -99.);
  ev_sleep(.02);
  slept = ev_time() - before;
  say("slept long enough: %d, not for ever: %d", slept >= .0199, slept < 10.);
  ev_sleep(0.);
  ev_sleep(-1.);
  say("ev_now is a past time: %d", ev_now(loop) <= ev_time() + 1e-6);
  say("it does not move by itself: %d", ev_now(loop) == ev_now(loop));
  before = ev_now(loop);
  ev_sleep(.002);
  say("still: %d", ev_now(loop) == before);
  ev_now_update(loop);
  say("it moves on update: %d", ev_now(loop) > before + .0019);
  before = ev_now(loop);
  ev_sleep(.002);
  ev_run(loop, EVRUN_NOWAIT);
  say("it moves in an iteration: %d", ev_now(loop) > before + .0019);
  ev_loop_destroy(loop);
}

static long held, asked;
static void* counting_allocator(void* memory, long size) EV_NOEXCEPT {
  if (!memory && size) ++held;
  if (memory && !size) --held;
  if (size) ++asked;
  if (size) return realloc(memory, (size_t)size);
  free(memory);
  return 0;
}

static void allocator(void) {
  Loop* loop;
  ev_timer timers[300];
  ev_io io;
  int i;
  ev_set_allocator(counting_allocator);
  loop = ev_loop_new(0);
  ev_io_init(&io, on_io, make_pipe().read, EV_READ);
  ev_io_start(loop, &io);
  for (i = 0; i < 300; ++i) {
    ev_timer_init(&timers[i], on_timer, 10., 0.);
    ev_timer_start(loop, &timers[i]);
    ev_feed_event(loop, &timers[i], EV_CUSTOM);
  }
  for (i = 0; i < 300; ++i) ev_timer_stop(loop, &timers[i]);
  ev_run(loop, EVRUN_NOWAIT);
  ev_io_stop(loop, &io);
  say("asked: %d", asked > 0);
  ev_loop_destroy(loop);
  say("held at the end: %ld", held);
}

static void default_loop(void) {
  Loop *first, *other;
  say("before: %d", EV_DEFAULT_UC == 0);
  first = ev_default_loop(0);
  say("made: %d, again the same: %d", first != 0, first == ev_default_loop(EVBACKEND_SELECT));
  say("EV_DEFAULT: %d, EV_DEFAULT_UC: %d", first == EV_DEFAULT, first == EV_DEFAULT_UC);
  other = ev_loop_new(0);
  say("is default: %d %d", ev_is_default_loop(first), ev_is_default_loop(other));
  ev_loop_destroy(other);
  ev_loop_destroy(first);
  say("after: %d", EV_DEFAULT_UC == 0);
  first = ev_default_loop(0);
  say("created again: %d", first == EV_DEFAULT_UC && ev_is_default_loop(first));
  say("has nothing to do: %d", ev_run(first, 0));
  ev_loop_destroy(EV_DEFAULT);
  ev_loop_destroy(0);
}

static void backends(void) {
  static const unsigned kinds[] = {EVBACKEND_SELECT, EVBACKEND_POLL,    EVBACKEND_EPOLL,
                                   EVBACKEND_KQUEUE, EVBACKEND_DEVPOLL, EVBACKEND_PORT};
  size_t i;
  Loop* loop;
  unsetenv("LIBEV_FLAGS");
  loop = ev_loop_new(EVFLAG_AUTO);
  say("auto: %x", ev_backend(loop));
  ev_loop_destroy(loop);
  for (i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    loop = ev_loop_new(kinds[i]);
    say("%x: %x", kinds[i], loop ? ev_backend(loop) : 0);
    if (loop) ev_loop_destroy(loop);
  }
  loop = ev_loop_new(EVBACKEND_SELECT | EVBACKEND_POLL | EVFLAG_NOENV);
  say("the better of two: %x", ev_backend(loop));
  ev_loop_destroy(loop);
  loop = ev_loop_new(ev_recommended_backends() | EVBACKEND_KQUEUE);
  say("as in the manual: %x", ev_backend(loop));
  ev_loop_destroy(loop);
}

static void environment(void) {
  Loop* loop;
  setenv("LIBEV_FLAGS", "2", 1);
  loop = ev_loop_new(EVBACKEND_EPOLL);
  say("LIBEV_FLAGS=2: %x", ev_backend(loop));
  ev_loop_destroy(loop);
  loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
  say("with NOENV: %x", ev_backend(loop));
  ev_loop_destroy(loop);
  setenv("LIBEV_FLAGS", "8", 1);
  loop = ev_loop_new(0);
  say("LIBEV_FLAGS=8: %d", loop != 0);
  setenv("LIBEV_FLAGS", "", 1);
  loop = ev_loop_new(EVBACKEND_SELECT);
  say("LIBEV_FLAGS=: %x", loop ? ev_backend(loop) : 0);
  ev_loop_destroy(loop);
}

static void counting(Loop* loop, ev_timer* w, int revents) {
  (void)revents;
  say("  depth %u, pending %u", ev_depth(loop), ev_pending_count(loop));
  if (w->data) {
    w->data = 0;
    ev_timer_again(loop, w);
    say("  inner run: %d", ev_run(loop, EVRUN_ONCE));
  } else {
    ev_timer_stop(loop, w);
  }
}

static void running(void) {
  Loop* loop = ev_loop_new(0);
  ev_timer timer;
  char nested;
  unsigned before;
  say("nothing to do: %d, depth %u", ev_run(loop, 0), ev_depth(loop));
  say("iterations of that: %u", ev_iteration(loop));
  ev_timer_init(&timer, counting, 0., .001);
  timer.data = &nested;
  ev_timer_start(loop, &timer);
  before = ev_iteration(loop);
  say("run: %d", ev_run(loop, 0));
  say("iterated: %d, depth %u", ev_iteration(loop) > before, ev_depth(loop));
  ev_timer_set(&timer, 10., 0.);
  ev_timer_start(loop, &timer);
  before = ev_iteration(loop);
  say("nowait: %d, %u iterations", !!ev_run(loop, EVRUN_NOWAIT), ev_iteration(loop) - before);
  ev_unref(loop);
  say("unreferenced: %d", ev_run(loop, 0));
  ev_ref(loop);
  ev_timer_stop(loop, &timer);
  ev_ref(loop);
  say("referenced without a watcher: %d", ev_run(loop, EVRUN_NOWAIT));
  ev_unref(loop);
  ev_loop_destroy(loop);
}

static int break_with;
static void breaking(Loop* loop, ev_timer* w, int revents) {
  (void)revents;
  say("  at depth %u", ev_depth(loop));
  if (ev_depth(loop) < 3) {
    ev_timer_again(loop, w);
    say("  inner run: %d", !!ev_run(loop, 0));
    say("  back at depth %u", ev_depth(loop));
    if (break_with == EVBREAK_ONE) ev_break(loop, EVBREAK_ONE);
  } else {
    ev_break(loop, break_with);
  }
}

static void breaks(void) {
  Loop* loop = ev_loop_new(0);
  ev_timer timer;
  for (break_with = EVBREAK_ONE; break_with <= EVBREAK_ALL; ++break_with) {
    say("how %d", break_with);
    ev_timer_init(&timer, breaking, 0., .001);
    ev_timer_start(loop, &timer);
    say("  outer run: %d", !!ev_run(loop, 0));
    ev_timer_stop(loop, &timer);
  }
  ev_break(loop, EVBREAK_ALL);
  say("a break before a run is forgotten: %d", ev_run(loop, 0));
  ev_timer_init(&timer, breaking, 0., 0.);
  ev_loop_destroy(loop);
}

static void cancel_break(Loop* loop, ev_timer* w, int revents) {
  static int calls;
  (void)revents;
  ev_break(loop, EVBREAK_ONE);
  if (++calls < 3) ev_break(loop, EVBREAK_CANCEL);
  say("  call %d", calls);
  (void)w;
}

static void break_in_prepare(Loop* loop, ev_prepare* w, int revents) {
  on_prepare(loop, w, revents);
  ev_break(loop, EVBREAK_ONE);
}

static void more_breaks(void) {
  Loop* loop = ev_loop_new(0);
  ev_timer timer;
  ev_prepare prepare;
  ev_check check;
  ev_timer_init(&timer, cancel_break, 0., .001);
  ev_timer_start(loop, &timer);
  say("cancelled twice: %d", ev_run(loop, 0));
  ev_timer_stop(loop, &timer);
  ev_prepare_init(&prepare, break_in_prepare);
  ev_check_init(&check, on_check);
  prepare.data = "prepare";
  check.data = "check";
  ev_prepare_start(loop, &prepare);
  ev_check_start(loop, &check);
  say("a break in prepare spares the wait: %d", ev_run(loop, 0));
  say("iterations: %d", ev_iteration(loop) > 0);
  ev_loop_destroy(loop);
}

static void suspension(void) {
  Loop* loop = ev_loop_new(0);
  ev_timer timer;
  ev_periodic periodic;
  ev_tstamp left;
  ev_timer_init(&timer, on_timer, 50., 0.);
  timer.data = "timer";
  ev_periodic_init(&periodic, on_periodic, ev_now(loop) + .05, 0., 0);
  periodic.data = "periodic";
  ev_timer_start(loop, &timer);
  ev_periodic_start(loop, &periodic);
  ev_suspend(loop);
  left = ev_timer_remaining(loop, &timer);
  ev_sleep(.1);
  ev_resume(loop);
  say("remaining as before: %d", ev_timer_remaining(loop, &timer) > left - .01 &&
                                     ev_timer_remaining(loop, &timer) < left + .01);
  ITERATE(loop);
  ev_timer_stop(loop, &timer);
  ev_timer_set(&timer, .005, 0.);
  ev_timer_start(loop, &timer);
  say("then: %d", ev_run(loop, EVRUN_ONCE));
  ev_loop_destroy(loop);
}

static ev_async word;
static void leaves_word(Loop* loop, ev_timer* w, int revents) {
  on_timer(loop, w, revents);
  ev_async_send(loop, &word);
}

static void data_and_intervals(void) {
  Loop* loop = ev_loop_new(0);
  ev_timer timer, later;
  ev_io io;
  ev_tstamp before;
  struct ends ends = make_pipe();
  say("userdata: %d", ev_userdata(loop) == 0);
  ev_set_userdata(loop, &ends);
  say("userdata: %d", ev_userdata(loop) == &ends);
  ev_set_timeout_collect_interval(loop, .05);
  ev_timer_init(&timer, on_timer, .001, 0.);
  ev_timer_init(&later, on_timer, .03, 0.);
  timer.data = "timer";
  later.data = "later";
  ev_timer_start(loop, &timer);
  ev_timer_start(loop, &later);
  before = ev_now(loop);
  say("both in one iteration: %d", ev_run(loop, EVRUN_ONCE));
  say("not before the interval: %d", ev_now(loop) - before >= .049);
  ev_set_timeout_collect_interval(loop, 0.);
  ev_set_io_collect_interval(loop, .05);
  ev_io_init(&io, on_io, ends.read, EV_READ);
  io.data = "io";
  ev_io_start(loop, &io);
  put(ends.write, "x");
  before = ev_now(loop); /* The interval begins at the previous iteration. */
  ev_run(loop, EVRUN_ONCE);
  say("io after the interval: %d", ev_time() - before >= .045);
  /* The loop does not pause if a callback has sent an ev_async. */
  ev_io_stop(loop, &io);
  ev_set_io_collect_interval(loop, 40.);
  ev_async_init(&word, on_async);
  word.data = "async";
  ev_async_start(loop, &word);
  ev_timer_init(&timer, leaves_word, 0., 0.);
  timer.data = "leaves word";
  ev_timer_start(loop, &timer);
  ev_sleep(.001);
  ev_run(loop, EVRUN_NOWAIT);
  before = ev_time();
  ev_run(loop, EVRUN_ONCE);
  say("word at once: %d", ev_time() - before < 20.);
  ev_loop_destroy(loop);
}

static void my_invoke(Loop* loop) {
  say("  %u pending", ev_pending_count(loop));
  ev_invoke_pending(loop);
}
static void released(Loop* loop) EV_NOEXCEPT {
  (void)loop;
  say("  released");
}
static void acquired(Loop* loop) EV_NOEXCEPT {
  (void)loop;
  say("  acquired");
}
static void threading_hooks(void) {
  Loop* loop = ev_loop_new(EVFLAG_AUTO);
  ev_timer timer;
  ev_idle idle;
  ev_timer_init(&timer, on_timer, 0., 0.);
  timer.data = "timer";
  ev_timer_start(loop, &timer);
  ev_set_invoke_pending_cb(loop, my_invoke);
  ev_set_loop_release_cb(loop, released, acquired);
  ev_sleep(.001);
  ITERATE(loop);
  ev_idle_init(&idle, on_idle);
  idle.data = "idle";
  ev_idle_start(loop, &idle);
  ev_run(loop, EVRUN_ONCE);
  ev_idle_stop(loop, &idle);
  ev_timer_set(&timer, .005, 0.);
  ev_timer_start(loop, &timer);
  ev_run(loop, 0);
  ev_set_invoke_pending_cb(loop, ev_invoke_pending);
  ev_set_loop_release_cb(loop, 0, 0);
  ITERATE(loop);
  ev_loop_destroy(loop);
}

static void compatibility(void) {
  Loop* loop = ev_default_loop(0);
  ev_timer timer;
  ev_timer_init(&timer, on_timer, .001, 0.);
  timer.data = "timer";
  ev_timer_start(loop, &timer);
  ev_loop(loop, EVLOOP_ONESHOT);
  say("count %d, depth %u", ev_loop_count(loop) > 0, ev_loop_depth(loop));
  ev_unloop(loop, EVUNLOOP_ALL);
  ev_loop_verify(loop);
  ev_default_fork();
  ev_default_destroy();
}

const struct section loop_sections[] = {{"versions", versions},
                                        {"clocks", clocks},
                                        {"allocator", allocator},
                                        {"default loop", default_loop},
                                        {"backends", backends},
                                        {"environment", environment},
                                        {"running", running},
                                        {"breaks", breaks},
                                        {"more breaks", more_breaks},
                                        {"suspension", suspension},
                                        {"data and intervals", data_and_intervals},
                                        {"threading hooks", threading_hooks},
                                        {"compatibility", compatibility},
                                        {0, 0}};
