/* Listeners. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/listener.h>

#include "walk_bufferevent.h"

static int clients[8];
static int client_count;

static struct sockaddr_in loopback(void) {
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

static void connect_to(struct evconnlistener* listener) {
  struct sockaddr_in address;
  socklen_t size = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  need(getsockname(evconnlistener_get_fd(listener), (struct sockaddr*)&address, &size) == 0,
       "getsockname");
  need(connect(fd, (struct sockaddr*)&address, size) == 0, "connect");
  clients[client_count++ % 8] = fd;
}

static int free_it, disable_it;

static void on_accept(struct evconnlistener* listener, evutil_socket_t fd, struct sockaddr* address,
                      int size, void* name) {
  say("    %s: family %d, size %d, nonblocking %d, exec %d", (const char*)name, address->sa_family,
      size, (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0, (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  close(fd);
  if (disable_it) evconnlistener_disable(listener);
  if (free_it) evconnlistener_free(listener);
}

static void on_error(struct evconnlistener* listener, void* name) {
  int error = errno;
  say("    %s: error %d", (const char*)name, error);
  (void)listener;
  if (disable_it) evconnlistener_disable(listener);
  if (free_it) evconnlistener_free(listener);
}

static void options(void) {
  static const unsigned flags[] = {0,
                                   LEV_OPT_LEAVE_SOCKETS_BLOCKING,
                                   LEV_OPT_CLOSE_ON_EXEC,
                                   LEV_OPT_CLOSE_ON_FREE,
                                   LEV_OPT_REUSEABLE | LEV_OPT_REUSEABLE_PORT,
                                   LEV_OPT_DISABLED,
                                   LEV_OPT_THREADSAFE,
                                   LEV_OPT_BIND_IPV6ONLY};
  struct sockaddr_in address = loopback();
  size_t i;
  SAY(evconnlistener_new_bind(NULL, on_accept, NULL, 0, 0, (struct sockaddr*)&address,
                              sizeof address) == NULL);
  for (i = 0; i < sizeof flags / sizeof *flags; ++i) {
    struct event_base* base = event_base_new();
    int fd, set = 0;
    socklen_t size = sizeof set;
    struct evconnlistener* listener = evconnlistener_new_bind(
        base, on_accept, "accepted", flags[i], -1, (struct sockaddr*)&address, sizeof address);
    say("  flags %x", flags[i]);
    SAY(listener != NULL);
    if (listener == NULL) {
      event_base_free(base);
      continue;
    }
    fd = evconnlistener_get_fd(listener);
    SAY(evconnlistener_get_base(listener) == base);
    SAY((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    SAY((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &set, &size);
    SAY(set);
    getsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &set, &size);
    SAY(set);
    getsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &set, &size);
    SAY(set);
    connect_to(listener);
    connect_to(listener);
    turn(base);
    SAY(evconnlistener_disable(listener));
    connect_to(listener);
    turn(base);
    SAY(evconnlistener_enable(listener));
    turn(base);
    evconnlistener_set_cb(listener, NULL, NULL);
    connect_to(listener);
    turn(base);
    evconnlistener_set_cb(listener, on_accept, "set later");
    connect_to(listener);
    turn(base);
    evconnlistener_free(listener);
    SAY(fcntl(fd, F_GETFD) != -1);
    if (fcntl(fd, F_GETFD) != -1) close(fd);
    event_base_free(base);
  }
}

static void inside(void) {
  struct event_base* base = event_base_new();
  struct sockaddr_in address = loopback();
  struct evconnlistener* listener = evconnlistener_new_bind(
      base, NULL, NULL, LEV_OPT_CLOSE_ON_FREE, 5, (struct sockaddr*)&address, sizeof address);
  connect_to(listener);
  connect_to(listener);
  connect_to(listener);
  turn(base);
  disable_it = 1;
  evconnlistener_set_cb(listener, on_accept, "disabling");
  turn(base);
  evconnlistener_enable(listener);
  turn(base);
  disable_it = 0;
  free_it = 1;
  evconnlistener_set_cb(listener, on_accept, "freeing");
  evconnlistener_enable(listener);
  turn(base);
  free_it = 0;
  event_base_free(base);
}

static void errors(void) {
  struct event_base* base = event_base_new();
  int fds[2];
  struct evconnlistener* listener;
  SAY(evconnlistener_new(base, on_accept, NULL, 0, -1, -1) == NULL);
  /* A readable descriptor that is not a socket. */
  need(pipe2(fds, O_NONBLOCK) == 0, "pipe2");
  SAY(evconnlistener_new(base, on_accept, NULL, 0, 5, fds[0]) == NULL);
  need(write(fds[1], "x", 1) == 1, "write");
  listener = evconnlistener_new(base, on_accept, "pipe", LEV_OPT_CLOSE_ON_FREE, 0, fds[0]);
  SAY(listener != NULL);
  evconnlistener_set_error_cb(listener, on_error);
  event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
  event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
  disable_it = 1;
  event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
  event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
  disable_it = 0;
  evconnlistener_enable(listener);
  free_it = 1;
  event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
  free_it = 0;
  SAY(fcntl(fds[0], F_GETFD) != -1);
  event_base_free(base);
}

const struct section listener_sections[] = {{"options of listeners", options},
                                            {"calls inside listeners", inside},
                                            {"errors of listeners", errors},
                                            {NULL, NULL}};
