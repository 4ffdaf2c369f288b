/* Uses that the manual forbids or leaves undefined, but that programs rely on: the default loop
   after its destruction, a watcher restarted without ev_io_set, signals that arrive between stop
   and start, ev_loop_fork and ev_async_send at unusual times. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "walk.h"

/* gevent reads the user data of a default loop that another object has destroyed. */
static void destroyed_default_loop(void) {
  static int data;
  Loop *first = ev_default_loop(0), *other;
  ev_timer timer;
  ev_timer_init(&timer, on_timer, .001, 0.);
  timer.data = "timer";
  ev_timer_start(first, &timer);
  ev_run(first, 0);
  ev_set_userdata(first, &data);
  ev_loop_destroy(first);
  say("pointer: %d", EV_DEFAULT_UC == 0);
  say("user data: %d", ev_userdata(first) == &data);
  ev_set_userdata(first, 0);
  say("user data: %d", ev_userdata(first) == 0);
  say("backend %x, pending %u, depth %u, iterated %d", ev_backend(first), ev_pending_count(first),
      ev_depth(first), ev_iteration(first) > 0);
  ev_ref(first);
  ev_unref(first);
  ev_break(first, EVBREAK_ALL);
  ev_set_userdata(first, &data);
  other = ev_loop_new(0);
  say("another loop is elsewhere: %d", other != first);
  ev_loop_destroy(other);
  say("the same again: %d", ev_default_loop(0) == first);
  say("user data: %d, iterated %d", ev_userdata(first) == &data, ev_iteration(first) > 0);
  ev_timer_set(&timer, .001, 0.);
  ev_timer_start(first, &timer);
  say("run: %d", ev_run(first, 0));
  ev_loop_destroy(first);
}

static int released, acquired;
static void release(Loop* loop) EV_NOEXCEPT { (void)loop, ++released; }
static void acquire(Loop* loop) EV_NOEXCEPT { (void)loop, ++acquired; }

/* The settings that a new default loop inherits from its predecessor. */
static void settings_of_the_former(void) {
  Loop* loop = ev_default_loop(0);
  ev_timer timer;
  ev_tstamp before;
  ev_set_io_collect_interval(loop, 40.);
  ev_set_timeout_collect_interval(loop, 40.);
  ev_set_loop_release_cb(loop, release, acquire);
  ev_loop_destroy(loop);
  loop = ev_default_loop(0);
  ev_timer_init(&timer, on_timer, .001, 0.);
  timer.data = "timer";
  ev_timer_start(loop, &timer);
  before = ev_time();
  say("run: %d", ev_run(loop, 0));
  say("released: %d, acquired: %d", released > 0, acquired > 0);
  say("no collect interval: %d", ev_time() - before < 20.);
  ev_loop_destroy(loop);
}

/* Stopped, one iteration later the descriptor refers to another file, and restarted without
   ev_io_set. */
static void restarted(void) {
  Loop* loop = ev_loop_new(0);
  struct ends old = make_pipe(), fresh, third;
  const int number = old.read;
  ev_io w;
  ev_io_init(&w, on_io, number, EV_READ);
  w.data = "reader";
  ev_io_start(loop, &w);
  ITERATE(loop);
  ev_io_stop(loop, &w);
  ITERATE(loop);
  close(number);
  fresh = make_pipe();
  say("the number again: %d", fresh.read == number);
  ev_io_start(loop, &w);
  put(fresh.write, "x");
  ITERATE(loop);
  drain(fresh.read);
  ITERATE(loop);
  /* By dup2, while a duplicate keeps the former file open. */
  need(fcntl(number, F_DUPFD_CLOEXEC, 100) >= 100, "dup");
  put(fresh.write, "of the former file");
  ev_io_stop(loop, &w);
  ITERATE(loop);
  third = make_pipe();
  need(dup2(third.read, number) == number, "dup2");
  ev_io_start(loop, &w);
  ITERATE(loop);
  put(third.write, "y");
  ITERATE(loop);
  drain(number);
  ITERATE(loop);
  /* Restarted repeatedly with the same file. */
  ev_io_stop(loop, &w);
  ITERATE(loop);
  ev_io_start(loop, &w);
  put(third.write, "z");
  ITERATE(loop);
  ev_io_stop(loop, &w);
  ITERATE(loop);
  ev_io_start(loop, &w);
  ITERATE(loop);
  ev_loop_destroy(loop);
}

static void two_on_one(void) {
  Loop* loop = ev_loop_new(0);
  struct ends old = make_pair(), fresh;
  ev_io reader, writer;
  ev_io_init(&reader, on_io, old.read, EV_READ);
  ev_io_init(&writer, on_io, old.read, EV_WRITE);
  reader.data = "reader";
  writer.data = "writer";
  ev_io_start(loop, &reader);
  ev_io_start(loop, &writer);
  ITERATE(loop);
  ev_io_stop(loop, &writer);
  ITERATE(loop);
  ev_io_stop(loop, &reader);
  ITERATE(loop);
  close(old.read);
  fresh = make_pair();
  say("the number again: %d", fresh.read == old.read);
  put(fresh.write, "x");
  ev_io_start(loop, &reader);
  ITERATE(loop);
  ev_io_start(loop, &writer);
  ITERATE(loop);
  ev_loop_destroy(loop);
}

static void signal_between(void) {
  Loop *loop = ev_loop_new(0), *other = ev_loop_new(0);
  ev_signal usr1, usr2;
  ev_idle idle;
  ev_timer timer;
  unsigned before;
  ev_signal_init(&usr1, on_signal, SIGUSR1);
  ev_signal_init(&usr2, on_signal, SIGUSR2);
  usr1.data = "usr1";
  usr2.data = "usr2";
  say("stopped and started");
  ev_signal_start(loop, &usr1);
  raise(SIGUSR1);
  ev_signal_stop(loop, &usr1);
  ev_signal_start(loop, &usr1);
  ITERATE(loop);
  ITERATE(loop);
  say("raised and fed");
  raise(SIGUSR1);
  ev_feed_signal_event(loop, SIGUSR1);
  say("  pending %u", ev_pending_count(loop));
  ev_invoke_pending(loop);
  ITERATE(loop);
  ITERATE(loop);
  say("fed, and raised after that");
  ev_feed_signal_event(loop, SIGUSR1);
  raise(SIGUSR1);
  ev_invoke_pending(loop);
  ITERATE(loop);
  say("ev_feed_signal and ev_feed_signal_event");
  ev_feed_signal(SIGUSR1);
  ev_feed_signal_event(loop, SIGUSR1);
  ITERATE(loop);
  ITERATE(loop);
  say("stopped for good");
  raise(SIGUSR1);
  ev_signal_stop(loop, &usr1);
  ITERATE(loop);
  ev_timer_init(&timer, on_timer, .02, 0.);
  timer.data = "timer";
  ev_timer_start(loop, &timer);
  before = ev_iteration(loop);
  while (ev_is_active(&timer)) ev_run(loop, EVRUN_ONCE);
  say("  iterations: %s", ev_iteration(loop) - before < 10 ? "few" : "many");
  ev_signal_start(loop, &usr2);
  ev_idle_init(&idle, on_idle);
  idle.data = "idle";
  ev_idle_start(loop, &idle);
  raise(SIGUSR2);
  ITERATE(loop);
  ITERATE(loop);
  ev_idle_stop(loop, &idle);
  ev_signal_stop(loop, &usr2);
  ev_loop_destroy(loop);
  ev_loop_destroy(other);
}

static void fork_and_idle(void) {
  static const char* const labels[] = {"alone", "with an async", "with a signal", "default loop"};
  int i;
  for (i = 0; i < 4; ++i) {
    Loop* loop = i == 3 ? ev_default_loop(0) : ev_loop_new(0);
    ev_idle idle;
    ev_async async;
    ev_signal usr1;
    ev_timer timer;
    say("%s", labels[i]);
    ev_idle_init(&idle, on_idle);
    idle.data = "idle";
    ev_async_init(&async, on_async);
    async.data = "async";
    ev_signal_init(&usr1, on_signal, SIGUSR1);
    if (i == 1) ev_async_start(loop, &async);
    if (i == 2) ev_signal_start(loop, &usr1);
    ev_idle_start(loop, &idle);
    ITERATE(loop);
    ev_loop_fork(loop);
    ITERATE(loop);
    ITERATE(loop);
    ev_idle_stop(loop, &idle);
    ev_timer_init(&timer, on_timer, .01, 0.);
    timer.data = "timer";
    ev_timer_start(loop, &timer);
    ev_loop_fork(loop);
    say("  once");
    ev_run(loop, EVRUN_ONCE);
    say("  timer %s", ev_is_active(&timer) ? "left" : "done");
    ev_loop_destroy(loop);
  }
}

static ev_async word;
static void sends(Loop* loop, ev_signal* w, int revents) {
  on_signal(loop, w, revents);
  ev_async_send(loop, &word);
}
static void sends_too(Loop* loop, ev_async* w, int revents) {
  static int again;
  on_async(loop, w, revents);
  if (!again++) ev_async_send(loop, &word);
}

/* An ev_async sent from a callback is processed in the next iteration, with or without a signal. */
static void async_beside_signal(void) {
  Loop* loop = ev_loop_new(0);
  ev_signal usr1;
  ev_async first;
  int priority;
  for (priority = EV_MINPRI; priority <= EV_MAXPRI; ++priority) {
    say("priority %d", priority);
    ev_async_init(&word, on_async);
    word.data = "word";
    ev_async_start(loop, &word);
    ev_async_init(&first, sends_too);
    first.data = "first";
    ev_set_priority(&first, priority);
    ev_async_start(loop, &first);
    ev_signal_init(&usr1, sends, SIGUSR1);
    usr1.data = "usr1";
    ev_set_priority(&usr1, priority);
    ev_signal_start(loop, &usr1);
    raise(SIGUSR1);
    ITERATE(loop);
    ITERATE(loop);
    ITERATE(loop);
    ev_async_send(loop, &first);
    raise(SIGUSR1);
    ITERATE(loop);
    ITERATE(loop);
    ITERATE(loop);
    ev_async_send(loop, &first);
    raise(SIGUSR1);
    ev_run(loop, EVRUN_ONCE);
    say("  and then");
    ITERATE(loop);
    ITERATE(loop);
    ev_signal_stop(loop, &usr1);
    ev_async_stop(loop, &first);
    ev_async_stop(loop, &word);
  }
  ev_loop_destroy(loop);
}

/* Kills the process on a system call that libev never makes. */
static void forbid_newer_calls(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_epoll_pwait2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS");
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    fprintf(stderr, "walk: no seccomp filter can be installed here\n");
}

static void under_filters(void) {
  static const char* const labels[] = {"before the loop", "after the loop", "in a child"};
  int i;
  for (i = 0; i < 3; ++i) {
    const pid_t pid = fork();
    int status = -1;
    if (pid == 0) {
      Loop* loop;
      ev_timer timer;
      if (i == 0) forbid_newer_calls();
      loop = ev_default_loop(0);
      if (i == 1) forbid_newer_calls();
      if (i == 2 && fork() == 0) {
        forbid_newer_calls();
        ev_loop_fork(loop);
      }
      ev_timer_init(&timer, on_timer, .05, 0.);
      timer.data = "timer";
      ev_timer_start(loop, &timer);
      ev_run(loop, 0);
      if (i == 2) wait(&status);
      if (i == 2 && status > 0) say("  killed: %d", WTERMSIG(status));
      _exit(0);
    }
    waitpid(pid, &status, 0);
    say("%s: %x", labels[i], (unsigned)status);
  }
}

const struct section misuse_sections[] = {{"destroyed default loop", destroyed_default_loop},
                                          {"settings of the former", settings_of_the_former},
                                          {"restarted", restarted},
                                          {"two on one", two_on_one},
                                          {"signal between", signal_between},
                                          {"fork and idle", fork_and_idle},
                                          {"async beside signal", async_beside_signal},
                                          {"under filters", under_filters},
                                          {0, 0}};
