/* Clients of a server that is a socket: responses, and errors. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/bufferevent.h>

#include "walk_evhttp.h"

void start_site(struct site* site) {
  struct sockaddr_in address;
  socklen_t size = sizeof address;
  memset(site, 0, sizeof *site);
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  site->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  need(bind(site->listener, (struct sockaddr*)&address, sizeof address) == 0, "bind");
  need(listen(site->listener, 16) == 0, "listen");
  need(getsockname(site->listener, (struct sockaddr*)&address, &size) == 0, "getsockname");
  site->port = ntohs(address.sin_port);
  site->base = event_base_new();
  site->client = evhttp_connection_base_new(site->base, NULL, "127.0.0.1", site->port);
}

void stop_site(struct site* site) {
  if (site->client != NULL) evhttp_connection_free(site->client);
  settle(site->base);
  event_base_free(site->base);
  close(site->listener);
}

int await_client(struct site* site) {
  int fd, i;
  for (i = 0; i < 20000; ++i) {
    struct pollfd waiting = {site->listener, POLLIN, 0};
    event_base_loop(site->base, EVLOOP_NONBLOCK);
    fd = accept(site->listener, NULL, NULL);
    if (fd >= 0) return fd;
    poll(&waiting, 1, 1);
  }
  need(0, "accept");
  return -1;
}

void run_until(struct event_base* base, const int* ended, int count) {
  int i;
  for (i = 0; i < 20000 && *ended < count; ++i) {
    event_base_loop(base, EVLOOP_NONBLOCK);
    poll(NULL, 0, 1);
  }
  if (*ended < count) say("  %d of %d ended", *ended, count);
  settle(base);
}

void on_response(struct evhttp_request* request, void* argument) {
  struct site* site = argument;
  ++site->ended;
  if (request == NULL) {
    say("  no response");
    return;
  }
  say("  response, connection %d", evhttp_request_get_connection(request) != NULL);
  describe(request);
}

void on_failure(enum evhttp_request_error error, void* site) {
  (void)site;
  say("  error %d", error);
}

static int on_head(struct evhttp_request* request, void* argument) {
  struct site* site = argument;
  say("  head: %d, %zu bytes", evhttp_request_get_response_code(request),
      evbuffer_get_length(evhttp_request_get_input_buffer(request)));
  return site->verdict;
}

static void on_chunk(struct evhttp_request* request, void* site) {
  (void)site;
  show("  chunk", evhttp_request_get_input_buffer(request));
}

struct evhttp_request* ask(struct site* site, enum evhttp_cmd_type type, const char* target) {
  struct evhttp_request* request = evhttp_request_new(on_response, site);
  evhttp_add_header(evhttp_request_get_output_headers(request), "Host", "a");
  evhttp_request_set_error_cb(request, on_failure);
  if (site->with_callbacks) {
    evhttp_request_set_header_cb(request, on_head);
    evhttp_request_set_chunked_cb(request, on_chunk);
  }
  if (evhttp_make_request(site->client, request, type, target) != 0) say("  not made");
  return request;
}

/* One request, and these bytes as the response. The rest is sent when the first part was read. */
static void answer(enum evhttp_cmd_type type, const char* head, const char* rest,
                   int with_callbacks) {
  struct site site;
  int fd, ended;
  start_site(&site);
  site.with_callbacks = with_callbacks;
  ask(&site, type, "/x?y");
  fd = await_client(&site);
  hear(site.base, fd, "\r\n\r\n");
  talk(fd, head);
  settle(site.base);
  if (rest != NULL) talk(fd, rest);
  settle(site.base);
  ended = site.ended;
  if (!ended) close(fd);
  run_until(site.base, &site.ended, 1);
  if (ended) close(fd);
  stop_site(&site);
}

static void responses(void) {
  static const struct {
    enum evhttp_cmd_type type;
    const char* head;
    const char* rest;
  } all[] = {
      {EVHTTP_REQ_GET, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", NULL},
      {EVHTTP_REQ_GET, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: a\r\nX: b\r\n\r\nhe", "llo"},
      {EVHTTP_REQ_GET, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", NULL},
      {EVHTTP_REQ_GET, "HTTP/1.0 404 Not There\r\nContent-Length: 2\r\n\r\nno", NULL},
      {EVHTTP_REQ_GET, "HTTP/1.1 999 \r\nContent-Length: 2\r\n\r\nno", NULL},
      {EVHTTP_REQ_GET, "HTTP/1.1 200 OK\r\n\r\nuntil the", " end"},
      {EVHTTP_REQ_GET, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the", " end"},
      {EVHTTP_REQ_POST, "HTTP/1.1 204 No Content\r\n\r\n", NULL},
      {EVHTTP_REQ_GET, "HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n", NULL},
      {EVHTTP_REQ_HEAD, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", NULL},
      {EVHTTP_REQ_HEAD, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", NULL},
      {EVHTTP_REQ_PUT,
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n wor",
       "ld\r\n0\r\nX-Trailer: discarded\r\n\r\n"},
      {EVHTTP_REQ_DELETE, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", NULL},
      {EVHTTP_REQ_OPTIONS, "HTTP/1.1 200 OK\r\nContent-Len", "gth: 1\r\n\r\na"},
      {EVHTTP_REQ_TRACE,
       "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", NULL},
      {EVHTTP_REQ_PATCH, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na",
       NULL}};
  size_t i;
  int with_callbacks;
  for (with_callbacks = 0; with_callbacks < 2; ++with_callbacks)
    for (i = 0; i < sizeof all / sizeof *all; ++i)
      answer(all[i].type, all[i].head, all[i].rest, with_callbacks);
}

/* What breaks RFC 9112. The first responses are accepted, because their ends are certain. */
static void odd_responses(void) {
  static const char* const all[] = {
      "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello",
      "HTTP/1.0 200\r\nContent-Length: 5\r\n\r\nhello",
      "HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\nhello",
      "HTTP/1.1 200 OK\nX: a\nContent-Length: 5\n\nhello",
      "HTTP/1.1 200 OK\r\nX: a\nContent-Length: 5\r\n\nhello",
      "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\tc\r\nContent-Length: 5\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nX: c\r\n d\r\nContent-Length: 5\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0  \r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5  \r\nhello\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 ;x\r\nhello\r\n0 ;\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n000000000005\r\nhello\r\n00\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nHost: a\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nContent-Length: "
      "9\r\nConnection: close\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: a\r\n b\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: a\n\n",
      "HTTP/1.1 200 OK\r\nX: a\t \r\n b \t\r\nContent-Length: 5\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nContent-Length: 5 \r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
      "HTTP/1.2 200 OK\r\nContent-Length: 5\r\n\r\nhello",
      /* Both libraries reject these. */
      "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: "
      "5\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
      "\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
      "http/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 5\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nX\r\nContent-Length: 5\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\n X: a\r\nContent-Length: 5\r\n\r\nhello"};
  size_t i;
  for (i = 0; i < sizeof all / sizeof *all; ++i) {
    say(" %zu", i);
    answer(EVHTTP_REQ_GET, all[i], NULL, 0);
  }
}

static void bad_responses(void) {
  static const char* const all[] = {"",
                                    "HTTP/1.1 200 OK\r\nContent-",
                                    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
                                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
                                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
                                    "nonsense\r\n\r\n",
                                    "HTTP/2.1 200 OK\r\n\r\n",
                                    "HTTP/1.1 0 Zero\r\n\r\n",
                                    "HTTP/1.1 abc Letters\r\n\r\n",
                                    "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
                                    "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
                                    "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
                                    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
                                    "Transfer-Encoding: chunked\r\n\r\n",
                                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n"};
  size_t i;
  for (i = 0; i < sizeof all / sizeof *all; ++i) {
    say(" %zu", i);
    answer(EVHTTP_REQ_GET, all[i], NULL, i < 10);
  }
}

static void verdicts(void) {
  struct site site;
  int fd;
  start_site(&site);
  site.with_callbacks = 1;
  site.verdict = -1;
  ask(&site, EVHTTP_REQ_GET, "/");
  fd = await_client(&site);
  hear(site.base, fd, "\r\n\r\n");
  talk(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  run_until(site.base, &site.ended, 1);
  hear(site.base, fd, NULL);
  close(fd);
  stop_site(&site);
}

static void limits(void) {
  static const char response[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: 1234\r\n\r\nhello";
  struct site site;
  int limit, fd;
  for (limit = 14; limit < 48; limit += 3) {
    start_site(&site);
    say(" %d", limit);
    evhttp_connection_set_max_headers_size(site.client, limit);
    evhttp_connection_set_max_body_size(site.client, limit % 2 ? 4 : 5);
    ask(&site, EVHTTP_REQ_GET, "/");
    fd = await_client(&site);
    hear(site.base, fd, "\r\n\r\n");
    talk(fd, response);
    run_until(site.base, &site.ended, 1);
    close(fd);
    stop_site(&site);
  }
}

static void timeouts(void) {
  static const struct timeval brief = {0, 20000};
  struct site site;
  int fd, part;
  for (part = 0; part < 3; ++part) {
    static const char* const begun[] = {"", "HTTP/1.1 200 OK\r\n",
                                        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"};
    start_site(&site);
    evhttp_connection_set_timeout_tv(site.client, &brief);
    evhttp_connection_set_closecb(site.client, on_close, (char*)"client");
    ask(&site, EVHTTP_REQ_GET, "/");
    fd = await_client(&site);
    talk(fd, begun[part]);
    run_until(site.base, &site.ended, 1);
    close(fd);
    evhttp_connection_set_timeout(site.client, -1);
    stop_site(&site);
  }
}

static void refused(void) {
  static const struct timeval brief = {0, 2000};
  struct site site;
  int retries;
  for (retries = 0; retries < 3; ++retries) {
    start_site(&site);
    close(site.listener);
    evhttp_connection_set_retries(site.client, retries);
    evhttp_connection_set_initial_retry_tv(site.client, &brief);
    ask(&site, EVHTTP_REQ_GET, "/1");
    ask(&site, EVHTTP_REQ_GET, "/2");
    run_until(site.base, &site.ended, 2);
    site.listener = -1;
    stop_site(&site);
  }
}

/* A server that is started while the client tries again. */
static void retried(void) {
  static const struct timeval brief = {0, 50000};
  struct site site;
  struct sockaddr_in address;
  int fd;
  start_site(&site);
  close(site.listener);
  evhttp_connection_set_retries(site.client, -1);
  evhttp_connection_set_initial_retry_tv(site.client, &brief);
  ask(&site, EVHTTP_REQ_GET, "/again");
  settle(site.base);
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_port = htons(site.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  site.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  need(evutil_make_listen_socket_reuseable(site.listener) == 0, "SO_REUSEADDR");
  need(bind(site.listener, (struct sockaddr*)&address, sizeof address) == 0, "bind");
  need(listen(site.listener, 16) == 0, "listen");
  fd = await_client(&site);
  hear(site.base, fd, "\r\n\r\n");
  talk(fd, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
  run_until(site.base, &site.ended, 1);
  close(fd);
  stop_site(&site);
}

const struct section client_sections[] = {{"evhttp responses", responses},
                                          {"evhttp odd responses", odd_responses},
                                          {"evhttp bad responses", bad_responses},
                                          {"evhttp verdicts about heads", verdicts},
                                          {"evhttp limits of clients", limits},
                                          {"evhttp timeouts of clients", timeouts},
                                          {"evhttp refused connections", refused},
                                          {"evhttp retried connections", retried},
                                          {NULL, NULL}};
