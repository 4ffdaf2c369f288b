/* ev_signal, ev_child, ev_fork: signals, children, fork(2) */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "walk.h"

static int is_blocked(int number) {
  sigset_t now;
  sigprocmask(SIG_BLOCK, 0, &now);
  return sigismember(&now, number);
}

static int is_default(int number) {
  struct sigaction now;
  sigaction(number, 0, &now);
  return now.sa_handler == SIG_DFL;
}

static void signals(void) {
  Loop *loop = ev_loop_new(0), *other = ev_loop_new(0);
  ev_signal usr1, usr1_too, usr2, urgent;
  ev_signal_init(&usr1, on_signal, SIGUSR1);
  ev_signal_init(&usr1_too, on_signal, SIGUSR1);
  ev_signal_init(&usr2, on_signal, SIGUSR2);
  ev_signal_init(&urgent, on_signal, SIGHUP);
  usr1.data = "usr1";
  usr1_too.data = "usr1 too";
  usr2.data = "usr2";
  urgent.data = "urgent hup";
  ev_set_priority(&urgent, 2);
  signal(SIGUSR1, SIG_IGN);
  ev_signal_start(loop, &usr1);
  ev_signal_start(loop, &usr1_too);
  ev_signal_start(loop, &usr2);
  ev_signal_start(loop, &urgent);
  say("caught: %d", !is_default(SIGUSR1));
  raise(SIGUSR1);
  raise(SIGUSR1);
  raise(SIGUSR2);
  raise(SIGHUP);
  say("run: %d", !!ev_run(loop, EVRUN_ONCE));
  ITERATE(loop);
  ev_signal_stop(loop, &usr1);
  say("one is left: %d", !is_default(SIGUSR1));
  raise(SIGUSR1);
  ev_run(loop, EVRUN_ONCE);
  ev_signal_stop(loop, &usr1_too);
  say("none is left: %d", is_default(SIGUSR1));
  ev_feed_signal_event(loop, SIGUSR2);
  ev_feed_signal_event(other, SIGUSR2);
  say("fed: %u %u", ev_pending_count(loop), ev_pending_count(other));
  ev_invoke_pending(loop);
  ev_feed_signal(SIGUSR2);
  ev_feed_signal(SIGUSR1);
  ev_run(loop, EVRUN_ONCE);
  /* A signal moves to another loop after its watcher was stopped. */
  ev_signal_stop(loop, &usr2);
  ev_signal_start(other, &usr2);
  raise(SIGUSR2);
  say("other: %d", !!ev_run(other, EVRUN_ONCE));
  ev_signal_stop(other, &usr2);
  ev_signal_stop(loop, &urgent);
  say("nothing left: %d", ev_run(other, 0));
  ev_loop_destroy(loop);
  ev_loop_destroy(other);
}

static void interrupted(Loop* loop, ev_timer* w, int revents) {
  on_timer(loop, w, revents);
  kill(getpid(), SIGUSR1);
  kill(getpid(), SIGUSR2);
}

static int signals_seen;
static void counts(Loop* loop, ev_signal* w, int revents) {
  on_signal(loop, w, revents);
  ++signals_seen;
}

static void from_outside(void) {
  Loop* loop = ev_loop_new(0);
  ev_signal usr1, usr2;
  ev_timer timer;
  pid_t pid;
  ev_signal_init(&usr1, counts, SIGUSR1);
  ev_signal_init(&usr2, counts, SIGUSR2);
  usr1.data = "usr1";
  usr2.data = "usr2";
  ev_signal_start(loop, &usr1);
  ev_signal_start(loop, &usr2);
  ev_timer_init(&timer, interrupted, .001, 0.);
  timer.data = "timer";
  ev_timer_start(loop, &timer);
  ev_run(loop, EVRUN_ONCE);
  while (signals_seen < 2) ev_run(loop, EVRUN_ONCE);
  pid = fork();
  if (pid == 0) {
    usleep(20000);
    kill(getppid(), SIGUSR1);
    _exit(0);
  }
  /* An interrupted system call may end the iteration first. */
  while (signals_seen < 3) ev_run(loop, EVRUN_ONCE);
  waitpid(pid, 0, 0);
  ev_signal_stop(loop, &usr1);
  ev_signal_stop(loop, &usr2);
  ev_loop_destroy(loop);
}

static void masks(void) {
  static const unsigned flags[] = {0, EVFLAG_NOSIGMASK, EVFLAG_SIGNALFD,
                                   EVFLAG_SIGNALFD | EVFLAG_NOSIGMASK};
  size_t i;
  for (i = 0; i < sizeof flags / sizeof *flags; ++i) {
    Loop* loop = ev_loop_new(flags[i]);
    ev_signal w;
    ev_signal_init(&w, on_signal, SIGUSR1);
    w.data = "usr1";
    say("flags %x", flags[i]);
    ev_signal_start(loop, &w);
    say("  started: blocked %d", is_blocked(SIGUSR1));
    raise(SIGUSR1);
    ev_run(loop, EVRUN_ONCE);
    ev_signal_stop(loop, &w);
    say("  stopped: blocked %d, default %d", is_blocked(SIGUSR1), is_default(SIGUSR1));
    ev_loop_destroy(loop);
  }
}

/* Signals must not terminate a program that is shutting down. Each case runs in its own process,
   because libev remembers the destroyed loop and may take a later loop at the same address for
   it. */
static void signal_after_loop(unsigned flags, int number) {
  Loop *first = ev_loop_new(flags), *second = ev_loop_new(flags);
  ev_signal left, later;
  ev_signal_init(&left, on_signal, number);
  ev_signal_init(&later, on_signal, SIGHUP);
  left.data = "left";
  later.data = "later";
  ev_signal_start(first, &left);
  ITERATE(first);
  ev_loop_destroy(first);
  raise(number);
  say("flags %x: alive, default %d, blocked %d", flags, is_default(number), is_blocked(number));
  ev_signal_start(second, &later);
  raise(SIGHUP);
  ev_run(second, EVRUN_ONCE);
  ev_signal_stop(second, &later);
  say("  stopped: default %d", is_default(SIGHUP));
  ev_loop_destroy(second);
}

static void after_the_loop(void) {
  static const unsigned flags[] = {0, EVFLAG_SIGNALFD};
  static const int numbers[] = {SIGUSR1, SIGUSR2};
  int i;
  for (i = 0; i < 2; ++i) {
    const pid_t pid = fork();
    need(pid >= 0, "fork");
    if (pid == 0) {
      alarm(20);
      signal_after_loop(flags[i], numbers[i]);
      _exit(0);
    }
    waitpid(pid, 0, 0);
  }
}

static void blocked_before(void) {
  static const unsigned flags[] = {0, EVFLAG_NOSIGMASK};
  int i;
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  for (i = 0; i < 2; ++i) {
    Loop* loop = ev_loop_new(flags[i]);
    ev_signal w;
    sigprocmask(SIG_BLOCK, &one, 0);
    ev_signal_init(&w, on_signal, SIGUSR1);
    w.data = "usr1";
    ev_signal_start(loop, &w);
    say("flags %x: blocked %d", flags[i], is_blocked(SIGUSR1));
    ev_signal_stop(loop, &w);
    ev_loop_destroy(loop);
  }
}

static ev_child watched[4], any;
static int children_left, changes;
static void on_child(Loop* loop, ev_child* w, int revents) {
  (void)loop;
  ++changes;
  say("    %s: %s, its pid %d, %s %d", (const char*)w->data, names(revents), w->rpid == w->pid,
      WIFEXITED(w->rstatus)     ? "exit"
      : WIFSIGNALED(w->rstatus) ? "signal"
                                : "stop",
      WIFEXITED(w->rstatus)     ? WEXITSTATUS(w->rstatus)
      : WIFSIGNALED(w->rstatus) ? WTERMSIG(w->rstatus)
                                : WIFSTOPPED(w->rstatus));
  if (WIFEXITED(w->rstatus) || WIFSIGNALED(w->rstatus)) {
    if (w != &any) ev_child_stop(loop, w);
    if (w == &any && --children_left == 0) ev_break(loop, EVBREAK_ALL);
  }
}

static pid_t child_that(void (*does)(void)) {
  const pid_t pid = fork();
  need(pid >= 0, "fork");
  if (pid == 0) {
    does();
    _exit(7);
  }
  return pid;
}
static void exits(void) {}
static void is_killed(void) {
  signal(SIGTERM, SIG_DFL);
  raise(SIGTERM);
}
static void waits(void) {
  for (;;) pause();
}

static void one_child(const char* name, void (*does)(void)) {
  Loop* loop = ev_default_loop(0);
  ev_child_init(&watched[0], on_child, child_that(does), 0);
  watched[0].data = (void*)name;
  ev_child_start(loop, &watched[0]);
  say("  run: %d", ev_run(loop, 0));
}

static void children(void) {
  Loop* loop = ev_default_loop(0);
  pid_t pid;
  int status;
  say("sigchld is caught: %d", !is_default(SIGCHLD));
  one_child("exits", exits);
  one_child("killed", is_killed);
  pid = child_that(waits);
  ev_child_init(&watched[1], on_child, pid, 0);
  ev_child_init(&watched[2], on_child, pid, 1);
  ev_child_init(&any, on_child, 0, 0);
  watched[1].data = "end only";
  watched[2].data = "traced";
  any.data = "any";
  ev_child_start(loop, &watched[1]);
  ev_child_start(loop, &watched[2]);
  changes = 0;
  kill(pid, SIGSTOP);
  while (changes < 1) ev_run(loop, EVRUN_ONCE);
  kill(pid, SIGCONT);
  while (changes < 2) ev_run(loop, EVRUN_ONCE);
  kill(pid, SIGKILL);
  ev_run(loop, 0);
  say("priority as the signal's: %d", ev_priority(&watched[1]));
  /* A child without a watcher is reaped as well. */
  pid = child_that(exits);
  ev_child_start(loop, &any);
  children_left = 1;
  ev_run(loop, 0);
  say("taken: %d", waitpid(pid, &status, WNOHANG) == -1 && errno == ECHILD);
  ev_child_stop(loop, &any);
  say("nothing left: %d", ev_run(loop, 0));
  ev_loop_destroy(loop);
  say("sigchld is default: %d", is_default(SIGCHLD));
}

/* Invoked before or after the watcher of that child, depending on its pid. */
static void any_of_many(Loop* loop, ev_child* w, int revents) {
  (void)w, (void)revents;
  if (--children_left == 0) ev_break(loop, EVBREAK_ALL);
}

static void many_children(void) {
  static ev_child w[40];
  Loop* loop = ev_default_loop(EVFLAG_SIGNALFD);
  int i;
  ev_child_init(&any, any_of_many, 0, 0);
  any.data = "any";
  children_left = 40;
  ev_child_start(loop, &any);
  for (i = 0; i < 40; ++i) {
    ev_child_init(&w[i], on_child, child_that(exits), 0);
    w[i].data = "child";
    ev_child_start(loop, &w[i]);
  }
  ev_run(loop, 0);
  ev_child_stop(loop, &any);
  say("nothing left: %d", ev_run(loop, 0));
}

static void in_child(Loop* loop, struct ends ends, const char* who) {
  put(ends.write, "x");
  say("  %s", who);
  ev_run(loop, EVRUN_ONCE);
  drain(ends.read);
  ITERATE(loop);
}

static void after_fork(unsigned flags, int tell) {
  Loop* loop = ev_loop_new(flags);
  ev_fork first, second;
  ev_io io;
  ev_timer timer;
  ev_signal usr1;
  ev_async async;
  struct ends ends = make_pipe();
  pid_t pid;
  ev_fork_init(&first, on_fork);
  ev_fork_init(&second, on_fork);
  first.data = "fork 1";
  second.data = "fork 2";
  ev_fork_start(loop, &first);
  ev_fork_start(loop, &second);
  ev_io_init(&io, on_io, ends.read, EV_READ);
  io.data = "io";
  ev_io_start(loop, &io);
  ev_timer_init(&timer, on_timer, 60., 0.);
  ev_timer_start(loop, &timer);
  ev_signal_init(&usr1, on_signal, SIGUSR1);
  usr1.data = "usr1";
  ev_signal_start(loop, &usr1);
  ev_async_init(&async, on_async);
  async.data = "async";
  ev_async_start(loop, &async);
  ITERATE(loop);
  pid = fork();
  if (pid == 0) {
    alarm(20);
    if (tell) ev_loop_fork(loop);
    in_child(loop, ends, "child");
    raise(SIGUSR1);
    ev_run(loop, EVRUN_ONCE);
    ev_async_send(loop, &async);
    ev_run(loop, EVRUN_ONCE);
    ev_loop_destroy(loop);
    _exit(0);
  }
  waitpid(pid, 0, 0);
  in_child(loop, ends, "parent");
  raise(SIGUSR1);
  ev_run(loop, EVRUN_ONCE);
  ev_loop_fork(loop); /* "any time, anywhere" */
  in_child(loop, ends, "parent, as if forked");
  ev_async_send(loop, &async);
  ev_run(loop, EVRUN_ONCE);
  ev_signal_stop(loop, &usr1);
  ev_loop_destroy(loop);
}

static void forks(void) {
  say("reported");
  after_fork(0, 1);
  say("found out");
  after_fork(EVFLAG_FORKCHECK, 0);
  say("with signalfd");
  after_fork(EVFLAG_SIGNALFD, 1);
}

static int signals_seen;
static void on_counted_signal(Loop* loop, ev_signal* w, int revents) {
  on_signal(loop, w, revents);
  ++signals_seen;
}
static void on_limit(Loop* loop, ev_timer* w, int revents) {
  (void)w, (void)revents;
  say("    never reported");
  ev_break(loop, EVBREAK_ALL);
}

/* As after daemon(3): the parent no longer uses its loop, and the child never calls
   ev_loop_fork(). Not on io_uring, whose ring still belongs to the parent. */
static void inherited_loop(unsigned flags) {
  Loop* loop = ev_default_loop(flags | EVFLAG_NOENV);
  ev_signal usr1;
  ev_child child;
  ev_timer limit;
  pid_t pid;
  say("backend %x", flags);
  ev_signal_init(&usr1, on_counted_signal, SIGUSR1);
  usr1.data = "usr1";
  ev_signal_start(loop, &usr1);
  ITERATE(loop);
  pid = fork();
  if (pid != 0) {
    waitpid(pid, 0, 0);
    return;
  }
  alarm(20);
  ev_timer_init(&limit, on_limit, 15., 0.);
  ev_timer_start(loop, &limit);
  raise(SIGUSR1);
  ev_run(loop, EVRUN_ONCE);
  kill(getpid(), SIGUSR1);
  while (signals_seen < 2 && ev_is_active(&limit)) ev_run(loop, EVRUN_ONCE);
  ev_child_init(&child, on_child, child_that(exits), 0);
  child.data = "child";
  ev_child_start(loop, &child);
  while (ev_is_active(&child) && ev_is_active(&limit)) ev_run(loop, EVRUN_ONCE);
  ev_loop_destroy(loop);
  _exit(0);
}

static void forks_without_notice(void) {
  static const unsigned flags[] = {EVBACKEND_SELECT, EVBACKEND_POLL, EVBACKEND_EPOLL};
  int i;
  for (i = 0; i < 3; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      inherited_loop(flags[i]);
      _exit(0);
    }
    waitpid(pid, 0, 0);
  }
}

/* As daemons do. Files opened later reuse the closed descriptors. */
static void all_closed(void) {
  Loop* loop = ev_loop_new(0);
  ev_timer timer;
  struct ends ends;
  ev_io io;
  int fd;
  ev_timer_init(&timer, on_timer, .001, 0.);
  timer.data = "timer";
  ev_timer_start(loop, &timer);
  for (fd = 3; fd < 256; ++fd) close(fd);
  ev_loop_fork(loop);
  while (ev_is_active(&timer)) ev_run(loop, EVRUN_ONCE);
  ends = make_pipe();
  ev_io_init(&io, on_io, ends.read, EV_READ);
  io.data = "io";
  ev_io_start(loop, &io);
  put(ends.write, "x");
  ev_run(loop, EVRUN_ONCE);
  ev_loop_destroy(loop);
}

const struct section process_sections[] = {{"signal", signals},
                                           {"from outside", from_outside},
                                           {"masks", masks},
                                           {"blocked before", blocked_before},
                                           {"after the loop", after_the_loop},
                                           {"child", children},
                                           {"many children", many_children},
                                           {"fork", forks},
                                           {"fork without ev_loop_fork", forks_without_notice},
                                           {"all closed", all_closed},
                                           {0, 0}};
