/* Bodies of requests, limits, and requests that are rejected. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "walk_evhttp.h"

static char root[] = "root";

static const char* const posts[] = {
    "POST /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 11\r\n\r\nhello world",
    "PUT /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    "5\r\nhello\r\n1\r\n \r\n005\r\nworld\r\n0\r\n\r\n",
    "POST /c HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: Chunked\r\n\r\n"
    "A\r\n0123456789\r\n0\r\nX-Trailer: discarded\r\n\r\n",
    "POST /d HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    "POST /e HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "DELETE /f HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nxy",
    "GET /g HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nxy"};

static void whole(void) {
  struct web web;
  size_t i;
  start_web(&web);
  evhttp_set_gencb(web.http, echo, root);
  for (i = 0; i < sizeof posts / sizeof *posts; ++i) exchange(&web, posts[i]);
  stop_web(&web);
}

/* Byte by byte. */
static void divided(void) {
  struct web web;
  size_t i, k;
  start_web(&web);
  evhttp_set_gencb(web.http, echo, root);
  for (i = 0; i < sizeof posts / sizeof *posts; ++i) {
    int fd = dial(&web);
    for (k = 0; posts[i][k] != '\0'; ++k) {
      talk_bytes(fd, posts[i] + k, 1);
      event_base_loop(web.base, EVLOOP_NONBLOCK);
    }
    hear(web.base, fd, NULL);
    close(fd);
  }
  stop_web(&web);
}

static void expectations(void) {
  static const char head[] = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
  struct web web;
  int fd, i;
  char request[256];
  start_web(&web);
  evhttp_set_gencb(web.http, echo, root);
  for (i = 0; i < 2; ++i) {
    fd = dial(&web);
    talk(fd, head);
    talk(fd, i ? "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
               : "Expect: 100-Continue\r\nContent-Length: 5\r\n\r\n");
    hear(web.base, fd, "100 Continue\r\n\r\n");
    talk(fd, i ? "5\r\nhello\r\n0\r\n\r\n" : "hello");
    hear(web.base, fd, NULL);
    close(fd);
  }
  say(" the body follows at once");
  snprintf(request, sizeof request, "%sExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
           head);
  exchange(&web, request);
  say(" no body");
  snprintf(request, sizeof request, "%sExpect: 100-continue\r\n\r\n", head);
  exchange(&web, request);
  say(" HTTP/1.0");
  exchange(&web, "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello");
  say(" another expectation");
  snprintf(request, sizeof request, "%sExpect: tea\r\nContent-Length: 5\r\n\r\n", head);
  exchange(&web, request);
  say(" too large");
  evhttp_set_max_body_size(web.http, 4);
  snprintf(request, sizeof request, "%sExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", head);
  exchange(&web, request);
  stop_web(&web);
}

static void body_limits(void) {
  static const char* const formats[] = {
      "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%.*s",
      "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
      "%x\r\n%.*s\r\n0\r\n\r\n"};
  struct web web;
  char request[256];
  size_t i;
  int size, lingers;
  start_web(&web);
  evhttp_set_gencb(web.http, echo, root);
  for (lingers = 0; lingers < 2; ++lingers) {
    SAY(evhttp_set_flags(web.http, lingers ? EVHTTP_SERVER_LINGERING_CLOSE : 0));
    SAY(evhttp_set_flags(web.http, 0x100));
    for (i = 0; i < sizeof formats / sizeof *formats; ++i) {
      for (size = 8; size < 12; ++size) {
        evhttp_set_max_body_size(web.http, 10);
        snprintf(request, sizeof request, formats[i], size, size, "0123456789abcdef");
        exchange(&web, request);
      }
    }
  }
  evhttp_set_max_body_size(web.http, -1);
  exchange(&web, posts[0]);
  stop_web(&web);
}

static void head_limits(void) {
  static const char request[] = "GET /path HTTP/1.1\r\nX: 123456789\r\nConnection: close\r\n\r\n";
  struct web web;
  int limit;
  start_web(&web);
  evhttp_set_gencb(web.http, echo, root);
  for (limit = 14; limit < 60; ++limit) {
    say(" %d", limit);
    evhttp_set_max_headers_size(web.http, limit);
    exchange(&web, request);
  }
  evhttp_set_max_headers_size(web.http, 20);
  say(" a line without an end");
  exchange(&web, "GET /a-path-that-is-too-long");
  say(" a field without an end");
  exchange(&web, "GET / HTTP/1.1\r\nX: a-field-that-is-too-long");
  evhttp_set_max_headers_size(web.http, -1);
  exchange(&web, request);
  stop_web(&web);
}

static void rejected(void) {
  static const char* const requests[] = {
      "GET / HTTP/1.1\r\nHost\r\n\r\n",
      "GET / HTTP/3.1\r\nHost: a\r\n\r\n",
      "GET / HTTX/1.1\r\nHost: a\r\n\r\n",
      "GET / HTTP/1.1.1\r\nHost: a\r\n\r\n",
      "GET\r\nHost: a\r\n\r\n",
      "GET /no-version\r\nHost: a\r\n\r\n",
      "nonsense that is no request\r\n\r\n",
      "GET http://[bad/ HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET http://a:99999/ HTTP/1.1\r\nHost: a\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
      "chunked\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: 1x\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length:\r\n\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nno colon\r\n\r\n"};
  struct web web;
  size_t i;
  start_web(&web);
  evhttp_set_gencb(web.http, echo, root);
  for (i = 0; i < sizeof requests / sizeof *requests; ++i) {
    say(" %zu", i);
    exchange(&web, requests[i]);
  }
  stop_web(&web);
}

/* Connections that end within a request. */
static void ends(void) {
  static const char request[] = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab";
  struct web web;
  size_t size;
  start_web(&web);
  evhttp_set_gencb(web.http, echo, root);
  for (size = 0; size < sizeof request; size += 7) {
    int fd = dial(&web);
    talk_bytes(fd, request, size < sizeof request - 1 ? size : sizeof request - 1);
    settle(web.base);
    close(fd);
    settle(web.base);
  }
  stop_web(&web);
}

const struct section body_sections[] = {{"evhttp bodies", whole},
                                        {"evhttp divided bodies", divided},
                                        {"evhttp expectations", expectations},
                                        {"evhttp limits of bodies", body_limits},
                                        {"evhttp limits of heads", head_limits},
                                        {"evhttp rejected requests", rejected},
                                        {"evhttp ends within requests", ends},
                                        {NULL, NULL}};
