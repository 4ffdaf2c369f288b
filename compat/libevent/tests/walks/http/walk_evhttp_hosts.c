/* Sockets, virtual hosts, callbacks, and the lives of connections and requests. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/bufferevent.h>
#include <event2/listener.h>

#include "walk_evhttp.h"

static char root[] = "root", one[] = "one", two[] = "two", three[] = "three";

static void get(const struct web* web, const char* path, const char* host) {
  char request[256];
  snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
           path, host);
  exchange(web, request);
}

static void paths(void) {
  struct web web;
  start_web(&web);
  SAY(evhttp_set_cb(web.http, "/one", echo, one));
  SAY(evhttp_set_cb(web.http, "/one", echo, two));
  SAY(evhttp_set_cb(web.http, "/a b", echo, two));
  SAY(evhttp_set_cb(web.http, "/", echo, three));
  SAY(evhttp_del_cb(web.http, "/none"));
  get(&web, "/one", "a");
  get(&web, "/one?x=1", "a");
  get(&web, "/One", "a");
  get(&web, "/one/", "a");
  get(&web, "/%6fne", "a");
  get(&web, "/a%20b", "a");
  get(&web, "/a+b", "a");
  get(&web, "/", "a");
  get(&web, "/%6", "a");
  SAY(evhttp_del_cb(web.http, "/one"));
  get(&web, "/one", "a");
  evhttp_set_gencb(web.http, echo, root);
  get(&web, "/one", "a");
  stop_web(&web);
}

static void hosts(void) {
  static const char* const names[] = {"a.example",       "www.a.example", "WWW.A.EXAMPLE:8080",
                                      "x.www.a.example", "b.example",     "alias",
                                      "Alias:80",        "nested",        "none",
                                      "a.example.com",   "[::1]:80",      "ab.cd.ef"};
  struct web web;
  struct evhttp *first, *second, *inner;
  size_t i;
  int round;
  start_web(&web);
  first = evhttp_new(web.base);
  second = evhttp_new(web.base);
  inner = evhttp_new(web.base);
  evhttp_set_gencb(web.http, echo, root);
  evhttp_set_gencb(first, echo, one);
  evhttp_set_gencb(second, echo, two);
  evhttp_set_gencb(inner, echo, three);
  SAY(evhttp_add_virtual_host(web.http, "*.a.example", first));
  SAY(evhttp_add_virtual_host(web.http, "again", first));
  SAY(evhttp_add_virtual_host(web.http, "*b*.*f", second));
  SAY(evhttp_add_virtual_host(first, "x.*.a.example", inner));
  SAY(evhttp_add_server_alias(second, "alias"));
  SAY(evhttp_add_server_alias(inner, "nested"));
  SAY(evhttp_add_server_alias(web.http, "b.example"));
  SAY(evhttp_remove_server_alias(web.http, "none"));
  for (round = 0; round < 2; ++round) {
    for (i = 0; i < sizeof names / sizeof *names; ++i) get(&web, "/x", names[i]);
    get(&web, "http://www.a.example/absolute", "b.example");
    get(&web, "http://alias/absolute", "b.example");
    SAY(evhttp_remove_virtual_host(first, inner));
    SAY(evhttp_remove_virtual_host(first, inner));
    SAY(evhttp_remove_server_alias(second, "ALIAS"));
    evhttp_free(inner);
    inner = evhttp_new(web.base);
  }
  evhttp_free(inner);
  stop_web(&web);
}

static void on_bound(struct evhttp_bound_socket* bound, void* count) {
  ++*(int*)count;
  say("  bound %d", evhttp_bound_socket_get_fd(bound) ==
                        evconnlistener_get_fd(evhttp_bound_socket_get_listener(bound)));
}

static void sockets(void) {
  struct web web;
  struct evhttp_bound_socket* other;
  struct evconnlistener* listener;
  struct sockaddr_in address;
  int fd, count = 0;
  start_web(&web);
  evhttp_set_gencb(web.http, echo, root);
  SAY(evhttp_bind_socket(web.http, "127.0.0.1", (ev_uint16_t)web.port));
  SAY(evhttp_bind_socket(web.http, "192.0.2.1", 0));
  SAY(evhttp_bind_socket(web.http, "not an address", 0));
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  need(bind(fd, (struct sockaddr*)&address, sizeof address) == 0 && listen(fd, 5) == 0, "listen");
  other = evhttp_accept_socket_with_handle(web.http, fd);
  SAY(evhttp_bound_socket_get_fd(other) == fd);
  listener = evconnlistener_new_bind(web.base, NULL, NULL, LEV_OPT_CLOSE_ON_FREE, 5,
                                     (struct sockaddr*)&address, sizeof address);
  SAY(evhttp_bound_socket_get_listener(evhttp_bind_listener(web.http, listener)) == listener);
  evhttp_foreach_bound_socket(web.http, on_bound, &count);
  SAY(count);
  evhttp_del_accept_socket(web.http, other);
  get(&web, "/", "a");
  stop_web(&web);
}

static struct bufferevent* make_deferred(struct event_base* base, void* count) {
  ++*(int*)count;
  return bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
}

static void on_connection(struct evhttp_request* request, void* argument) {
  struct web* web = argument;
  struct evhttp_connection* connection = evhttp_request_get_connection(request);
  const struct sockaddr_in* peer =
      (const struct sockaddr_in*)evhttp_connection_get_addr(connection);
  SAY(evhttp_connection_get_server(connection) == web->http);
  SAY(evhttp_connection_get_base(connection) == web->base);
  SAY(bufferevent_getfd(evhttp_connection_get_bufferevent(connection)) >= 0);
  SAY(peer->sin_family == AF_INET && ntohs(peer->sin_port) == request->remote_port);
  SAY(evhttp_request_is_owned(request));
  evhttp_connection_set_closecb(connection, on_close, root);
  echo(request, root);
}

static void connections(void) {
  struct web web;
  int count = 0;
  start_web(&web);
  evhttp_set_gencb(web.http, on_connection, &web);
  get(&web, "/", "a");
  evhttp_set_bevcb(web.http, make_deferred, &count);
  get(&web, "/", "a");
  get(&web, "/", "a");
  SAY(count);
  stop_web(&web);
}

static struct evhttp_request* kept;

static void on_keep(struct evhttp_request* request, void* argument) {
  (void)argument;
  kept = request;
  evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_close, root);
}

static void on_free_connection(struct evhttp_request* request, void* argument) {
  (void)argument;
  evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_close, root);
  evhttp_connection_free(evhttp_request_get_connection(request));
}

static void on_free_server(struct evhttp_request* request, void* argument) {
  struct web* web = argument;
  (void)request;
  evhttp_free(web->http);
  web->http = NULL;
}

/* Requests that are answered later, or never, and connections that end before. */
static void lives(void) {
  struct web web;
  int fd;
  start_web(&web);
  evhttp_set_gencb(web.http, on_keep, NULL);
  fd = dial(&web);
  talk(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  settle(web.base);
  echo(kept, root);
  hear(web.base, fd, "root: /\n");
  say(" the client is gone before the response");
  talk(fd, "GET /gone HTTP/1.1\r\nHost: a\r\n\r\n");
  settle(web.base);
  close(fd);
  settle(web.base);
  evhttp_send_reply_start(kept, 200, NULL);
  settle(web.base);
  SAY(evhttp_request_get_connection(kept) == NULL);
  evhttp_send_reply_end(kept);
  say(" the connection is freed in the callback");
  evhttp_set_gencb(web.http, on_free_connection, NULL);
  exchange(&web, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  say(" the server is freed in the callback");
  evhttp_set_gencb(web.http, on_free_server, &web);
  exchange(&web, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  event_base_free(web.base);
}

static void timeouts(void) {
  static const struct timeval brief = {0, 20000};
  struct web web;
  int fd;
  start_web(&web);
  evhttp_set_gencb(web.http, on_connection, &web);
  evhttp_set_timeout_tv(web.http, &brief);
  fd = dial(&web);
  hear(web.base, fd, NULL);
  close(fd);
  fd = dial(&web);
  talk(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  hear(web.base, fd, NULL);
  close(fd);
  fd = dial(&web);
  talk(fd, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
  hear(web.base, fd, NULL);
  close(fd);
  evhttp_set_timeout(web.http, -1);
  evhttp_set_timeout(web.http, 10);
  get(&web, "/", "a");
  stop_web(&web);
}

const struct section host_sections[] = {{"evhttp paths", paths},
                                        {"evhttp hosts", hosts},
                                        {"evhttp sockets", sockets},
                                        {"evhttp connections", connections},
                                        {"evhttp lives", lives},
                                        {"evhttp timeouts", timeouts},
                                        {NULL, NULL}};
