/* ev_stat, ev_embed, ev_async; threads */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "walk.h"

static char folder[64];

static void file(const char* name, char* path) { sprintf(path, "%s/%s", folder, name); }

static void write_file(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  need(fd >= 0, "open");
  put(fd, text);
  close(fd);
}

static void changed(Loop* loop, ev_stat* w, int revents) {
  (void)loop;
  say("    %s: %s, links %d to %d, size %d to %d", (const char*)w->data, names(revents),
      (int)w->prev.st_nlink, (int)w->attr.st_nlink, w->prev.st_nlink ? (int)w->prev.st_size : -1,
      w->attr.st_nlink ? (int)w->attr.st_size : -1);
}

static void give_up(Loop* loop, ev_timer* w, int revents) {
  (void)revents;
  say("    nothing came");
  (void)w;
  ev_break(loop, EVBREAK_ONE);
}

static void stats_with(unsigned flags) {
  Loop* loop = ev_loop_new(flags);
  char there[128], missing[128], other[128];
  ev_stat present, absent, same;
  ev_timer limit;
  strcpy(folder, "/tmp/tambour-walk-XXXXXX");
  need(mkdtemp(folder) != 0, "mkdtemp");
  file("there", there);
  file("missing", missing);
  file("other", other);
  write_file(there, "one");
  ev_timer_init(&limit, give_up, 50., 0.);
  ev_timer_start(loop, &limit);
  ev_stat_init(&present, changed, there, .11);
  ev_stat_init(&same, changed, there, 0.);
  ev_stat_init(&absent, changed, missing, .01);
  present.data = "present";
  same.data = "same";
  absent.data = "absent";
  ev_stat_start(loop, &present);
  ev_stat_start(loop, &absent);
  say("  links %d %d, size %d, interval %d", (int)present.attr.st_nlink, (int)absent.attr.st_nlink,
      (int)present.attr.st_size, absent.interval > .1 && absent.interval < .11);
  ITERATE(loop);
  say("  grows");
  write_file(there, "two");
  ev_run(loop, EVRUN_ONCE);
  while (present.attr.st_size != 6) ev_run(loop, EVRUN_ONCE);
  say("  appears");
  write_file(missing, "three");
  while (absent.attr.st_size != 5 || !absent.attr.st_nlink) ev_run(loop, EVRUN_ONCE);
  say("  is renamed");
  rename(there, other);
  while (present.attr.st_nlink) ev_run(loop, EVRUN_ONCE);
  say("  another takes its place");
  rename(missing, there);
  while (!present.attr.st_nlink || absent.attr.st_nlink) ev_run(loop, EVRUN_ONCE);
  ev_stat_stop(loop, &present);
  write_file(there, "four");
  ev_stat_stat(loop, &present);
  say("  looked at: %d", (int)present.attr.st_size);
  ev_stat_stop(loop, &absent);
  ev_timer_stop(loop, &limit);
  say("  nothing left: %d", ev_run(loop, 0));
  unlink(there);
  unlink(other);
  rmdir(folder);
  (void)same;
  ev_loop_destroy(loop);
}

/* Checked periodically in addition to inotify, because other machines may change the file. */
static void stat_not_local(unsigned flags) {
  static const ev_tstamp intervals[] = {0., 2.};
  int i;
  for (i = 0; i < 2; ++i) {
    Loop* loop = ev_loop_new(flags);
    ev_stat w;
    ev_stat_init(&w, changed, "/proc/version", intervals[i]);
    ev_stat_start(loop, &w);
    say("  looked at every %.7f s", w.timer.repeat);
    ev_stat_stop(loop, &w);
    ev_loop_destroy(loop);
  }
}

static void stats(void) {
  say("with inotify");
  stats_with(0);
  say("without");
  stats_with(EVFLAG_NOINOTIFY);
  say("not local");
  stat_not_local(0);
  stat_not_local(EVFLAG_NOINOTIFY);
}

static ev_embed embed;
static void sweep(Loop* loop, ev_embed* w, int revents) {
  on_embed(loop, w, revents);
  ev_embed_sweep(loop, w);
}

static void embedding(int with_callback) {
  Loop *outer = ev_loop_new(0), *inner = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
  struct ends ends = make_pipe(), more = make_pipe();
  ev_io io, started_late;
  say(with_callback ? "with a callback" : "without one");
  ev_io_init(&io, on_io, ends.read, EV_READ);
  ev_io_init(&started_late, on_io, more.read, EV_READ);
  io.data = "inner io";
  started_late.data = "inner io, started late";
  ev_io_start(inner, &io);
  ev_embed_init(&embed, 0, inner);
  if (with_callback) ev_set_cb(&embed, sweep);
  embed.data = "embed";
  ev_set_priority(&embed, 1);
  ev_embed_start(outer, &embed);
  say("  active %d", !!ev_is_active(&embed));
  ITERATE(outer);
  put(ends.write, "x");
  ITERATE(outer);
  ev_run(outer, EVRUN_ONCE);
  drain(ends.read);
  ITERATE(outer);
  put(more.write, "x");
  ev_io_start(inner, &started_late);
  ev_run(outer, EVRUN_ONCE);
  drain(more.read);
  put(ends.write, "x");
  ev_embed_stop(outer, &embed);
  ITERATE(outer);
  say("  by hand");
  ev_embed_sweep(outer, &embed);
  ev_loop_destroy(outer);
  ev_loop_destroy(inner);
}

static void embeds(void) {
  embedding(1);
  embedding(0);
}

/* Freed memory is filled with a pattern and kept, to detect later writes to it. */
static struct {
  unsigned char* memory;
  size_t size;
} freed[256];
static size_t freed_count;

static void* keeping_allocator(void* memory, long size) EV_NOEXCEPT {
  if (size) return realloc(memory, (size_t)size);
  if (!memory || freed_count == sizeof freed / sizeof *freed) return 0;
  freed[freed_count].memory = memory;
  freed[freed_count].size = malloc_usable_size(memory);
  memset(memory, 0xdd, freed[freed_count++].size);
  return 0;
}

static int touched_since(void) {
  size_t i, k;
  for (i = 0; i < freed_count; ++i) {
    for (k = 0; k < freed[i].size; ++k) {
      if (freed[i].memory[k] != 0xdd) return 1;
    }
  }
  return 0;
}

static void inner_goes_first(void) {
  Loop *outer, *inner;
  ev_set_allocator(keeping_allocator);
  outer = ev_loop_new(0);
  inner = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
  ev_embed_init(&embed, 0, inner);
  ev_embed_start(outer, &embed);
  ITERATE(outer);
  ev_loop_destroy(inner);
  ev_embed_stop(outer, &embed);
  say("  nothing left: %d", ev_run(outer, 0));
  say("  freed memory was touched: %d", touched_since());
  ev_loop_destroy(outer);
}

static Loop* woken;
static ev_async asyncs[3];
static void handler(int number) {
  (void)number;
  ev_async_send(woken, &asyncs[0]);
}

static void* sender(void* unused) {
  int i;
  (void)unused;
  for (i = 0; i < 100; ++i) ev_async_send(woken, &asyncs[1]);
  return 0;
}

static void async(void) {
  static const char* labels[] = {"async 1", "async 2", "urgent"};
  pthread_t thread;
  int i;
  woken = ev_loop_new(0);
  for (i = 0; i < 3; ++i) {
    ev_async_init(&asyncs[i], on_async);
    asyncs[i].data = (void*)labels[i];
    ev_set_priority(&asyncs[i], i == 2 ? 2 : 0);
    ev_async_start(woken, &asyncs[i]);
  }
  say("pending %d", (int)ev_async_pending(&asyncs[0]));
  for (i = 0; i < 3; ++i) ev_async_send(woken, &asyncs[i]);
  ev_async_send(woken, &asyncs[0]);
  say("pending %d", (int)ev_async_pending(&asyncs[0]));
  say("run: %d", !!ev_run(woken, EVRUN_ONCE));
  say("pending %d", (int)ev_async_pending(&asyncs[0]));
  ITERATE(woken);
  signal(SIGUSR1, handler);
  raise(SIGUSR1);
  ev_run(woken, EVRUN_ONCE);
  need(pthread_create(&thread, 0, sender, 0) == 0, "pthread_create");
  pthread_join(thread, 0);
  ev_run(woken, EVRUN_ONCE);
  ITERATE(woken);
  ev_async_send(woken, &asyncs[0]);
  ev_async_stop(woken, &asyncs[0]);
  ITERATE(woken);
  ev_async_start(woken, &asyncs[0]);
  say("what was sent before the start is forgotten: %d", (int)ev_async_pending(&asyncs[0]));
  ITERATE(woken);
  for (i = 0; i < 3; ++i) ev_async_stop(woken, &asyncs[i]);
  say("nothing left: %d", ev_run(woken, 0));
  ev_loop_destroy(woken);
}

/* THREADS AND COROUTINES: the manual's example, with one lock. */
static struct {
  pthread_mutex_t lock;
  pthread_cond_t invoked;
  Loop* loop;
  ev_async wake;
  int calls;
} shared = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, {0}, 0};

static void release(Loop* loop) EV_NOEXCEPT {
  (void)loop;
  pthread_mutex_unlock(&shared.lock);
}
static void acquire(Loop* loop) EV_NOEXCEPT {
  (void)loop;
  pthread_mutex_lock(&shared.lock);
}
static void invoke(Loop* loop) {
  while (ev_pending_count(loop)) {
    ev_invoke_pending(loop);
    pthread_cond_broadcast(&shared.invoked);
  }
}
static void nothing(Loop* loop, ev_async* w, int revents) { (void)loop, (void)w, (void)revents; }
static void* loop_thread(void* unused) {
  (void)unused;
  acquire(shared.loop);
  ev_run(shared.loop, 0);
  release(shared.loop);
  return 0;
}
static void counted(Loop* loop, ev_io* w, int revents) {
  (void)revents;
  drain(w->fd);
  ev_io_stop(loop, w);
  ++shared.calls;
}
static void stop_all(Loop* loop, ev_timer* w, int revents) {
  (void)w, (void)revents;
  ev_break(loop, EVBREAK_ALL);
}

static void threads(void) {
  pthread_t thread;
  ev_io w[20];
  ev_timer last;
  int i;
  shared.loop = ev_loop_new(0);
  ev_async_init(&shared.wake, nothing);
  ev_async_start(shared.loop, &shared.wake);
  ev_set_invoke_pending_cb(shared.loop, invoke);
  ev_set_loop_release_cb(shared.loop, release, acquire);
  need(pthread_create(&thread, 0, loop_thread, 0) == 0, "pthread_create");
  for (i = 0; i < 20; ++i) {
    struct ends ends = make_pipe();
    put(ends.write, "x");
    pthread_mutex_lock(&shared.lock);
    ev_io_init(&w[i], counted, ends.read, EV_READ);
    ev_io_start(shared.loop, &w[i]);
    ev_async_send(shared.loop, &shared.wake);
    while (shared.calls <= i) pthread_cond_wait(&shared.invoked, &shared.lock);
    pthread_mutex_unlock(&shared.lock);
  }
  pthread_mutex_lock(&shared.lock);
  ev_timer_init(&last, stop_all, 0., 0.);
  ev_timer_start(shared.loop, &last);
  ev_async_send(shared.loop, &shared.wake);
  pthread_mutex_unlock(&shared.lock);
  pthread_join(thread, 0);
  say("calls %d", shared.calls);
  ev_loop_destroy(shared.loop);
}

const struct section other_sections[] = {
    {"stat", stats},  {"embed", embeds},    {"inner goes first", inner_goes_first},
    {"async", async}, {"threads", threads}, {0, 0}};
