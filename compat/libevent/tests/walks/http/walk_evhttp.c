/* What the sections about evhttp share. */
#define _GNU_SOURCE
#include "walk_evhttp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

const struct section* const all_sections[] = {
    reply_sections,   body_sections, host_sections, client_sections,
    request_sections, rpc_sections,  NULL};

static int port_of(int fd) {
  struct sockaddr_in address;
  socklen_t size = sizeof address;
  need(getsockname(fd, (struct sockaddr*)&address, &size) == 0, "getsockname");
  return ntohs(address.sin_port);
}

void start_web(struct web* web) {
  web->base = event_base_new();
  web->http = evhttp_new(web->base);
  web->bound = evhttp_bind_socket_with_handle(web->http, "127.0.0.1", 0);
  need(web->bound != NULL, "evhttp_bind_socket_with_handle");
  web->port = port_of(evhttp_bound_socket_get_fd(web->bound));
}

void stop_web(struct web* web) {
  evhttp_free(web->http);
  event_base_free(web->base);
}

int dial(const struct web* web) {
  struct sockaddr_in address;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_port = htons((unsigned short)web->port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  need(connect(fd, (struct sockaddr*)&address, sizeof address) == 0, "connect");
  return fd;
}

void talk_bytes(int fd, const char* bytes, size_t size) {
  need(send(fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size, "send");
}
void talk(int fd, const char* bytes) { talk_bytes(fd, bytes, strlen(bytes)); }

void settle(struct event_base* base) {
  int i;
  for (i = 0; i < 10; ++i) event_base_loop(base, EVLOOP_NONBLOCK);
}

static void print_lines(char* text) {
  char* line;
  for (line = text; *line != '\0';) {
    char* end = strchr(line, '\n');
    char* next = end != NULL ? end + 1 : line + strlen(line);
    if (end != NULL) *end = '\0';
    if (end != NULL && end > line && end[-1] == '\r') end[-1] = '\0';
    say("    < %s", strncmp(line, "Date: ", 6) == 0 ? "Date" : line);
    line = next;
  }
}

void hear(struct event_base* base, int fd, const char* end) {
  enum { seconds_max = 20 };
  static char text[1 << 20];
  size_t size = 0;
  ssize_t n = -1;
  const time_t begin = time(NULL);
  text[0] = '\0';
  while (end == NULL || strstr(text, end) == NULL) {
    struct pollfd waiting = {fd, POLLIN, 0};
    event_base_loop(base, EVLOOP_NONBLOCK);
    n = recv(fd, text + size, sizeof text - 1 - size, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN)) break;
    if (n > 0) {
      size += (size_t)n;
      text[size] = '\0';
    } else {
      poll(&waiting, 1, 1);
    }
    if (time(NULL) - begin > seconds_max) break;
  }
  settle(base);
  print_lines(text);
  if (n == 0) say("    < end");
  if (n < 0) say("    < error %d", errno);
}

void exchange(const struct web* web, const char* request) {
  int fd = dial(web);
  talk(fd, request);
  hear(web->base, fd, NULL);
  close(fd);
}

const char* method_name(enum evhttp_cmd_type type) {
  static const struct {
    enum evhttp_cmd_type type;
    const char* name;
  } all[] = {
      {EVHTTP_REQ_GET, "GET"},     {EVHTTP_REQ_POST, "POST"},       {EVHTTP_REQ_HEAD, "HEAD"},
      {EVHTTP_REQ_PUT, "PUT"},     {EVHTTP_REQ_DELETE, "DELETE"},   {EVHTTP_REQ_OPTIONS, "OPTIONS"},
      {EVHTTP_REQ_TRACE, "TRACE"}, {EVHTTP_REQ_CONNECT, "CONNECT"}, {EVHTTP_REQ_PATCH, "PATCH"}};
  size_t i;
  for (i = 0; i < sizeof all / sizeof *all; ++i)
    if (all[i].type == type) return all[i].name;
  return "unknown";
}

static const char* text_or_null(const char* text) { return text != NULL ? text : "(null)"; }

void describe(struct evhttp_request* request) {
  struct evkeyval* field;
  const struct evhttp_uri* uri = evhttp_request_get_evhttp_uri(request);
  say("  %s %s HTTP/%d.%d, host %s, flags %x, kind %d",
      method_name(evhttp_request_get_command(request)),
      text_or_null(evhttp_request_get_uri(request)), request->major, request->minor,
      text_or_null(evhttp_request_get_host(request)), (unsigned)request->flags, request->kind);
  if (uri != NULL)
    say("    scheme %s, host %s, port %d, path %s, query %s",
        text_or_null(evhttp_uri_get_scheme(uri)), text_or_null(evhttp_uri_get_host(uri)),
        evhttp_uri_get_port(uri), text_or_null(evhttp_uri_get_path(uri)),
        text_or_null(evhttp_uri_get_query(uri)));
  TAILQ_FOREACH(field, evhttp_request_get_input_headers(request), next)
  say("    > %s: %s", field->key, strcmp(field->key, "Date") == 0 ? "now" : field->value);
  say("    from %s, head %zu, body %zu, code %d %s", text_or_null(request->remote_host),
      request->headers_size, request->body_size, evhttp_request_get_response_code(request),
      text_or_null(evhttp_request_get_response_code_line(request)));
  show("  body", evhttp_request_get_input_buffer(request));
}

void on_complete(struct evhttp_request* request, void* name) {
  say("  %s: complete, code %d", (const char*)name, evhttp_request_get_response_code(request));
}

void on_close(struct evhttp_connection* connection, void* name) {
  char* address;
  ev_uint16_t port;
  evhttp_connection_get_peer(connection, &address, &port);
  say("  %s: connection of %s closed", (const char*)name, address);
}

void echo(struct evhttp_request* request, void* name) {
  struct evbuffer* body = evbuffer_new();
  evbuffer_add_printf(body, "%s: %s\n", (const char*)name, evhttp_request_get_uri(request));
  say("  %s:", (const char*)name);
  describe(request);
  evhttp_request_set_on_complete_cb(request, on_complete, name);
  evhttp_send_reply(request, HTTP_OK, "OK",
                    evhttp_request_get_command(request) == EVHTTP_REQ_HEAD ? NULL : body);
  evbuffer_free(body);
}
