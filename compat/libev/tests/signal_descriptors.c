/* A child of fork(2) that closes all descriptors from 3 on, as daemons do, and calls
   ev_loop_fork() gets all of the loop's descriptors again.

   After a loop with signal watchers is destroyed, the program closes all descriptors from 3 on,
   as daemons do, and opens sockets. Neither a signal of the next loop nor ev_loop_fork() may use
   these sockets. Exits with 0, or with the number of the failed step. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ev.h>

enum { socket_count = 20, first_descriptor = 3, last_descriptor = 64 };

static int sockets[socket_count];
static int signals;

static void on_signal(struct ev_loop* loop, ev_signal* watcher, int events) {
  (void)watcher, (void)events;
  ++signals;
  ev_break(loop, EVBREAK_ALL);
}

static void open_sockets(void) {
  for (int i = 0; i < socket_count; i += 2) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets + i)) abort();
  }
}

static int sockets_are_untouched(void) {
  for (int i = 0; i < socket_count; ++i) {
    char bytes[16];
    struct stat status;
    if (fstat(sockets[i], &status) || !S_ISSOCK(status.st_mode)) return 0;
    if (read(sockets[i], bytes, sizeof bytes) >= 0) return 0;
  }
  return 1;
}

static void close_all(void) {
  for (int fd = first_descriptor; fd < last_descriptor; ++fd) close(fd);
}

static int count_eventfds(void) {
  int count = 0;
  for (int fd = first_descriptor; fd < last_descriptor; ++fd) {
    char path[64], target[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0) continue;
    target[length] = 0;
    if (strstr(target, "eventfd") != NULL) ++count;
  }
  return count;
}

static void receive_one(struct ev_loop* loop) {
  const int before = signals;
  raise(SIGUSR1);
  while (signals == before) ev_run(loop, 0);
}

int main(void) {
  ev_signal watcher;
  ev_signal_init(&watcher, on_signal, SIGUSR1);

  struct ev_loop* loop = ev_loop_new(EVFLAG_AUTO);
  ev_signal_start(loop, &watcher);
  receive_one(loop);
  ev_signal_stop(loop, &watcher);
  ev_loop_destroy(loop);

  close_all();
  open_sockets();
  loop = ev_loop_new(EVFLAG_AUTO);
  ev_signal_start(loop, &watcher);
  receive_one(loop);
  if (!sockets_are_untouched()) return 1;

  const pid_t child = fork();
  if (child < 0) abort();
  if (child == 0) {
    ev_loop_fork(loop);
    receive_one(loop);
    _exit(sockets_are_untouched() ? 0 : 2);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 3;
  if (WEXITSTATUS(status) != 0) return WEXITSTATUS(status);

  const int eventfds = count_eventfds();
  const pid_t daemon = fork();
  if (daemon < 0) abort();
  if (daemon == 0) {
    close_all();
    ev_loop_fork(loop);
    ev_run(loop, EVRUN_NOWAIT);
    if (count_eventfds() != eventfds) _exit(5);
    open_sockets();
    receive_one(loop);
    _exit(sockets_are_untouched() ? 0 : 6);
  }
  if (waitpid(daemon, &status, 0) != daemon || !WIFEXITED(status)) return 7;
  if (WEXITSTATUS(status) != 0) return WEXITSTATUS(status);
  receive_one(loop);
  ev_signal_stop(loop, &watcher);
  ev_loop_destroy(loop);
  return sockets_are_untouched() ? 0 : 4;
}
