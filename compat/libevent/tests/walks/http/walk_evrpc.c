/* evrpc: procedures, pools, hooks, and errors. The messages are those of event2/tag.h, written by
   hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <event2/event_compat.h>
#include <event2/http_compat.h>
#include <event2/rpc.h>
#include <event2/rpc_struct.h>
#include <event2/tag.h>

#include "walk_evhttp.h"

/* A message with one number, which has to be set. */
struct number {
  ev_uint32_t value;
  int is_set;
};

static int live;

static void* number_new_with_arg(void* argument) {
  (void)argument;
  ++live;
  return calloc(1, sizeof(struct number));
}
static void number_free(struct number* number) {
  --live;
  free(number);
}
static void number_clear(struct number* number) { memset(number, 0, sizeof *number); }
static int number_complete(struct number* number) { return number->is_set ? 0 : -1; }
static void number_marshal(struct evbuffer* to, const struct number* number) {
  evtag_marshal_int(to, 1, number->value);
}
static int number_unmarshal(struct number* number, struct evbuffer* from) {
  number->is_set = evtag_unmarshal_int(from, 1, &number->value) != -1;
  return number->is_set ? 0 : -1;
}

EVRPC_HEADER(Double, number, number)
EVRPC_GENERATE(Double, number, number)

struct calls {
  struct web web;
  struct event_base* global;
  struct evrpc_base* rpc;
  struct evrpc_pool* pool;
  struct evhttp_connection* connection;
  EVRPC_STRUCT(Double) * kept;
  int ended;
  int result; /* Of the hooks. */
  void* paused;
};

static void on_double(EVRPC_STRUCT(Double) * rpc, void* argument) {
  struct calls* calls = argument;
  struct number* const request = evrpc_get_request((struct evrpc_req_generic*)rpc);
  say("  called with %u: %d %d", (unsigned)request->value, request == rpc->request,
      EVRPC_REQUEST_HTTP(rpc) == rpc->http_req);
  rpc->reply->value = 2 * request->value;
  rpc->reply->is_set = request->value != 13;
  if (request->value == 7) {
    calls->kept = rpc;
  } else {
    EVRPC_REQUEST_DONE(rpc);
  }
}

static void on_reply(struct evrpc_status* status, struct number* request, struct number* reply,
                     void* argument) {
  struct calls* calls = argument;
  ++calls->ended;
  say("  %u: error %d, http %d, reply %u", (unsigned)request->value, status->error,
      status->http_req != NULL ? evhttp_request_get_response_code(status->http_req) : -1,
      (unsigned)reply->value);
}

static void start(struct calls* calls) {
  memset(calls, 0, sizeof *calls);
  /* The base of connections without one, until they are added to the pool. */
  calls->global = event_init();
  start_web(&calls->web);
  calls->rpc = evrpc_init(calls->web.http);
  SAY(EVRPC_REGISTER(calls->rpc, Double, number, number, on_double, calls));
  calls->pool = evrpc_pool_new(calls->web.base);
  calls->connection = evhttp_connection_new("127.0.0.1", (unsigned short)calls->web.port);
  evrpc_pool_add_connection(calls->pool, calls->connection);
}

static void stop(struct calls* calls) {
  evrpc_pool_free(calls->pool);
  settle(calls->web.base);
  evrpc_free(calls->rpc);
  stop_web(&calls->web);
  event_base_free(calls->global);
  SAY(live);
}

static void call(struct calls* calls, ev_uint32_t value) {
  static struct number requests[16], replies[16];
  static int used;
  struct number* const request = &requests[used % 16];
  struct number* const reply = &replies[used++ % 16];
  number_clear(reply);
  request->value = value;
  SAY(EVRPC_MAKE_REQUEST(Double, calls->pool, request, reply, on_reply, calls));
}

static void procedures(void) {
  struct calls calls;
  start(&calls);
  call(&calls, 1);
  run_until(calls.web.base, &calls.ended, 1);
  say(" queued");
  call(&calls, 2);
  call(&calls, 3);
  call(&calls, 13);
  call(&calls, 4);
  run_until(calls.web.base, &calls.ended, 5);
  say(" finished later");
  call(&calls, 7);
  settle(calls.web.base);
  while (calls.kept == NULL) settle(calls.web.base);
  EVRPC_REQUEST_DONE(calls.kept);
  run_until(calls.web.base, &calls.ended, 6);
  say(" unknown");
  SAY(EVRPC_UNREGISTER(calls.rpc, Double));
  SAY(EVRPC_UNREGISTER(calls.rpc, Double));
  call(&calls, 5);
  run_until(calls.web.base, &calls.ended, 7);
  stop(&calls);
}

static void bad_calls(void) {
  struct calls calls;
  start(&calls);
  exchange(&calls.web, "GET /.rpc.Double HTTP/1.1\r\nHost: a\r\n\r\n");
  exchange(&calls.web, "POST /.rpc.Double HTTP/1.1\r\nHost: a\r\n\r\n");
  exchange(&calls.web, "POST /.rpc.Double HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nnono");
  stop(&calls);
}

static int on_hook(void* context, struct evhttp_request* request, struct evbuffer* body,
                   void* argument) {
  struct calls* calls = argument;
  void* data = NULL;
  size_t size = 0;
  say("  hook: %d, body %zu, connection %d", request != NULL, evbuffer_get_length(body),
      evrpc_hook_get_connection(context) != NULL);
  SAY(evrpc_hook_find_meta(context, "none", &data, &size));
  evrpc_hook_add_meta(context, "key", "value", 6);
  SAY(evrpc_hook_find_meta(context, "key", &data, &size));
  say("  %s, %zu", (const char*)data, size);
  calls->paused = context;
  return calls->result;
}

static void hooks(void) {
  static const int results[] = {EVRPC_CONTINUE, EVRPC_TERMINATE, EVRPC_PAUSE, EVRPC_PAUSE};
  struct calls calls;
  size_t i;
  int side, type;
  for (side = 0; side < 2; ++side) {
    for (type = EVRPC_INPUT; type <= EVRPC_OUTPUT; ++type) {
      for (i = 0; i < sizeof results / sizeof *results; ++i) {
        void* hook;
        void* where;
        say(" side %d, type %d, %zu", side, type, i);
        start(&calls);
        calls.result = results[i];
        where = side ? (void*)calls.pool : (void*)calls.rpc;
        hook = evrpc_add_hook(where, (enum EVRPC_HOOK_TYPE)type, on_hook, &calls);
        call(&calls, 20);
        if (results[i] == EVRPC_PAUSE) {
          while (calls.paused == NULL) settle(calls.web.base);
          SAY(calls.ended);
          SAY(evrpc_resume_request(where, &calls, EVRPC_CONTINUE));
          SAY(evrpc_resume_request(where, calls.paused, i == 2 ? EVRPC_CONTINUE : EVRPC_TERMINATE));
        }
        run_until(calls.web.base, &calls.ended, 1);
        SAY(evrpc_remove_hook(where, (enum EVRPC_HOOK_TYPE)type, hook));
        SAY(evrpc_remove_hook(where, (enum EVRPC_HOOK_TYPE)type, hook));
        stop(&calls);
      }
    }
  }
}

static void pools(void) {
  struct calls calls;
  struct number request = {9, 1}, reply = {0, 0};
  struct evrpc_request_wrapper* context;
  start(&calls);
  say(" timeout");
  evrpc_pool_set_timeout(calls.pool, 2);
  call(&calls, 7);
  run_until(calls.web.base, &calls.ended, 1);
  evrpc_pool_set_timeout(calls.pool, 100);
  say(" context");
  context = EVRPC_MAKE_CTX(Double, number, number, calls.pool, &request, &reply, on_reply, NULL);
  SAY(evrpc_request_get_pool(context) == calls.pool);
  evrpc_request_set_pool(context, calls.pool);
  evrpc_request_set_cb(
      context, (void (*)(struct evrpc_status*, void*, void*, void*))(void (*)(void))on_reply,
      &calls);
  SAY(evrpc_make_request(context));
  run_until(calls.web.base, &calls.ended, 2);
  say(" another connection");
  evrpc_pool_remove_connection(calls.pool, calls.connection);
  evhttp_connection_free(calls.connection);
  evrpc_pool_add_connection(calls.pool,
                            evhttp_connection_new("127.0.0.1", (unsigned short)calls.web.port));
  call(&calls, 10);
  run_until(calls.web.base, &calls.ended, 3);
  if (calls.kept != NULL) EVRPC_REQUEST_DONE(calls.kept);
  stop(&calls);
}

const struct section rpc_sections[] = {{"evrpc procedures", procedures},
                                       {"evrpc bad calls", bad_calls},
                                       {"evrpc hooks", hooks},
                                       {"evrpc pools", pools},
                                       {NULL, NULL}};
