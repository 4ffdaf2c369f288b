/* A walk through evhttp: servers, clients, and both. One side may be a socket, whose bytes the walk
   writes and prints. */
#ifndef WALK_EVHTTP_H
#define WALK_EVHTTP_H

#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>

#include "walks/walk_buffer.h"

extern const struct section reply_sections[];
extern const struct section body_sections[];
extern const struct section host_sections[];
extern const struct section client_sections[];
extern const struct section request_sections[];
extern const struct section rpc_sections[];

/* A server on a free port of 127.0.0.1. */
struct web {
  struct event_base* base;
  struct evhttp* http;
  struct evhttp_bound_socket* bound;
  int port;
};

void start_web(struct web* web);
void stop_web(struct web* web);

/* A socket that is connected to the server. */
int dial(const struct web* web);
void talk(int fd, const char* bytes);
void talk_bytes(int fd, const char* bytes, size_t size);
/* Runs the loop until what arrives contains `end`, or until its end if that is null, and prints it.
   The value of Date is not printed. */
void hear(struct event_base* base, int fd, const char* end);
/* Runs the loop without waiting. */
void settle(struct event_base* base);
/* dial(), talk(), hear() until the end, close. */
void exchange(const struct web* web, const char* request);

/* A listening socket of 127.0.0.1, and a client of it. */
struct site {
  struct event_base* base;
  struct evhttp_connection* client;
  int listener;
  unsigned short port;
  int with_callbacks; /* For heads and chunks. */
  int verdict;        /* Of the callback for heads. */
  int ended;          /* The number of requests. */
};

void start_site(struct site* site);
void stop_site(struct site* site);
/* Runs the loop until the client has connected. */
int await_client(struct site* site);
/* Runs the loop until `*ended` is `count`. */
void run_until(struct event_base* base, const int* ended, int count);
/* Makes a request with on_response() and on_failure(). */
struct evhttp_request* ask(struct site* site, enum evhttp_cmd_type type, const char* target);
void on_response(struct evhttp_request* request, void* site);
void on_failure(enum evhttp_request_error error, void* site);

const char* method_name(enum evhttp_cmd_type type);
/* Prints what the accessors of a request return, and its fields. */
void describe(struct evhttp_request* request);
/* Prints the request, and answers it with 200 and its path. */
void echo(struct evhttp_request* request, void* name);
void on_complete(struct evhttp_request* request, void* name);
void on_close(struct evhttp_connection* connection, void* name);

#endif
