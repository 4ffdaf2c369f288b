/* Tests to run under the sanitizers: thousands of loops that are created and destroyed, a loop
   in each of several threads with forks in between, and watchers that are freed as early as
   allowed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ev.h>

typedef struct ev_loop Loop;

static void need(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "stress: %s\n", what);
  exit(1);
}

static void nothing(Loop* loop, ev_timer* w, int revents) { (void)loop, (void)w, (void)revents; }

static int open_descriptors(void) {
  int fd, count = 0;
  for (fd = 0; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

static void many_loops(void) {
  const int before = open_descriptors();
  int i;
  for (i = 0; i < 10000; ++i) {
    Loop* loop = i % 100 ? ev_loop_new(0) : ev_default_loop(0);
    ev_timer timer;
    ev_timer_init(&timer, nothing, 0., 0.);
    ev_timer_start(loop, &timer);
    if (i % 10 == 0) ev_run(loop, EVRUN_NOWAIT);
    ev_loop_destroy(loop);
  }
  /* The loops' signal slots stay allocated for later loops. */
  need(open_descriptors() <= before + 1, "loops left descriptors");
}

/* Most of the memory of a loop with one timer is the timing wheel. Sanitizers do not report heap
   use. */
static void small_loops(void) {
  enum { count = 300 };
  static Loop* loops[count];
  static ev_timer timers[count];
  const int descriptors = open_descriptors();
  const size_t before = mallinfo2().uordblks;
  size_t used;
  int i;
  for (i = 0; i < count; ++i) {
    loops[i] = ev_loop_new(0);
    ev_timer_init(&timers[i], nothing, 60., 0.);
    ev_timer_start(loops[i], &timers[i]);
    ev_run(loops[i], EVRUN_NOWAIT);
  }
  used = mallinfo2().uordblks - before;
  need(open_descriptors() - descriptors == count, "one descriptor for each loop");
  need(used / count < 20480, "20 KiB for each loop");
  for (i = 0; i < count; ++i) ev_loop_destroy(loops[i]);
}

struct echo {
  ev_io io;
  ev_timer idle;
  int* left;
};

static void echoes(Loop* loop, ev_io* w, int revents) {
  struct echo* echo = (struct echo*)w->data;
  char byte;
  (void)revents;
  if (read(w->fd, &byte, 1) != 1) return;
  ev_timer_again(loop, &echo->idle);
  if (--*echo->left <= 0) {
    ev_break(loop, EVBREAK_ALL);
    return;
  }
  need(write(w->fd, &byte, 1) == 1, "write");
}

static void too_late(Loop* loop, ev_timer* w, int revents) {
  (void)loop, (void)w, (void)revents;
  need(0, "an idle timeout expired");
}

static void* loop_of_its_own(void* unused) {
  Loop* loop = ev_loop_new(0);
  struct echo echo[20];
  int left = 4000, i;
  (void)unused;
  for (i = 0; i < 20; i += 2) {
    int fds[2], end;
    need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0, "pair");
    for (end = 0; end < 2; ++end) {
      struct echo* each = &echo[i + end];
      each->left = &left;
      ev_io_init(&each->io, echoes, fds[end], EV_READ);
      each->io.data = each;
      ev_init(&each->idle, too_late);
      each->idle.repeat = 60.;
      ev_io_start(loop, &each->io);
      ev_timer_again(loop, &each->idle);
    }
    need(write(fds[0], "x", 1) == 1, "write");
  }
  ev_run(loop, 0);
  for (i = 0; i < 20; ++i) {
    ev_io_stop(loop, &echo[i].io);
    ev_timer_stop(loop, &echo[i].idle);
    close(echo[i].io.fd);
  }
  ev_verify(loop);
  ev_loop_destroy(loop);
  return 0;
}

static void many_threads(void) {
  pthread_t threads[4];
  int i;
  for (i = 0; i < 4; ++i)
    need(pthread_create(&threads[i], 0, loop_of_its_own, 0) == 0, "pthread_create");
  for (i = 0; i < 4; ++i) pthread_join(threads[i], 0);
}

static int expired[300], expired_count;
static void expires(Loop* loop, ev_timer* w, int revents) {
  (void)loop, (void)revents;
  expired[expired_count++] = *(int*)w->data;
}

/* Timers with equal deadlines expire in the order in which they were started or moved. */
static void equal_deadlines(void) {
  Loop* loop = ev_loop_new(0);
  static ev_timer w[300];
  static int names[300];
  int i;
  for (i = 0; i < 300; ++i) {
    names[i] = i;
    ev_timer_init(&w[i], expires, .001, .001);
    w[i].data = &names[i];
    ev_timer_start(loop, &w[i]);
  }
  for (i = 0; i < 300; i += 3) ev_timer_again(loop, &w[i]);
  for (i = 1; i < 300; i += 3) ev_timer_stop(loop, &w[i]);
  ev_sleep(.002);
  ev_run(loop, EVRUN_NOWAIT);
  need(expired_count == 200, "each expires once");
  for (i = 0; i < 100; ++i) need(expired[i] == 3 * i + 2, "started timers first");
  for (; i < 200; ++i) need(expired[i] == 3 * (i - 100), "then moved timers");
  ev_verify(loop);
  ev_loop_destroy(loop);
}

static Loop* target;
static ev_async wake;
static int wakes;
static void woken(Loop* loop, ev_async* w, int revents) {
  (void)w, (void)revents;
  if (++wakes == 1) ev_break(loop, EVBREAK_ALL);
}
static void* wakes_up(void* unused) {
  int i;
  (void)unused;
  for (i = 0; i < 1000; ++i) ev_async_send(target, &wake);
  return 0;
}

static void woken_by_threads(void) {
  pthread_t threads[3];
  int round, i;
  for (round = 0; round < 50; ++round) {
    target = ev_loop_new(0);
    wakes = 0;
    ev_async_init(&wake, woken);
    ev_async_start(target, &wake);
    for (i = 0; i < 3; ++i) need(pthread_create(&threads[i], 0, wakes_up, 0) == 0, "thread");
    ev_run(target, 0);
    for (i = 0; i < 3; ++i) pthread_join(threads[i], 0);
    ev_loop_destroy(target);
  }
}

static void freed_at_once(void) {
  Loop* loop = ev_loop_new(0);
  int fds[2], i;
  need(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0, "pipe2");
  need(write(fds[1], "x", 1) == 1, "write");
  for (i = 0; i < 2000; ++i) {
    ev_io* io = malloc(sizeof *io);
    ev_timer* timer = malloc(sizeof *timer);
    ev_init(io, (void (*)(Loop*, ev_io*, int))0);
    ev_io_set(io, fds[0], EV_READ);
    ev_timer_init(timer, nothing, i % 7, i % 3);
    ev_io_start(loop, io);
    ev_timer_start(loop, timer);
    ev_feed_event(loop, io, EV_READ);
    ev_feed_event(loop, timer, EV_TIMER);
    if (i % 2) ev_clear_pending(loop, io);
    ev_io_stop(loop, io);
    ev_timer_stop(loop, timer);
    memset(io, 0x5a, sizeof *io);
    memset(timer, 0x5a, sizeof *timer);
    free(io);
    free(timer);
    if (i % 5 == 0) ev_run(loop, EVRUN_NOWAIT);
  }
  ev_verify(loop);
  ev_loop_destroy(loop);
  close(fds[0]);
  close(fds[1]);
}

static ev_io* two[2];
static void frees_both(Loop* loop, ev_io* w, int revents) {
  ev_io* other = two[w == two[0]];
  need(revents == EV_READ && ev_is_pending(other), "both are due");
  need(ev_clear_pending(loop, other) == EV_READ, "ev_clear_pending");
  ev_io_stop(loop, other);
  ev_io_stop(loop, w);
  memset(other, 0x5a, sizeof *other);
  memset(w, 0x5a, sizeof *w);
  free(other);
  free(w);
}

/* Frees watchers that are pending: by an event from the kernel, and by ev_feed_event() without a
   start. */
static void freed_while_due(void) {
  Loop* loop = ev_loop_new(0);
  ev_prepare* fed;
  int fds[4], i, end;
  for (end = 0; end < 4; end += 2) {
    need(pipe2(fds + end, O_CLOEXEC | O_NONBLOCK) == 0, "pipe2");
    need(write(fds[end + 1], "x", 1) == 1, "write");
  }
  for (i = 0; i < 500; ++i) {
    /* On one descriptor, or on two. */
    for (end = 0; end < 2; ++end) {
      two[end] = malloc(sizeof *two[end]);
      ev_io_init(two[end], frees_both, fds[i % 2 ? 2 * end : 0], EV_READ);
      ev_io_start(loop, two[end]);
    }
    fed = malloc(sizeof *fed);
    ev_init(fed, (void (*)(Loop*, ev_prepare*, int))0);
    ev_feed_event(loop, fed, EV_CUSTOM);
    need(ev_clear_pending(loop, fed) == EV_CUSTOM, "ev_clear_pending");
    free(fed);
    need(ev_run(loop, EVRUN_NOWAIT) == 0, "nothing is left");
  }
  ev_verify(loop);
  ev_loop_destroy(loop);
  for (i = 0; i < 4; ++i) close(fds[i]);
}

static void on_error(Loop* loop, ev_io* w, int revents) {
  (void)loop;
  need((revents & EV_ERROR) != 0 && !ev_is_active(w), "invoked with the error and stopped");
  ++*(int*)w->data;
}

/* A descriptor at or above `from` that is not open. The parent process may have
   passed on some. */
static int unused_descriptor(int from) {
  while (fcntl(from, F_GETFD) != -1) ++from;
  return from;
}

/* The original fails an assertion here. Without the error, `silent` would make
   the loop wait forever. */
static void not_open(void) {
  int round;
  for (round = 0; round < 2; ++round) {
    Loop* loop = ev_loop_new(0);
    ev_io bad, silent;
    int fds[2], calls = 0;
    need(pipe2(fds, O_CLOEXEC) == 0, "pipe2");
    ev_io_init(&silent, on_error, fds[0], EV_READ);
    ev_io_start(loop, &silent);
    ev_io_init(&bad, on_error, unused_descriptor(fds[1] + (round ? 1 : 700)), EV_READ);
    bad.data = &calls;
    ev_io_start(loop, &bad);
    need(calls == 0, "never from inside ev_io_start");
    ev_run(loop, EVRUN_ONCE);
    need(calls == 1, "invoked once");
    ev_loop_destroy(loop);
    close(fds[0]);
    close(fds[1]);
  }
}

static void forks(void) {
  int i, status;
  for (i = 0; i < 20; ++i) {
    Loop* loop = ev_loop_new(i % 2 ? 0 : EVFLAG_FORKCHECK);
    ev_timer timer;
    pid_t pid;
    ev_timer_init(&timer, nothing, .001, 0.);
    ev_timer_start(loop, &timer);
    pid = fork();
    if (pid == 0) {
      if (i % 2) ev_loop_fork(loop);
      ev_run(loop, 0);
      ev_loop_destroy(loop);
      _exit(0);
    }
    ev_run(loop, 0);
    need(waitpid(pid, &status, 0) == pid && status == 0, "a child failed");
    ev_loop_destroy(loop);
  }
}

static int signals_handled;
static void on_signal(Loop* loop, ev_signal* w, int revents) {
  (void)loop, (void)w, (void)revents;
  ++signals_handled;
}

/* Destroying a loop leaves its signals caught, and the next loop may use them. */
static void signals(void) {
  struct sigaction now;
  Loop* loop = 0;
  ev_signal w;
  int i;
  ev_signal_init(&w, on_signal, SIGUSR1);
  for (i = 0; i < 100; ++i) {
    if (loop) ev_loop_destroy(loop);
    raise(i ? SIGUSR1 : 0);
    loop = ev_loop_new(0);
    ev_init(&w, on_signal);
    ev_signal_start(loop, &w);
    raise(SIGUSR1);
    while (signals_handled <= i) ev_run(loop, EVRUN_ONCE);
  }
  need(signals_handled == 100, "each signal is handled once");
  ev_signal_stop(loop, &w);
  sigaction(SIGUSR1, 0, &now);
  need(now.sa_handler == SIG_DFL, "the last watcher leaves the default");
  ev_loop_destroy(loop);
}

int main(void) {
  many_loops();
  small_loops();
  equal_deadlines();
  signals();
  freed_at_once();
  freed_while_due();
  not_open();
  forks();
  many_threads();
  woken_by_threads();
  puts("done");
  return 0;
}
