/* Requests of clients: bodies, queues, cancelling, and the lives of requests and connections. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/bufferevent.h>

#include "walk_evhttp.h"

static char client[] = "client", server[] = "server";
static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

static void bodies(void) {
  static const enum evhttp_cmd_type types[] = {EVHTTP_REQ_POST, EVHTTP_REQ_PUT};
  struct site site;
  size_t i;
  int fd, with_body;
  start_site(&site);
  fd = -1;
  for (i = 0; i < sizeof types / sizeof *types; ++i) {
    for (with_body = 0; with_body < 3; ++with_body) {
      struct evhttp_request* request = evhttp_request_new(on_response, &site);
      struct evkeyvalq* fields = evhttp_request_get_output_headers(request);
      evhttp_add_header(fields, "Proxy-Connection", "removed");
      evhttp_add_header(fields, "X-A", "b");
      if (with_body == 2) evhttp_add_header(fields, "Content-Length", "6");
      if (with_body) evbuffer_add(evhttp_request_get_output_buffer(request), "abcde\n", 6);
      site.ended = 0;
      SAY(evhttp_make_request(site.client, request, types[i], "/body"));
      if (fd < 0) fd = await_client(&site);
      hear(site.base, fd, with_body ? "abcde\n" : "\r\n\r\n");
      talk(fd, ok);
      run_until(site.base, &site.ended, 1);
    }
  }
  close(fd);
  settle(site.base);
  stop_site(&site);
}

static void versions(void) {
  struct site site;
  struct evhttp_request* request;
  int fd;
  start_site(&site);
  request = evhttp_request_new(on_response, &site);
  request->major = 1;
  request->minor = 0;
  evhttp_make_request(site.client, request, (enum evhttp_cmd_type)0, "http://a/?b#c");
  fd = await_client(&site);
  hear(site.base, fd, "\r\n\r\n");
  talk(fd, ok);
  run_until(site.base, &site.ended, 1);
  close(fd);
  stop_site(&site);
}

static void continued(void) {
  struct site site;
  struct evhttp_request* request;
  int fd;
  start_site(&site);
  request = evhttp_request_new(on_response, &site);
  evhttp_add_header(evhttp_request_get_output_headers(request), "Expect", "100-continue");
  evbuffer_add(evhttp_request_get_output_buffer(request), "the body\n", 9);
  evhttp_make_request(site.client, request, EVHTTP_REQ_POST, "/");
  fd = await_client(&site);
  hear(site.base, fd, "\r\n\r\n");
  talk(fd, "HTTP/1.1 100 Continue\r\n\r\n");
  hear(site.base, fd, "the body\n");
  talk(fd, ok);
  run_until(site.base, &site.ended, 1);
  close(fd);
  stop_site(&site);
}

static void queued(void) {
  struct site site;
  int fd, i;
  start_site(&site);
  evhttp_connection_set_closecb(site.client, on_close, client);
  for (i = 0; i < 4; ++i) ask(&site, EVHTTP_REQ_GET, i % 2 ? "/odd" : "/even");
  fd = await_client(&site);
  for (i = 0; i < 2; ++i) {
    hear(site.base, fd, "\r\n\r\n");
    talk(fd, i ? "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" : ok);
    run_until(site.base, &site.ended, i + 1);
  }
  hear(site.base, fd, NULL);
  close(fd);
  fd = await_client(&site);
  hear(site.base, fd, "\r\n\r\n");
  say(" the connection ends instead of a response");
  close(fd);
  run_until(site.base, &site.ended, 3);
  fd = await_client(&site);
  hear(site.base, fd, "\r\n\r\n");
  talk(fd, ok);
  run_until(site.base, &site.ended, 4);
  say(" the idle connection ends");
  close(fd);
  settle(site.base);
  ask(&site, EVHTTP_REQ_GET, "/last");
  fd = await_client(&site);
  hear(site.base, fd, "\r\n\r\n");
  talk(fd, ok);
  run_until(site.base, &site.ended, 5);
  close(fd);
  stop_site(&site);
}

static struct evhttp_request* victim;
static int with_free;

static void on_cancelling(struct evhttp_request* request, void* argument) {
  struct site* site = argument;
  say("  cancelling in a callback: %d", request != NULL);
  ++site->ended;
  if (with_free) {
    evhttp_connection_free(site->client);
    site->client = NULL;
  } else {
    evhttp_cancel_request(victim);
  }
}

static void on_cancelling_error(enum evhttp_request_error error, void* argument) {
  on_failure(error, argument);
  on_cancelling(NULL, argument);
}

static void on_done(struct evhttp_request* request, void* argument) {
  say("  done: %d", request != NULL);
  ++((struct site*)argument)->ended;
}

static struct evhttp_request* add(struct site* site,
                                  void (*callback)(struct evhttp_request*, void*)) {
  struct evhttp_request* request = evhttp_request_new(callback, site);
  evhttp_request_set_error_cb(request, on_failure);
  evhttp_make_request(site->client, request, EVHTTP_REQ_GET, "/");
  return request;
}

static void cancelled(void) {
  struct site site;
  struct evhttp_request* request;
  int fd;
  say(" before the connection");
  start_site(&site);
  evhttp_connection_set_closecb(site.client, on_close, client);
  evhttp_cancel_request(add(&site, on_done));
  settle(site.base);
  say(" never sent");
  evhttp_cancel_request(evhttp_request_new(on_done, &site));
  say(" waiting");
  request = add(&site, on_done);
  evhttp_cancel_request(add(&site, on_done));
  fd = await_client(&site);
  while (site.ended == 0 && fd >= 0) {
    /* The first connection was abandoned. */
    char byte;
    settle(site.base);
    if (recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) > 0) break;
    close(fd);
    fd = await_client(&site);
  }
  hear(site.base, fd, "\r\n\r\n");
  say(" sent");
  evhttp_cancel_request(request);
  hear(site.base, fd, NULL);
  close(fd);
  say(" in the callback of another one");
  site.ended = 0;
  add(&site, on_cancelling);
  victim = add(&site, on_done);
  add(&site, on_done);
  fd = await_client(&site);
  hear(site.base, fd, "\r\n\r\n");
  talk(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
  run_until(site.base, &site.ended, 1);
  close(fd);
  fd = await_client(&site);
  hear(site.base, fd, NULL);
  close(fd);
  fd = await_client(&site);
  hear(site.base, fd, "\r\n\r\n");
  talk(fd, ok);
  run_until(site.base, &site.ended, 2);
  close(fd);
  stop_site(&site);
}

static void in_callbacks(void) {
  int kind;
  for (kind = 0; kind < 6; ++kind) {
    struct site site;
    int fd;
    with_free = kind % 2;
    start_site(&site);
    evhttp_connection_set_closecb(site.client, on_close, client);
    victim = evhttp_request_new(kind < 2 ? on_cancelling : on_done, &site);
    if (kind < 2) with_free = 1;
    if (kind / 2 == 1) evhttp_request_set_chunked_cb(victim, on_cancelling);
    if (kind / 2 == 2) evhttp_request_set_error_cb(victim, on_cancelling_error);
    if (kind / 2 == 2) with_free = 1;
    say(" kind %d", kind);
    evhttp_make_request(site.client, victim, EVHTTP_REQ_GET, "/");
    fd = await_client(&site);
    hear(site.base, fd, "\r\n\r\n");
    talk(fd, kind / 2 == 2 ? "nonsense\r\n\r\n"
             : kind == 2   ? "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb"
                           : "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na");
    if (kind < 2) talk(fd, "12345678");
    run_until(site.base, &site.ended, 1);
    hear(site.base, fd, NULL);
    close(fd);
    stop_site(&site);
  }
}

static void owned(void) {
  struct site site;
  struct evhttp_request* request;
  int fd;
  start_site(&site);
  request = ask(&site, EVHTTP_REQ_GET, "/");
  evhttp_request_own(request);
  SAY(evhttp_request_is_owned(request));
  fd = await_client(&site);
  talk(fd, ok);
  run_until(site.base, &site.ended, 1);
  say(" later");
  describe(request);
  evhttp_request_free(request);
  close(fd);
  settle(site.base);
  say(" freed on completion");
  evhttp_connection_set_closecb(site.client, on_close, client);
  evhttp_connection_free_on_completion(site.client);
  ask(&site, EVHTTP_REQ_GET, "/1");
  ask(&site, EVHTTP_REQ_GET, "/2");
  fd = await_client(&site);
  hear(site.base, fd, "\r\n\r\n");
  talk(fd, ok);
  run_until(site.base, &site.ended, 2);
  hear(site.base, fd, "\r\n\r\n");
  talk(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  run_until(site.base, &site.ended, 3);
  hear(site.base, fd, NULL);
  close(fd);
  site.client = NULL;
  stop_site(&site);
}

static void settings(void) {
  struct site site;
  struct bufferevent* bev;
  struct sockaddr_in peer;
  socklen_t size = sizeof peer;
  char* address;
  ev_uint16_t port;
  int fd;
  start_site(&site);
  evhttp_connection_get_peer(site.client, &address, &port);
  SAY(strcmp(address, "127.0.0.1") == 0 && port == site.port);
  SAY(evhttp_connection_get_base(site.client) == site.base);
  SAY(evhttp_connection_get_server(site.client) == NULL);
  SAY(evhttp_connection_get_addr(site.client)->sa_family);
  SAY(evhttp_connection_set_flags(site.client, EVHTTP_CON_REUSE_CONNECTED_ADDR));
  SAY(evhttp_connection_set_flags(site.client, 0x1));
  SAY(evhttp_connection_set_flags(site.client, EVHTTP_CON_LINGERING_CLOSE));
  evhttp_connection_free(site.client);
  bev = bufferevent_socket_new(site.base, -1, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
  site.client =
      evhttp_connection_base_bufferevent_new(site.base, NULL, bev, "127.0.0.1", site.port);
  SAY(evhttp_connection_get_bufferevent(site.client) == bev);
  SAY(evhttp_connection_set_flags(site.client, EVHTTP_CON_REUSE_CONNECTED_ADDR));
  evhttp_connection_set_family(site.client, AF_INET);
  evhttp_connection_set_local_address(site.client, "127.0.0.2");
  ask(&site, EVHTTP_REQ_GET, "/");
  fd = await_client(&site);
  need(getpeername(fd, (struct sockaddr*)&peer, &size) == 0, "getpeername");
  SAY(ntohl(peer.sin_addr.s_addr) & 0xff);
  talk(fd, ok);
  run_until(site.base, &site.ended, 1);
  SAY(evhttp_connection_get_addr(site.client)->sa_family);
  close(fd);
  settle(site.base);
  ask(&site, EVHTTP_REQ_GET, "/again");
  fd = await_client(&site);
  hear(site.base, fd, "\r\n\r\n");
  talk(fd, ok);
  run_until(site.base, &site.ended, 2);
  close(fd);
  stop_site(&site);
}

/* A client and a server of evhttp. */
static void both(void) {
  static const enum evhttp_cmd_type types[] = {EVHTTP_REQ_GET, EVHTTP_REQ_HEAD, EVHTTP_REQ_POST,
                                               EVHTTP_REQ_PATCH, EVHTTP_REQ_DELETE};
  struct web web;
  struct site site;
  size_t i;
  memset(&site, 0, sizeof site);
  start_web(&web);
  evhttp_set_gencb(web.http, echo, server);
  site.base = web.base;
  site.client = evhttp_connection_base_new(web.base, NULL, "127.0.0.1", (unsigned short)web.port);
  for (i = 0; i < sizeof types / sizeof *types; ++i) ask(&site, types[i], "/both?x=y");
  run_until(web.base, &site.ended, (int)(sizeof types / sizeof *types));
  evhttp_connection_free(site.client);
  stop_web(&web);
}

const struct section request_sections[] = {{"evhttp bodies of clients", bodies},
                                           {"evhttp versions of clients", versions},
                                           {"evhttp continued requests", continued},
                                           {"evhttp queued requests", queued},
                                           {"evhttp cancelled requests", cancelled},
                                           {"evhttp clients in callbacks", in_callbacks},
                                           {"evhttp owned requests", owned},
                                           {"evhttp settings of clients", settings},
                                           {"evhttp both", both},
                                           {NULL, NULL}};
