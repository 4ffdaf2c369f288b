// evrpc: calls of remote procedures over evhttp. Bodies are messages of event2/tag.h.
//
// The user sees a request of a server as a structure that EVRPC_HEADER defines; its members are
// those of evrpc_req_generic.
#pragma once

#include <sys/queue.h>

#include <cstddef>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/rpc.h>
#include <event2/rpc_struct.h>

#include "libevent/http/connection.h"

/// What hooks store with a request.
struct evrpc_hook_meta {
  struct Entry {
    TAILQ_ENTRY(Entry) next;
    char* key;
    void* data;
    std::size_t size;
  };
  TAILQ_HEAD(, Entry) entries;
  evhttp_connection* connection;
};

namespace tambour::libevent {

using Resumed = void (*)(void* context, EVRPC_HOOK_RESULT result);

struct RpcHook {
  TAILQ_ENTRY(RpcHook) next;
  int (*function)(void*, evhttp_request*, evbuffer*, void*);
  void* argument;
};

/// A request that a hook has paused.
struct PausedRequest {
  TAILQ_ENTRY(PausedRequest) next;
  void* context;
  Resumed resumed;
};

/// The first part of a base and of a pool: the user passes both to the same functions.
struct RpcHooks {
  TAILQ_HEAD(List, RpcHook);
  List input;
  List output;
  TAILQ_HEAD(, PausedRequest) paused;

  void init() noexcept;
  void clear() noexcept;
  [[nodiscard]] bool pause(void* context, Resumed resumed) noexcept;
};

/// The first part of a request of a server and of one of a client: hooks get a pointer to it.
struct RpcContext {
  evrpc_hook_meta* meta;

  void free_meta() noexcept;
  /// Invokes hooks until one does not continue. On lack of memory, terminates the request.
  [[nodiscard]] int run_hooks(RpcHooks::List& hooks, evhttp_request& request, evbuffer* body,
                              evhttp_connection* connection) noexcept;
};

/// The target of a procedure, or null if there is no memory.
[[nodiscard]] char* rpc_target(const char* name) noexcept;

}  // namespace tambour::libevent

struct evrpc_base : tambour::libevent::RpcHooks {
  evhttp* http;
  TAILQ_HEAD(, evrpc) procedures;
};

/// A request of a server.
struct evrpc_req_generic : tambour::libevent::RpcContext {
  void* request;
  void* reply;
  evrpc* rpc;
  evhttp_request* http_request;
  evbuffer* body;  ///< Of the response.
};

extern "C" void evrpc_reqstate_free_(evrpc_req_generic* state);

/// A request of a client.
struct evrpc_request_wrapper : tambour::libevent::RpcContext {
  TAILQ_ENTRY(evrpc_request_wrapper) next;
  evrpc_pool* pool;
  evhttp_connection* connection;
  evhttp_request* http_request;
  event timeout;
  char* name;
  void (*callback)(evrpc_status*, void*, void*, void*);
  void* argument;
  void* request;
  void* reply;
  void (*marshal)(evbuffer*, void*);
  void (*clear)(void*);
  int (*unmarshal)(void*, evbuffer*);
};

/// The connections of clients, and the requests that wait for one.
struct evrpc_pool : tambour::libevent::RpcHooks {
  event_base* base;
  TAILQ_HEAD(, evhttp_connection) connections;
  TAILQ_HEAD(, evrpc_request_wrapper) waiting;
  TAILQ_HEAD(, evrpc_request_wrapper) sent;  ///< Or paused.
  int timeout;                               ///< In seconds; -1: none.
  int references;                            ///< The user's, and those of callbacks in progress.
  bool freed;
};
