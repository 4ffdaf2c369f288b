/* Bufferevents of sockets. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "walk_bufferevent.h"

const char* what_names(int what) {
  static const struct {
    int bit;
    const char* name;
  } known[] = {{BEV_EVENT_READING, "READING"}, {BEV_EVENT_WRITING, "WRITING"},
               {BEV_EVENT_EOF, "EOF"},         {BEV_EVENT_ERROR, "ERROR"},
               {BEV_EVENT_TIMEOUT, "TIMEOUT"}, {BEV_EVENT_CONNECTED, "CONNECTED"}};
  static char text[128];
  size_t i;
  text[0] = '\0';
  for (i = 0; i < sizeof known / sizeof *known; ++i) {
    if (!(what & known[i].bit)) continue;
    what &= ~known[i].bit;
    strcat(text, text[0] ? "|" : "");
    strcat(text, known[i].name);
  }
  if (what) sprintf(text + strlen(text), "|%x", (unsigned)what);
  return text;
}

static void free_peer(struct peer* peer) {
  say("    %s: freed", peer->name);
  bufferevent_free(peer->bev);
  peer->bev = NULL;
}

void on_read(struct bufferevent* bev, void* argument) {
  struct peer* peer = argument;
  show(peer->name, bufferevent_get_input(bev));
  if (peer->drain_at && evbuffer_get_length(bufferevent_get_input(bev)) >= peer->drain_at)
    evbuffer_drain(bufferevent_get_input(bev), peer->drain_at - 1);
  if (peer->free_read) free_peer(peer);
}

void on_write(struct bufferevent* bev, void* argument) {
  struct peer* peer = argument;
  say("  %s: written, %zu left", peer->name, evbuffer_get_length(bufferevent_get_output(bev)));
  if (peer->free_write) free_peer(peer);
}

void on_event(struct bufferevent* bev, short what, void* argument) {
  struct peer* peer = argument;
  int error = errno;
  say("  %s: %s, enabled %x", peer->name, what_names(what), (unsigned)bufferevent_get_enabled(bev));
  if (what & BEV_EVENT_ERROR) say("    error %d", error);
  if (what & peer->free_in) free_peer(peer);
}

void make_peer(struct peer* peer, const char* name, struct event_base* base, int options) {
  int fds[2];
  need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0, "socketpair");
  memset(peer, 0, sizeof *peer);
  peer->name = name;
  peer->other = fds[1];
  peer->bev = bufferevent_socket_new(base, fds[0], options);
  need(peer->bev != NULL, "bufferevent_socket_new");
  bufferevent_setcb(peer->bev, on_read, on_write, on_event, peer);
}

void turn(struct event_base* base) {
  int i;
  for (i = 0; i < 6; ++i) event_base_loop(base, EVLOOP_NONBLOCK);
}

void get(int fd) {
  char bytes[200];
  ssize_t n = read(fd, bytes, sizeof bytes);
  say("  received: %.*s%s", n > 0 ? (int)n : 0, bytes, n == 0 ? "(end)" : n < 0 ? "(none)" : "");
}

static void transfer(void) {
  struct event_base* base = event_base_new();
  struct peer p;
  char into[16];
  make_peer(&p, "p", base, BEV_OPT_CLOSE_ON_FREE);
  SAY(bufferevent_get_enabled(p.bev));
  SAY(bufferevent_get_base(p.bev) == base);
  SAY(bufferevent_get_underlying(p.bev) == NULL);
  SAY(bufferevent_pair_get_partner(p.bev) == NULL);
  put(p.other, "early");
  turn(base);
  SAY(bufferevent_enable(p.bev, EV_READ));
  turn(base);
  put(p.other, " more");
  turn(base);
  SAY(bufferevent_read(p.bev, into, 3));
  SAY(evbuffer_add(bufferevent_get_input(p.bev), "x", 1));
  SAY(evbuffer_drain(bufferevent_get_input(p.bev), 1));
  SAY(bufferevent_write(p.bev, "written", 7));
  SAY(evbuffer_drain(bufferevent_get_output(p.bev), 1));
  get(p.other);
  turn(base);
  get(p.other);
  SAY(bufferevent_disable(p.bev, EV_WRITE | EV_READ));
  SAY(bufferevent_write(p.bev, "held back", 9));
  put(p.other, "unread");
  turn(base);
  get(p.other);
  SAY(bufferevent_enable(p.bev, EV_WRITE));
  turn(base);
  get(p.other);
  SAY(bufferevent_enable(p.bev, EV_READ));
  turn(base);
  {
    struct evbuffer* b = make("from a buffer");
    SAY(bufferevent_write_buffer(p.bev, b));
    show("b", b);
    SAY(bufferevent_read_buffer(p.bev, b));
    show("b", b);
    evbuffer_free(b);
  }
  turn(base);
  get(p.other);
  SAY(bufferevent_flush(p.bev, EV_READ | EV_WRITE, BEV_FINISHED));
  bufferevent_free(p.bev);
  turn(base);
  get(p.other);
  event_base_free(base);
}

static void ends(void) {
  static const int options[] = {0, BEV_OPT_DEFER_CALLBACKS,
                                BEV_OPT_DEFER_CALLBACKS | BEV_OPT_UNLOCK_CALLBACKS};
  size_t i;
  for (i = 0; i < 3; ++i) {
    struct event_base* base = event_base_new();
    struct peer p;
    say("  options %x", (unsigned)options[i]);
    /* The other end shuts down one direction, then closes. */
    make_peer(&p, "half-closed", base, options[i] | BEV_OPT_CLOSE_ON_FREE);
    bufferevent_enable(p.bev, EV_READ);
    put(p.other, "last words");
    shutdown(p.other, SHUT_WR);
    turn(base);
    bufferevent_write(p.bev, "answer", 6);
    turn(base);
    get(p.other);
    SAY(bufferevent_enable(p.bev, EV_READ));
    turn(base);
    close(p.other);
    bufferevent_free(p.bev);
    turn(base);
    /* Freed in each callback. */
    make_peer(&p, "freed in read", base, options[i] | BEV_OPT_CLOSE_ON_FREE);
    p.free_read = 1;
    bufferevent_enable(p.bev, EV_READ);
    bufferevent_write(p.bev, "x", 1);
    put(p.other, "data");
    turn(base);
    get(p.other);
    get(p.other);
    close(p.other);
    make_peer(&p, "freed in write", base, options[i] | BEV_OPT_CLOSE_ON_FREE);
    p.free_write = 1;
    bufferevent_enable(p.bev, EV_READ);
    bufferevent_write(p.bev, "x", 1);
    turn(base);
    get(p.other);
    get(p.other);
    close(p.other);
    make_peer(&p, "freed at the end", base, options[i] | BEV_OPT_CLOSE_ON_FREE);
    p.free_in = BEV_EVENT_EOF;
    bufferevent_enable(p.bev, EV_READ);
    put(p.other, "data");
    close(p.other);
    turn(base);
    make_peer(&p, "freed before its callbacks", base, options[i] | BEV_OPT_CLOSE_ON_FREE);
    bufferevent_enable(p.bev, EV_READ);
    put(p.other, "data");
    event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    bufferevent_free(p.bev);
    turn(base);
    get(p.other);
    close(p.other);
    event_base_free(base);
  }
}

static void failures(void) {
  struct event_base* base = event_base_new();
  struct peer p;
  int fds[2];
  SAY(bufferevent_socket_new(base, -1, BEV_OPT_UNLOCK_CALLBACKS) == NULL);
  make_peer(&p, "bad descriptor", base, 0);
  close(p.other);
  bufferevent_free(p.bev);
  turn(base);
  /* A descriptor that can only be written to. */
  need(pipe(fds) == 0, "pipe");
  p.bev = bufferevent_socket_new(base, fds[1], BEV_OPT_CLOSE_ON_FREE);
  p.name = "pipe";
  bufferevent_setcb(p.bev, on_read, on_write, on_event, &p);
  bufferevent_write(p.bev, "into the pipe", 13);
  turn(base);
  get(fds[0]);
  bufferevent_free(p.bev);
  turn(base);
  get(fds[0]);
  event_base_free(base);
}

static void watermarks(void) {
  struct event_base* base = event_base_new();
  struct peer p;
  size_t low = 9, high = 9;
  make_peer(&p, "p", base, BEV_OPT_CLOSE_ON_FREE);
  p.drain_at = 8;
  bufferevent_enable(p.bev, EV_READ);
  bufferevent_setwatermark(p.bev, EV_READ, 4, 8);
  SAY(bufferevent_getwatermark(p.bev, EV_READ, &low, &high));
  say("  %zu %zu", low, high);
  SAY(bufferevent_getwatermark(p.bev, EV_WRITE, &low, &high));
  say("  %zu %zu", low, high);
  SAY(bufferevent_getwatermark(p.bev, EV_READ, NULL, NULL));
  SAY(bufferevent_getwatermark(p.bev, EV_READ | EV_WRITE, &low, &high));
  put(p.other, "abc");
  turn(base);
  show("input", bufferevent_get_input(p.bev));
  put(p.other, "d");
  event_base_loop(base, EVLOOP_NONBLOCK);
  put(p.other, "efghijklmnopqrstuvwxyz");
  event_base_loop(base, EVLOOP_NONBLOCK);
  event_base_loop(base, EVLOOP_NONBLOCK);
  show("input", bufferevent_get_input(p.bev));
  evbuffer_drain(bufferevent_get_input(p.bev), 6);
  event_base_loop(base, EVLOOP_NONBLOCK);
  show("input", bufferevent_get_input(p.bev));
  bufferevent_setwatermark(p.bev, EV_READ, 0, 0);
  turn(base);
  bufferevent_setwatermark(p.bev, EV_READ, 0, 5);
  put(p.other, "not read");
  bufferevent_setcb(p.bev, NULL, on_write, on_event, &p);
  turn(base);
  show("input", bufferevent_get_input(p.bev));
  evbuffer_drain(bufferevent_get_input(p.bev), 100);
  turn(base);
  show("input", bufferevent_get_input(p.bev));
  bufferevent_setwatermark(p.bev, EV_WRITE, 5, 0);
  bufferevent_disable(p.bev, EV_WRITE);
  bufferevent_write(p.bev, "123456", 6);
  SAY((bufferevent_trigger(p.bev, EV_WRITE, 0), 0));
  SAY((bufferevent_trigger(p.bev, EV_WRITE, BEV_TRIG_IGNORE_WATERMARKS), 0));
  bufferevent_enable(p.bev, EV_WRITE);
  turn(base);
  bufferevent_free(p.bev);
  turn(base);
  event_base_free(base);
}

static void triggers(void) {
  struct event_base* base = event_base_new();
  struct peer p;
  bufferevent_data_cb read_callback = NULL, write_callback = NULL;
  bufferevent_event_cb event_callback = NULL;
  void* argument = NULL;
  make_peer(&p, "p", base, BEV_OPT_CLOSE_ON_FREE);
  bufferevent_getcb(p.bev, &read_callback, &write_callback, &event_callback, &argument);
  SAY(read_callback == on_read && write_callback == on_write && event_callback == on_event);
  SAY(argument == &p);
  bufferevent_getcb(p.bev, NULL, NULL, NULL, NULL);
  bufferevent_trigger(p.bev, EV_READ | EV_WRITE, 0);
  say("  deferred");
  bufferevent_trigger(p.bev, EV_READ | EV_WRITE, BEV_TRIG_DEFER_CALLBACKS);
  bufferevent_trigger_event(p.bev, BEV_EVENT_EOF, BEV_TRIG_DEFER_CALLBACKS);
  bufferevent_trigger_event(p.bev, BEV_EVENT_TIMEOUT, 0);
  bufferevent_trigger_event(p.bev, BEV_EVENT_CONNECTED | BEV_EVENT_READING,
                            BEV_TRIG_DEFER_CALLBACKS);
  turn(base);
  bufferevent_setcb(p.bev, NULL, NULL, NULL, NULL);
  bufferevent_trigger(p.bev, EV_READ | EV_WRITE, 0);
  bufferevent_trigger_event(p.bev, BEV_EVENT_EOF, 0);
  bufferevent_setcb(p.bev, on_read, on_write, on_event, &p);
  say("  freed");
  bufferevent_trigger(p.bev, EV_READ | EV_WRITE, BEV_TRIG_DEFER_CALLBACKS);
  bufferevent_incref(p.bev);
  bufferevent_free(p.bev);
  turn(base);
  SAY(bufferevent_decref(p.bev));
  turn(base);
  get(p.other);
  event_base_free(base);
}

static void timeouts(void) {
  struct event_base* base = event_base_new();
  struct timeval shortly = {0, 20000}, bound = {0, 200000};
  struct peer p;
  static char bytes[1 << 20];
  make_peer(&p, "reading", base, BEV_OPT_CLOSE_ON_FREE);
  SAY(bufferevent_set_timeouts(p.bev, &shortly, &shortly));
  bufferevent_enable(p.bev, EV_READ);
  event_base_loopexit(base, &bound);
  event_base_dispatch(base);
  SAY(bufferevent_set_timeouts(p.bev, NULL, NULL));
  bufferevent_enable(p.bev, EV_READ);
  event_base_loopexit(base, &shortly);
  event_base_dispatch(base);
  bufferevent_settimeout(p.bev, 0, 0);
  bufferevent_free(p.bev);
  /* The other end does not read. */
  make_peer(&p, "writing", base, BEV_OPT_CLOSE_ON_FREE);
  bufferevent_setcb(p.bev, NULL, NULL, on_event, &p);
  SAY(bufferevent_set_timeouts(p.bev, NULL, &shortly));
  SAY(bufferevent_write(p.bev, bytes, sizeof bytes));
  event_base_loopexit(base, &bound);
  event_base_dispatch(base);
  p.free_in = BEV_EVENT_TIMEOUT;
  bufferevent_enable(p.bev, EV_WRITE);
  event_base_loopexit(base, &bound);
  event_base_dispatch(base);
  event_base_free(base);
}

static int listen_on(struct sockaddr_in* address) {
  socklen_t size = sizeof *address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  memset(address, 0, sizeof *address);
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  need(bind(fd, (struct sockaddr*)address, sizeof *address) == 0, "bind");
  need(listen(fd, 5) == 0, "listen");
  need(getsockname(fd, (struct sockaddr*)address, &size) == 0, "getsockname");
  return fd;
}

static void run_until_quiet(struct event_base* base) {
  struct timeval bound = {0, 100000};
  event_base_loopexit(base, &bound);
  event_base_dispatch(base);
  turn(base); /* On a busy machine, the loop may have run only one iteration. */
}

static void connections(void) {
  static const int options[] = {0, BEV_OPT_DEFER_CALLBACKS};
  size_t i;
  for (i = 0; i < 2; ++i) {
    struct event_base* base = event_base_new();
    struct sockaddr_in address;
    struct sockaddr_un local;
    struct peer p;
    int listener = listen_on(&address), accepted;
    memset(&p, 0, sizeof p);
    p.name = "client";
    p.bev = bufferevent_socket_new(base, -1, options[i] | BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(p.bev, on_read, on_write, on_event, &p);
    SAY(bufferevent_getfd(p.bev));
    SAY(bufferevent_socket_connect(p.bev, NULL, 0));
    SAY(bufferevent_write(p.bev, "hello", 5));
    SAY(bufferevent_socket_connect(p.bev, (struct sockaddr*)&address, sizeof address));
    SAY(bufferevent_getfd(p.bev) >= 0);
    bufferevent_enable(p.bev, EV_READ);
    run_until_quiet(base);
    accepted = accept(listener, NULL, NULL);
    get(accepted);
    put(accepted, "welcome");
    run_until_quiet(base);
    close(accepted);
    run_until_quiet(base);
    bufferevent_free(p.bev);
    turn(base);
    close(listener);
    /* Nothing listens there any more. */
    p.name = "refused";
    p.bev = bufferevent_socket_new(base, -1, options[i] | BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(p.bev, on_read, on_write, on_event, &p);
    p.free_in = BEV_EVENT_ERROR;
    SAY(bufferevent_socket_connect(p.bev, (struct sockaddr*)&address, sizeof address));
    bufferevent_enable(p.bev, EV_READ);
    run_until_quiet(base);
    SAY(p.bev == NULL);
    p.free_in = 0;
    p.name = "no such file";
    memset(&local, 0, sizeof local);
    local.sun_family = AF_UNIX;
    strcpy(local.sun_path, "/nonexistent/socket");
    p.bev = bufferevent_socket_new(base, -1, options[i] | BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(p.bev, on_read, on_write, on_event, &p);
    SAY(bufferevent_socket_connect(p.bev, (struct sockaddr*)&local, sizeof local));
    SAY(bufferevent_getfd(p.bev));
    run_until_quiet(base);
    SAY(bufferevent_socket_connect_hostname(p.bev, NULL, AF_INET, "localhost", 0));
    SAY(bufferevent_socket_connect_hostname(p.bev, NULL, AF_UNIX, "localhost", 80));
    SAY(bufferevent_socket_connect_hostname(p.bev, NULL, AF_INET, "localhost", 65536));
    SAY(bufferevent_socket_get_dns_error(p.bev));
    bufferevent_free(p.bev);
    turn(base);
    event_base_free(base);
  }
}

static void descriptors(void) {
  struct event_base *base = event_base_new(), *other = event_base_new();
  struct peer p, q;
  int fd;
  make_peer(&p, "p", base, 0);
  make_peer(&q, "q", base, BEV_OPT_CLOSE_ON_FREE);
  bufferevent_enable(p.bev, EV_READ);
  fd = bufferevent_getfd(p.bev);
  SAY(bufferevent_setfd(p.bev, -1));
  SAY(bufferevent_getfd(p.bev));
  put(p.other, "one");
  turn(base);
  SAY(bufferevent_setfd(p.bev, fd));
  turn(base);
  SAY(bufferevent_get_priority(p.bev));
  SAY(bufferevent_priority_set(p.bev, 5));
  SAY(bufferevent_priority_set(p.bev, 0));
  SAY(bufferevent_base_set(other, p.bev));
  SAY(bufferevent_disable(p.bev, EV_READ | EV_WRITE));
  SAY(bufferevent_base_set(other, p.bev));
  SAY(bufferevent_get_base(p.bev) == other);
  put(p.other, "two");
  bufferevent_enable(p.bev, EV_READ);
  turn(base);
  turn(other);
  bufferevent_lock(p.bev);
  bufferevent_unlock(p.bev);
  bufferevent_free(p.bev);
  turn(other);
  SAY(write(fd, "open", 4));
  get(p.other);
  bufferevent_free(q.bev);
  turn(base);
  get(q.other);
  event_base_free(base);
  event_base_free(other);
}

static void old_interface(void) {
  struct event_base* base = event_init();
  struct peer p;
  int fds[2];
  need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0, "socketpair");
  memset(&p, 0, sizeof p);
  p.name = "old";
  p.bev = bufferevent_new(fds[0], on_read, on_write, on_event, &p);
  SAY(p.bev != NULL);
  SAY(bufferevent_base_set(base, p.bev));
  SAY(bufferevent_enable(p.bev, EV_READ));
  put(fds[1], "data");
  turn(base);
  bufferevent_settimeout(p.bev, 100, 100);
  say("  %ld %ld", (long)p.bev->timeout_read.tv_sec, (long)p.bev->timeout_write.tv_sec);
  bufferevent_free(p.bev);
  turn(base);
  event_base_free(base);
}

const struct section socket_sections[] = {{"transfer by bufferevents", transfer},
                                          {"ends of streams", ends},
                                          {"failures", failures},
                                          {"watermarks", watermarks},
                                          {"triggers", triggers},
                                          {"timeouts", timeouts},
                                          {"connections", connections},
                                          {"descriptors", descriptors},
                                          {"old interface", old_interface},
                                          {NULL, NULL}};
