/* Methods, versions, and responses. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "walk_evhttp.h"

static char root[] = "root";

static void methods(void) {
  static const char* const names[] = {"GET",   "POST",  "HEAD", "PUT", "DELETE", "OPTIONS",
                                      "TRACE", "PATCH", "FOO",  "get", "GETS"};
  struct web web;
  size_t i;
  int all;
  start_web(&web);
  evhttp_set_gencb(web.http, echo, root);
  for (all = 0; all < 2; ++all) {
    for (i = 0; i < sizeof names / sizeof *names; ++i) {
      char request[256];
      say(" %s", names[i]);
      snprintf(request, sizeof request,
               "%s /path?query HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", names[i]);
      exchange(&web, request);
    }
    evhttp_set_allowed_methods(web.http, 0x1ff);
  }
  stop_web(&web);
}

static void versions(void) {
  static const char* const requests[] = {
      "GET / HTTP/1.0\r\n\r\n",
      "GET / HTTP/1.0\r\nHost: a\r\nConnection: close\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
      "GET / HTTP/1.1\r\nConnection: close\r\n\r\n",
      "GET / HTTP/1.9\r\nHost: a\r\nConnection: close\r\n\r\n",
      "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
      "GET / HTTP/1.1   \r\nHost: a\r\nConnection: close\r\n\r\n",
      "GET http://other.example/x HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET http://other.example/x HTTP/1.1\r\nHost: a\r\nProxy-Connection: close\r\n\r\n",
      "GET https://other.example/x HTTP/1.0\r\nHost: a\r\n\r\n",
      "GET ftp://other.example/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
      "GET /?a=%20&b HTTP/1.1\r\nHost: a:80\r\nConnection: Close\r\n\r\n",
      "GET /[|] HTTP/1.1\r\nHost: \r\nConnection: close\r\n\r\n",
      "HEAD / HTTP/1.0\r\n\r\n"};
  struct web web;
  size_t i;
  start_web(&web);
  evhttp_set_gencb(web.http, echo, root);
  for (i = 0; i < sizeof requests / sizeof *requests; ++i) exchange(&web, requests[i]);
  stop_web(&web);
}

static void keep_alive(void) {
  struct web web;
  int fd, i;
  start_web(&web);
  evhttp_set_gencb(web.http, echo, root);
  fd = dial(&web);
  for (i = 0; i < 3; ++i) {
    talk(fd, "GET /again HTTP/1.1\r\nHost: a\r\n\r\n");
    hear(web.base, fd, "root: /again\n");
  }
  talk(fd, "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  hear(web.base, fd, NULL);
  close(fd);
  fd = dial(&web);
  for (i = 0; i < 2; ++i) {
    talk(fd, "GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    hear(web.base, fd, "root: /old\n");
  }
  talk(fd, "GET /old HTTP/1.0\r\n\r\n");
  hear(web.base, fd, NULL);
  close(fd);
  say(" pipelined");
  fd = dial(&web);
  talk(fd,
       "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n"
       "abcHEAD /3 HTTP/1.1\r\nHost: a\r\n\r\nGET /4 HTTP/1.1\r\nConnection: close\r\n\r\n");
  hear(web.base, fd, NULL);
  close(fd);
  stop_web(&web);
}

struct reply {
  int code;
  const char* reason;
  const char* body;
  const char* fields[6];
};

static void on_reply(struct evhttp_request* request, void* argument) {
  const struct reply* reply = argument;
  struct evbuffer* body = reply->body != NULL ? make(reply->body) : NULL;
  size_t i;
  for (i = 0; i + 1 < 6 && reply->fields[i] != NULL; i += 2)
    evhttp_add_header(evhttp_request_get_output_headers(request), reply->fields[i],
                      reply->fields[i + 1]);
  evhttp_send_reply(request, reply->code, reply->reason, body);
  if (body != NULL) {
    show("left", body);
    evbuffer_free(body);
  }
}

static void replies(void) {
  static struct reply all[] = {
      {200, "OK", "body\n", {NULL}},
      {200, NULL, "body\n", {"Content-Type", "text/plain", "X-A", "b"}},
      {200, NULL, "body\n", {"Connection", "close"}},
      {200, NULL, "body\n", {"Date", "today", "Server", "me", "Content-Length", "5"}},
      {201, "Made it", NULL, {"Location", "/x"}},
      {204, NULL, NULL, {NULL}},
      {304, NULL, NULL, {"ETag", "\"1\""}},
      {404, NULL, "no\n", {NULL}},
      {306, NULL, NULL, {NULL}},
      {307, NULL, NULL, {NULL}},
      {418, NULL, NULL, {NULL}},
      {499, NULL, NULL, {NULL}},
      {505, NULL, NULL, {NULL}},
      {599, NULL, NULL, {NULL}},
      {600, NULL, NULL, {NULL}},
      {999, "", "x\n", {NULL}}};
  static const char* const requests[] = {
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n",
      "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n"};
  struct web web;
  size_t i, k;
  start_web(&web);
  for (i = 0; i < sizeof all / sizeof *all; ++i) {
    evhttp_set_gencb(web.http, on_reply, &all[i]);
    for (k = 0; k < sizeof requests / sizeof *requests; ++k) exchange(&web, requests[k]);
    evhttp_set_default_content_type(web.http, i % 2 ? "application/x-walk" : NULL);
  }
  stop_web(&web);
}

static void on_error_reply(struct evhttp_request* request, void* argument) {
  const struct reply* reply = argument;
  evhttp_add_header(evhttp_request_get_output_headers(request), "X-Lost", "yes");
  evhttp_send_error(request, reply->code, reply->reason);
}

static void errors(void) {
  static struct reply all[] = {{400, NULL, NULL, {NULL}},
                               {404, "Gone & <away>", NULL, {NULL}},
                               {503, NULL, NULL, {NULL}},
                               {200, NULL, NULL, {NULL}},
                               {777, NULL, NULL, {NULL}}};
  struct web web;
  size_t i;
  start_web(&web);
  for (i = 0; i < sizeof all / sizeof *all; ++i) {
    evhttp_set_gencb(web.http, on_error_reply, &all[i]);
    exchange(&web, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    exchange(&web, "GET / HTTP/1.0\r\n\r\n");
  }
  evhttp_set_gencb(web.http, NULL, NULL);
  exchange(&web, "GET /none?<b>&\"'x HTTP/1.1\r\nHost: a\r\n\r\n");
  stop_web(&web);
}

static const char* parts[] = {"one\n", "", "three\n", "a longer part\n"};

static void on_part(struct evhttp_connection* connection, void* argument) {
  say("  a part was written: %d", evhttp_connection_get_server(connection) == argument);
}

static void on_parts(struct evhttp_request* request, void* argument) {
  struct evhttp* http = argument;
  size_t i;
  struct evbuffer* part = evbuffer_new();
  evhttp_request_set_on_complete_cb(request, on_complete, root);
  evhttp_send_reply_start(request, 200, "Parts");
  for (i = 0; i < sizeof parts / sizeof *parts; ++i) {
    evbuffer_add_printf(part, "%s", parts[i]);
    if (i == 2) {
      evhttp_send_reply_chunk_with_cb(request, part, on_part, http);
    } else {
      evhttp_send_reply_chunk(request, part);
    }
    evbuffer_drain(part, evbuffer_get_length(part));
  }
  evbuffer_free(part);
  evhttp_send_reply_end(request);
}

struct slow {
  struct event_base* base;
  struct evhttp_request* request;
  int left;
};

static void on_slow_part(evutil_socket_t fd, short what, void* argument) {
  static const struct timeval soon = {0, 1000};
  struct slow* slow = argument;
  struct evbuffer* part = make("slow part\n");
  (void)fd, (void)what;
  if (slow->left-- > 0) {
    evhttp_send_reply_chunk(slow->request, part);
    event_base_once(slow->base, -1, EV_TIMEOUT, on_slow_part, slow, &soon);
  } else {
    evhttp_send_reply_end(slow->request);
  }
  evbuffer_free(part);
}

static void on_slow(struct evhttp_request* request, void* argument) {
  struct slow* slow = argument;
  slow->request = request;
  slow->left = 3;
  evhttp_request_set_on_complete_cb(request, on_complete, root);
  evhttp_send_reply_start(request, 200, NULL);
  on_slow_part(-1, 0, slow);
}

static void on_sized(struct evhttp_request* request, void* argument) {
  struct evbuffer* part = make("12345\n");
  (void)argument;
  evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Length", "6");
  evhttp_send_reply_start(request, 200, NULL);
  evhttp_send_reply_chunk(request, part);
  evhttp_send_reply_end(request);
  evbuffer_free(part);
}

static void chunked(void) {
  static const char* const paths[] = {"/parts", "/slow", "/sized"};
  struct web web;
  struct slow slow;
  char request[128];
  size_t i;
  start_web(&web);
  slow.base = web.base;
  evhttp_set_cb(web.http, "/parts", on_parts, web.http);
  evhttp_set_cb(web.http, "/slow", on_slow, &slow);
  evhttp_set_cb(web.http, "/sized", on_sized, NULL);
  for (i = 0; i < sizeof paths / sizeof *paths; ++i) {
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
             paths[i]);
    exchange(&web, request);
    snprintf(request, sizeof request, "GET %s HTTP/1.0\r\n\r\n", paths[i]);
    exchange(&web, request);
    snprintf(request, sizeof request, "HEAD %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
             paths[i]);
    exchange(&web, request);
    snprintf(request, sizeof request,
             "GET %s HTTP/1.1\r\nHost: a\r\n\r\nGET %s HTTP/1.1\r\nConnection: close\r\n\r\n",
             paths[i], paths[i]);
    exchange(&web, request);
  }
  stop_web(&web);
}

const struct section reply_sections[] = {{"evhttp methods", methods},
                                         {"evhttp versions", versions},
                                         {"evhttp keep-alive", keep_alive},
                                         {"evhttp replies", replies},
                                         {"evhttp errors", errors},
                                         {"evhttp chunked", chunked},
                                         {NULL, NULL}};
