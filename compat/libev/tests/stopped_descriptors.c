/* If a watcher is stopped while the loop is not run and its descriptor is closed, the peer sees the
   end of file at once, on every backend. Exits with 0, or with the number of the failed step. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ev.h>

static int calls;

static void on_io(struct ev_loop* loop, ev_io* watcher, int events) {
  (void)events;
  ++calls;
  ev_io_stop(loop, watcher);
}

static int sees_end(int fd) {
  char byte;
  return read(fd, &byte, 1) == 0;
}

static int check(struct ev_loop* loop) {
  int ends[2];
  ev_io io;

  /* Stopped outside ev_run(). */
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends)) abort();
  ev_io_init(&io, on_io, ends[0], EV_READ);
  ev_io_start(loop, &io);
  ev_run(loop, EVRUN_NOWAIT);
  ev_io_stop(loop, &io);
  close(ends[0]);
  if (!sees_end(ends[1])) return 1;
  close(ends[1]);

  /* Stopped by a callback, closed when ev_run() has returned. */
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends)) abort();
  ev_io other;
  ev_io_init(&other, on_io, ends[0], EV_WRITE);
  ev_io_init(&io, on_io, ends[0], EV_READ);
  ev_io_start(loop, &io);
  ev_io_start(loop, &other);
  if (write(ends[1], "x", 1) != 1) abort();
  calls = 0;
  ev_run(loop, EVRUN_NOWAIT);
  if (calls != 2) return 2;
  char byte;
  if (read(ends[0], &byte, 1) != 1) return 3;
  close(ends[0]);
  if (!sees_end(ends[1])) return 4;
  close(ends[1]);

  /* Stopped outside ev_run(), set and started again. */
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends)) abort();
  ev_io_init(&io, on_io, ends[0], EV_READ);
  ev_io_start(loop, &io);
  ev_run(loop, EVRUN_NOWAIT);
  ev_io_stop(loop, &io);
  ev_io_set(&io, ends[0], EV_WRITE);
  ev_io_start(loop, &io);
  calls = 0;
  ev_run(loop, EVRUN_NOWAIT);
  if (calls != 1) return 5;
  close(ends[0]);
  close(ends[1]);
  return 0;
}

int main(void) {
  static const unsigned backends[] = {EVBACKEND_SELECT, EVBACKEND_POLL, EVBACKEND_EPOLL,
                                      EVBACKEND_IOURING};
  for (int i = 0; i < 4; ++i) {
    struct ev_loop* loop = ev_loop_new(backends[i] | EVFLAG_NOENV);
    if (loop == NULL) continue;
    const int step = check(loop);
    if (step != 0) return 10 * (i + 1) + step;
    ev_loop_destroy(loop);
  }
  return 0;
}
