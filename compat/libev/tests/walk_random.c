/* Pseudo-random sequences of calls, made between iterations and in callbacks. The callbacks of
   an iteration are sorted in the trace, because the kernel's order of descriptors is not part of
   it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "walk.h"

enum { io_count = 6, pipe_count = 3, seeds = 150, steps = 80 };

static uint64_t state;
static unsigned draw(unsigned limit) {
  uint64_t mixed = state += 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return (unsigned)((mixed ^ (mixed >> 31)) % limit);
}

static Loop* loop;
static struct ends pipes[pipe_count];
static int idle_since[pipe_count]; /* The step in which the last watcher of a pipe was stopped. */
static ev_io ios[io_count];
static ev_signal signals[3];
static ev_async asyncs[2];
static ev_idle idles[2];
static ev_prepare prepares[2];
static ev_check checks[2];
static ev_fork forked;
static const int numbers[] = {SIGUSR1, SIGUSR2, SIGUSR1};
static int step, reactions;
static const int reactions_max = 20;

static char called[64][64];
static int called_count;
static void note(const char* what, long which, int revents) {
  if (called_count == 64) return;
  snprintf(called[called_count++], sizeof called[0], "%s %ld %s", what, which, names(revents));
}
static int compare(const void* a, const void* b) { return strcmp(a, b); }
static void print_called(void) {
  int i;
  qsort(called, (size_t)called_count, sizeof called[0], compare);
  for (i = 0; i < called_count; ++i) say("    %s", called[i]);
  called_count = 0;
}

/* The actions of a callback depend on the watcher and the step, not on the order of callbacks. */
static void react(unsigned kind) {
  const uint64_t kept = state;
  state = kept ^ ((uint64_t)kind << 32) ^ (uint64_t)step;
  if (++reactions <= reactions_max) {
    switch (draw(6)) {
      case 0:
        if (ev_is_active(&asyncs[kind % 2])) ev_async_send(loop, &asyncs[kind % 2]);
        break;
      case 1:
        if (ev_is_active(&signals[1])) raise(SIGUSR2);
        break;
      case 2:
        ev_idle_start(loop, &idles[kind % 2]);
        break;
      default:
        break;
    }
  }
  state = kept;
}

#define REACTS(type, kind)                                         \
  static void reacts_##type(Loop* of, ev_##type* w, int revents) { \
    (void)of;                                                      \
    note(#type, (long)(intptr_t)w->data, revents);                 \
    react((kind) * 16 + (unsigned)(intptr_t)w->data);              \
  }
REACTS(io, 1)
REACTS(signal, 2)
REACTS(async, 3)
REACTS(prepare, 4)
REACTS(check, 5)
REACTS(fork, 6)
static void stops_idle(Loop* of, ev_idle* w, int revents) {
  note("idle", (long)(intptr_t)w->data, revents);
  ev_idle_stop(of, w);
}

static int pipe_of(int io) { return io % pipe_count; }
static int is_watched(int pipe) { return ev_is_active(&ios[pipe]) || ev_is_active(&ios[pipe + 3]); }

static void change_io(int i) {
  const int pipe = pipe_of(i);
  static const int events[] = {EV_READ, EV_READ | EV_WRITE, EV_WRITE, EV_READ};
  if (ev_is_active(&ios[i])) {
    say("  stop io %d", i);
    ev_io_stop(loop, &ios[i]);
    if (!is_watched(pipe)) idle_since[pipe] = step;
    if (draw(2)) return;
  }
  if (draw(3) == 0) {
    ev_io_set(&ios[i], pipes[pipe].read, events[draw(4)]);
  } else if (draw(4) == 0) {
    ev_io_modify(&ios[i], events[draw(4)]);
  }
  say("  start io %d: %s", i, names(ios[i].events & ~EV__IOFDSET));
  ev_io_start(loop, &ios[i]);
}

/* The descriptor refers to another file afterwards. Restarting without ev_io_set is allowed only
   after an iteration. */
static void replace(int pipe) {
  struct ends fresh;
  int i;
  if (is_watched(pipe)) return;
  say("  replace %d", pipe);
  fresh = make_pair();
  if (draw(2)) close(pipes[pipe].read);
  need(dup3(fresh.read, pipes[pipe].read, O_CLOEXEC) == pipes[pipe].read, "dup3");
  close(fresh.read);
  close(pipes[pipe].write);
  pipes[pipe].write = fresh.write;
  if (idle_since[pipe] != step) return;
  for (i = pipe; i < io_count; i += pipe_count) ev_io_set(&ios[i], pipes[pipe].read, EV_READ);
}

/* A run either calls ev_loop_fork or leaves signals stopped: a signal that arrived before its
   watcher was stopped stays pending, and when libev checks for it again depends on whether libev
   has replaced its pipe since. */
static int forks;

static void change_signal(int i) {
  if (ev_is_active(&signals[i])) {
    say("  stop signal %d", i);
    ev_signal_stop(loop, &signals[i]);
    if (!forks && draw(2)) return;
  }
  say("  start signal %d", i);
  ev_signal_start(loop, &signals[i]);
}

#define TOGGLE(type, w)           \
  do {                            \
    say("  toggle " #type);       \
    if (ev_is_active(w)) {        \
      ev_##type##_stop(loop, w);  \
    } else {                      \
      ev_##type##_start(loop, w); \
    }                             \
  } while (0)

static void call_one(void) {
  const int i = (int)draw(io_count), two = i % 2;
  switch (draw(16)) {
    case 0:
    case 1:
    case 2:
      change_io(i);
      break;
    case 3:
      say("  write %d", pipe_of(i));
      put(pipes[pipe_of(i)].write, "x");
      break;
    case 4:
      say("  drain %d", pipe_of(i));
      drain(pipes[pipe_of(i)].read);
      break;
    case 5:
      replace(pipe_of(i));
      break;
    case 6:
      change_signal(i % 3);
      break;
    case 7:
      if (!ev_is_active(&signals[i % 3])) break;
      say("  raise %d", i % 3);
      raise(numbers[i % 3]);
      break;
    case 8:
      say("  feed signal %d", i % 3);
      if (two) ev_feed_signal(numbers[i % 3]);
      if (!two) ev_feed_signal_event(loop, numbers[i % 3]);
      break;
    case 9:
      TOGGLE(async, &asyncs[two]);
      break;
    case 10:
      if (!ev_is_active(&asyncs[two])) break; /* libev fails an assertion here. */
      say("  send %d", two);
      ev_async_send(loop, &asyncs[two]);
      break;
    case 11:
      TOGGLE(idle, &idles[two]);
      break;
    case 12:
      if (two) TOGGLE(prepare, &prepares[i / 3]);
      if (!two) TOGGLE(check, &checks[i / 3]);
      break;
    case 13:
      if (!forks) break;
      say("  fork");
      ev_loop_fork(loop);
      break;
    case 14:
      say("  feed io %d", i);
      if (two) ev_feed_event(loop, &ios[i], EV_CUSTOM);
      if (!two) ev_feed_fd_event(loop, pipes[pipe_of(i)].read, EV_READ);
      break;
    default:
      say("  clear %d: %s", i, names(ev_clear_pending(loop, &ios[i])));
      break;
  }
}

static void init(void) {
  intptr_t i;
  for (i = 0; i < pipe_count; ++i) pipes[i] = make_pair(), idle_since[i] = -1;
  for (i = 0; i < io_count; ++i) {
    ev_io_init(&ios[i], reacts_io, pipes[i % pipe_count].read, EV_READ);
    ev_set_priority(&ios[i], (int)draw(5) - 2);
    ios[i].data = (void*)i;
  }
  for (i = 0; i < 3; ++i) {
    ev_signal_init(&signals[i], reacts_signal, numbers[i]);
    ev_set_priority(&signals[i], (int)draw(5) - 2);
    signals[i].data = (void*)i;
  }
  for (i = 0; i < 2; ++i) {
    ev_async_init(&asyncs[i], reacts_async);
    ev_idle_init(&idles[i], stops_idle);
    ev_prepare_init(&prepares[i], reacts_prepare);
    ev_check_init(&checks[i], reacts_check);
    ev_set_priority(&asyncs[i], (int)draw(5) - 2);
    ev_set_priority(&idles[i], (int)draw(5) - 2);
    asyncs[i].data = idles[i].data = prepares[i].data = checks[i].data = (void*)i;
  }
  ev_fork_init(&forked, reacts_fork);
  forked.data = 0;
  if (draw(2)) ev_fork_start(loop, &forked);
}

static void play(unsigned seed) {
  int i, calls;
  say("seed %u", seed);
  state = seed * 1000003u + 1;
  forks = seed % 2 == 0;
  loop = seed % 5 == 0 ? ev_default_loop(0) : ev_loop_new(0);
  init();
  for (step = 0; step < steps; ++step) {
    calls = (int)draw(6);
    while (calls-- > 0) call_one();
    reactions = 0;
    if (draw(8) == 0) ev_invoke_pending(loop);
    print_called();
    say("  %d: %s, pending %u", step, ev_run(loop, EVRUN_NOWAIT) ? "more" : "none left",
        ev_pending_count(loop));
    print_called();
    ev_verify(loop);
  }
  reactions = reactions_max;
  for (i = 0; i < 3; ++i) ev_run(loop, EVRUN_NOWAIT);
  called_count = 0;
  for (i = 0; i < 3; ++i) ev_signal_stop(loop, &signals[i]);
  for (i = 0; i < io_count; ++i) ev_io_stop(loop, &ios[i]);
  /* The reference count of libev's default loop includes these forever otherwise. */
  for (i = 0; i < 2; ++i) {
    ev_async_stop(loop, &asyncs[i]);
    ev_idle_stop(loop, &idles[i]);
    ev_prepare_stop(loop, &prepares[i]);
    ev_check_stop(loop, &checks[i]);
  }
  ev_fork_stop(loop, &forked);
  ev_loop_destroy(loop);
  for (i = 0; i < pipe_count; ++i) close(pipes[i].read), close(pipes[i].write);
}

static void random_calls(void) {
  const char* const one = getenv("WALK_SEED");
  unsigned seed;
  /* A ring reports the state at the time of its check, even if the data was read in the
     meantime. */
  if (getenv("WALK_ANY_ORDER")) return;
  if (one) {
    play((unsigned)atoi(one));
    return;
  }
  for (seed = 1; seed <= seeds; ++seed) play(seed);
}

const struct section random_sections[] = {{"random calls", random_calls}, {0, 0}};
