/* ev_io - is this file descriptor readable or writable? */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "walk.h"

static void level_triggered(void) {
  Loop* loop = ev_loop_new(0);
  struct ends ends = make_pair();
  ev_io w;
  char byte;
  ev_io_init(&w, on_io, ends.read, EV_READ);
  w.data = "reader";
  say("set: %s", names(w.events));
  ev_io_start(loop, &w);
  say("started: %s", names(w.events));
  ITERATE(loop);
  put(ends.write, "ab");
  ITERATE(loop);
  ITERATE(loop);
  need(read(ends.read, &byte, 1) == 1, "read");
  ITERATE(loop);
  drain(ends.read);
  ITERATE(loop);
  ev_io_stop(loop, &w);
  ev_io_set(&w, ends.read, EV_READ | EV_WRITE);
  ev_io_start(loop, &w);
  ITERATE(loop);
  put(ends.write, "c");
  ITERATE(loop);
  ev_io_stop(loop, &w);
  ev_io_modify(&w, EV_WRITE);
  say("modified: %s", names(w.events));
  ev_io_start(loop, &w);
  ITERATE(loop);
  ev_io_stop(loop, &w);
  ev_io_modify(&w, EV_READ);
  ev_io_start(loop, &w);
  ITERATE(loop);
  ev_io_stop(loop, &w);
  ITERATE(loop);
  ev_loop_destroy(loop);
}

static void several_watchers(void) {
  static const char* labels[] = {"read 1", "write 1", "both 1", "read 2", "none", "urgent read"};
  static const int events[] = {EV_READ, EV_WRITE, EV_READ | EV_WRITE, EV_READ, EV_NONE, EV_READ};
  Loop* loop = ev_loop_new(0);
  struct ends ends = make_pair();
  ev_io w[6];
  int i;
  for (i = 0; i < 6; ++i) {
    ev_io_init(&w[i], on_io, ends.read, events[i]);
    w[i].data = (void*)labels[i];
  }
  ev_set_priority(&w[5], 1);
  for (i = 0; i < 6; ++i) ev_io_start(loop, &w[i]);
  ITERATE(loop);
  put(ends.write, "x");
  ITERATE(loop);
  ev_io_stop(loop, &w[2]);
  ITERATE(loop);
  ev_io_stop(loop, &w[0]);
  ev_io_stop(loop, &w[5]);
  ev_verify(loop);
  ITERATE(loop);
  ev_io_start(loop, &w[0]);
  ITERATE(loop);
  ev_feed_fd_event(loop, ends.read, EV_READ);
  say("fed: %u", ev_pending_count(loop));
  ev_feed_fd_event(loop, ends.read, EV_READ | EV_WRITE);
  say("fed: %u", ev_pending_count(loop));
  for (i = 0; i < 6; ++i) ev_io_stop(loop, &w[i]);
  ev_invoke_pending(loop);
  ITERATE(loop);
  ev_feed_fd_event(loop, ends.read, EV_READ);
  ev_feed_fd_event(loop, 1000000, EV_READ);
  ev_feed_fd_event(loop, -1, EV_READ);
  say("fed: %u", ev_pending_count(loop));
  ev_loop_destroy(loop);
}

static ev_io stopping[3];
static void stops_others(Loop* loop, ev_io* w, int revents) {
  int i;
  on_io(loop, w, revents);
  for (i = 0; i < 3; ++i) ev_io_stop(loop, &stopping[i]);
}

static void stopped_by_others(void) {
  static const char* labels[] = {"one", "two", "three"};
  Loop* loop = ev_loop_new(0);
  int i;
  for (i = 0; i < 3; ++i) {
    struct ends ends = make_pipe();
    put(ends.write, "x");
    ev_io_init(&stopping[i], stops_others, ends.read, EV_READ);
    stopping[i].data = getenv("WALK_ANY_ORDER") ? "one of three" : (void*)labels[i];
    ev_io_start(loop, &stopping[i]);
  }
  ITERATE(loop);
  ITERATE(loop);
  ev_loop_destroy(loop);
}

static void reused_numbers(void) {
  Loop* loop = ev_loop_new(0);
  struct ends old = make_pair(), fresh;
  ev_io w, second;
  int spare;
  ev_io_init(&w, on_io, old.read, EV_READ);
  ev_io_init(&second, on_io, old.read, EV_READ);
  w.data = "first";
  second.data = "second";
  ev_io_start(loop, &w);
  put(old.write, "x");
  ITERATE(loop);
  /* Stopped and closed, and the descriptor reused for another file: the old file reports
     nothing. */
  ev_io_stop(loop, &w);
  spare = dup(old.read);
  close(old.read);
  fresh = make_pair();
  say("the number again: %d", fresh.read == old.read);
  ev_io_set(&w, fresh.read, EV_READ);
  ev_io_start(loop, &w);
  ITERATE(loop);
  put(fresh.write, "y");
  ITERATE(loop);
  drain(fresh.read);
  ITERATE(loop);
  /* The descriptor refers to the old file again, which still has unread data. */
  ev_io_stop(loop, &w);
  need(dup3(spare, fresh.read, O_CLOEXEC) == fresh.read, "dup3");
  ev_io_set(&second, fresh.read, EV_READ);
  ev_io_start(loop, &second);
  ITERATE(loop);
  ev_io_stop(loop, &second);
  /* Stopped and set again in one iteration, as programs do that reuse their watchers. */
  ev_io_start(loop, &second);
  ev_io_stop(loop, &second);
  ev_io_set(&second, fresh.read, EV_READ);
  ev_io_start(loop, &second);
  ITERATE(loop);
  drain(fresh.read);
  ITERATE(loop);
  ev_loop_destroy(loop);
}

static void many_reuses(void) {
  Loop* loop = ev_loop_new(0);
  int round, events = 0;
  ev_io w;
  struct ends ends;
  for (round = 0; round < 200; ++round) {
    ends = make_pair();
    ev_io_init(&w, on_io, ends.read, EV_READ);
    w.data = "";
    ev_io_start(loop, &w);
    ev_set_cb(&w, on_io);
    if (round % 3 == 0) ev_run(loop, EVRUN_NOWAIT);
    put(ends.write, "z");
    ev_set_cb(&w, on_io);
    if (round % 20 == 0) ITERATE(loop);
    ev_io_stop(loop, &w);
    close(ends.read);
    close(ends.write);
    if (round % 7 == 0) ev_run(loop, EVRUN_NOWAIT);
    events += ev_pending_count(loop) > 0;
  }
  say("left over: %d", events);
  ev_loop_destroy(loop);
}

static void hang_ups(void) {
  Loop* loop = ev_loop_new(0);
  struct ends ends = make_pipe(), pair = make_pair(), broken = make_pipe();
  ev_io reader, writer, no_reader;
  ev_io_init(&reader, on_io, ends.read, EV_READ);
  ev_io_init(&writer, on_io, pair.read, EV_WRITE);
  ev_io_init(&no_reader, on_io, broken.write, EV_WRITE);
  reader.data = "end of file";
  writer.data = "peer is closed";
  no_reader.data = "no reader";
  ev_io_start(loop, &reader);
  ITERATE(loop);
  close(ends.write);
  ITERATE(loop);
  ITERATE(loop);
  ev_io_stop(loop, &reader);
  close(pair.write);
  ev_io_start(loop, &writer);
  ITERATE(loop);
  ev_io_stop(loop, &writer);
  ev_io_modify(&writer, EV_READ | EV_WRITE);
  ev_io_start(loop, &writer);
  ITERATE(loop);
  ev_io_stop(loop, &writer);
  close(broken.read);
  ev_io_start(loop, &no_reader);
  ITERATE(loop);
  ev_loop_destroy(loop);
}

/* An earlier registration must not make the loop spin. */
static void interest_taken_away(void) {
  Loop* loop = ev_loop_new(0);
  struct ends ends = make_pipe(), broken = make_pipe();
  ev_io reader, writer;
  ev_timer timer;
  unsigned before;
  put(ends.write, "x");
  close(broken.read);
  ev_io_init(&reader, on_io, ends.read, EV_READ);
  ev_io_init(&writer, on_io, broken.write, EV_WRITE);
  reader.data = "reader";
  writer.data = "no reader";
  ev_io_start(loop, &reader);
  ITERATE(loop);
  ev_io_stop(loop, &reader);
  ev_io_start(loop, &writer);
  ITERATE(loop);
  ev_io_stop(loop, &writer);
  ev_io_modify(&reader, EV_NONE);
  ev_io_modify(&writer, EV_NONE);
  ev_io_start(loop, &reader);
  ev_io_start(loop, &writer);
  ev_timer_init(&timer, on_timer, .03, 0.);
  timer.data = "timer";
  ev_timer_start(loop, &timer);
  before = ev_iteration(loop);
  while (ev_is_active(&timer)) ev_run(loop, EVRUN_ONCE);
  say("iterations: %s", ev_iteration(loop) - before < 10 ? "few" : "many");
  ev_loop_destroy(loop);
}

static void regular_files(void) {
  Loop* loop = ev_loop_new(0);
  char name[] = "/tmp/tambour-walk-XXXXXX";
  const int fd = mkstemp(name);
  ev_io w;
  int i;
  need(fd >= 0, "mkstemp");
  unlink(name);
  ev_io_init(&w, on_io, fd, EV_READ);
  w.data = "file";
  ev_io_start(loop, &w);
  for (i = 0; i < 3; ++i) ITERATE(loop);
  /* The loop does not wait if a descriptor is ready. */
  for (i = 0; i < 3; ++i) say("  run: %d", ev_run(loop, EVRUN_ONCE));
  ev_io_stop(loop, &w);
  ITERATE(loop);
  ev_io_set(&w, fd, EV_READ | EV_WRITE);
  ev_io_start(loop, &w);
  ITERATE(loop);
  ev_io_stop(loop, &w);
  ev_loop_destroy(loop);
}

static void full_pipe(void) {
  Loop* loop = ev_loop_new(0);
  struct ends ends = make_pipe();
  char block[4096];
  ev_io w;
  memset(block, 'x', sizeof block);
  ev_io_init(&w, on_io, ends.write, EV_WRITE);
  w.data = "writer";
  ev_io_start(loop, &w);
  ITERATE(loop);
  while (write(ends.write, block, sizeof block) > 0) continue;
  ITERATE(loop);
  drain(ends.read);
  ITERATE(loop);
  ev_loop_destroy(loop);
}

static void order_of_descriptors(void) {
  static const char* labels[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  Loop* loop = ev_loop_new(0);
  struct ends ends[10];
  ev_io w[10];
  int i;
  for (i = 0; i < 10; ++i) {
    ends[i] = make_pipe();
    ev_io_init(&w[i], on_io, ends[i].read, EV_READ);
    w[i].data = (void*)labels[i];
    ev_set_priority(&w[i], i == 4 ? 2 : i == 7 ? -1 : 0);
    ev_io_start(loop, &w[i]);
  }
  ITERATE(loop);
  for (i = 0; i < 10; ++i) put(ends[i * 7 % 10].write, "x");
  /* The order of the kernel: by event or by descriptor. */
  ITERATE(loop);
  ITERATE(loop);
  ev_loop_destroy(loop);
}

static void on_once(int revents, void* arg) { say("    %s: %s", (const char*)arg, names(revents)); }

static void once(void) {
  Loop* loop = ev_loop_new(0);
  struct ends ends = make_pipe(), silent = make_pipe();
  ev_once(loop, ends.read, EV_READ, 10., on_once, "readable");
  ev_once(loop, silent.write, EV_WRITE, -1., on_once, "writable");
  put(ends.write, "x");
  say("run: %d", ev_run(loop, 0));
  ev_once(loop, -1, 0, .005, on_once, "timeout");
  ev_once(loop, silent.read, EV_READ, .02, on_once, "neither");
  say("run: %d", ev_run(loop, 0));
  ev_once(loop, ends.read, EV_READ, 0., on_once, "both at once");
  ev_sleep(.002);
  say("run: %d", ev_run(loop, 0));
  ev_loop_destroy(loop);
}

const struct section io_sections[] = {{"level triggered", level_triggered},
                                      {"several watchers", several_watchers},
                                      {"stopped by others", stopped_by_others},
                                      {"reused numbers", reused_numbers},
                                      {"many reuses", many_reuses},
                                      {"hang-ups", hang_ups},
                                      {"interest taken away", interest_taken_away},
                                      {"regular files", regular_files},
                                      {"full pipe", full_pipe},
                                      {"order of descriptors", order_of_descriptors},
                                      {"once", once},
                                      {0, 0}};
