// Clients of evrpc: pools of connections.
//
// A request is in one of the lists of its pool until its callback is invoked.

#include <sys/queue.h>

#include <cstring>
#include <new>

#include <event2/buffer.h>

#include "libevent/event/core.h"
#include "libevent/rpc/rpc.h"

using tambour::libevent::PausedRequest;
using tambour::libevent::rpc_target;

extern "C" {
void evhttp_connection_fail_(evhttp_connection* connection, evhttp_request_error error);
void evhttp_connection_set_base(evhttp_connection* connection, event_base* base);
}

namespace {

/// Keeps the memory of a pool while a callback of the user may free it.
class KeptPool {
 public:
  explicit KeptPool(evrpc_pool& pool) noexcept : pool_(pool) { ++pool_.references; }
  KeptPool(const KeptPool&) = delete;
  KeptPool& operator=(const KeptPool&) = delete;
  ~KeptPool() {
    if (--pool_.references == 0) event_mm_free_(&pool_);
  }

 private:
  evrpc_pool& pool_;
};

void free_request(evrpc_request_wrapper& request) noexcept {
  request.free_meta();
  if (event_initialized(&request.timeout) != 0) event_del(&request.timeout);
  event_mm_free_(request.name);
  event_mm_free_(&request);
}

/// Invokes the callback of a request that is in no list, and frees the request.
void finish(evrpc_request_wrapper& request, int error, evhttp_request* http_request) noexcept {
  evrpc_status status{};
  status.error = error;
  status.http_req = http_request;
  event_del(&request.timeout);
  request.callback(&status, request.request, request.reply, request.argument);
  free_request(request);
}

void send_waiting(evrpc_pool& pool) noexcept;

/// Ends a request that has not been sent.
void refuse(evrpc_request_wrapper& request) noexcept {
  TAILQ_REMOVE(&request.pool->sent, &request, next);
  if (request.http_request != nullptr) evhttp_request_free(request.http_request);
  finish(request, EVRPC_STATUS_ERR_UNSTARTED, nullptr);
}

void on_reply_resumed(void* context, EVRPC_HOOK_RESULT result) noexcept {
  auto& request = *static_cast<evrpc_request_wrapper*>(context);
  evrpc_pool& pool = *request.pool;
  const KeptPool kept(pool);
  evhttp_request* const reply = request.http_request;
  int error = EVRPC_STATUS_ERR_NONE;
  if (reply == nullptr) {
    error = EVRPC_STATUS_ERR_TIMEOUT;
  } else if (result == EVRPC_TERMINATE) {
    error = EVRPC_STATUS_ERR_HOOKABORTED;
  } else if (request.unmarshal(request.reply, reply->input_buffer) == -1) {
    error = EVRPC_STATUS_ERR_BADPAYLOAD;
  }
  if (error != EVRPC_STATUS_ERR_NONE) request.clear(request.reply);
  TAILQ_REMOVE(&pool.sent, &request, next);
  finish(request, error, reply);
  // It is owned if it was kept for a paused request.
  if (reply != nullptr && evhttp_request_is_owned(reply) != 0) evhttp_request_free(reply);
  if (!pool.freed) send_waiting(pool);
}

void on_reply(evhttp_request* reply, void* argument) {
  auto& request = *static_cast<evrpc_request_wrapper*>(argument);
  event_del(&request.timeout);
  request.http_request = reply;
  if (reply == nullptr) return on_reply_resumed(&request, EVRPC_CONTINUE);
  const int result =
      request.run_hooks(request.pool->input, *reply, reply->input_buffer, request.connection);
  if (result == EVRPC_PAUSE && request.pool->pause(&request, &on_reply_resumed))
    return evhttp_request_own(reply);
  on_reply_resumed(&request, result == EVRPC_CONTINUE ? EVRPC_CONTINUE : EVRPC_TERMINATE);
}

void on_timeout(evutil_socket_t /*fd*/, short /*what*/, void* argument) {
  auto& request = *static_cast<evrpc_request_wrapper*>(argument);
  if (request.connection != nullptr)
    evhttp_connection_fail_(request.connection, EVREQ_HTTP_TIMEOUT);
}

/// Returns false if the request was refused.
bool start(evrpc_request_wrapper& request, EVRPC_HOOK_RESULT result) noexcept {
  char* const target = result != EVRPC_TERMINATE && request.connection != nullptr
                           ? rpc_target(request.name)
                           : nullptr;
  if (target == nullptr) {
    refuse(request);
    return false;
  }
  if (request.pool->timeout > 0) {
    const timeval limit{request.pool->timeout, 0};
    event_add(&request.timeout, &limit);
  }
  evhttp_request* const sent = request.http_request;
  // The connection owns it from now on.
  request.http_request = nullptr;
  const int count = evhttp_make_request(request.connection, sent, EVHTTP_REQ_POST, target);
  event_mm_free_(target);
  if (count != 0) refuse(request);
  return count == 0;
}

void on_request_resumed(void* context, EVRPC_HOOK_RESULT result) noexcept {
  auto& request = *static_cast<evrpc_request_wrapper*>(context);
  evrpc_pool& pool = *request.pool;
  const KeptPool kept(pool);
  // Its connection is free for another one.
  if (!start(request, result) && !pool.freed) send_waiting(pool);
}

/// Takes a request that is in no list. Returns false if it was refused.
bool send(evhttp_connection& connection, evrpc_request_wrapper& request) noexcept {
  evrpc_pool& pool = *request.pool;
  TAILQ_INSERT_TAIL(&pool.sent, &request, next);
  request.connection = &connection;
  request.http_request = evhttp_request_new(&on_reply, &request);
  if (request.http_request == nullptr) {
    refuse(request);
    return false;
  }
  request.marshal(request.http_request->output_buffer, request.request);
  const int result = request.run_hooks(pool.output, *request.http_request,
                                       request.http_request->output_buffer, &connection);
  if (result == EVRPC_CONTINUE) return start(request, EVRPC_CONTINUE);
  if (result == EVRPC_PAUSE && pool.pause(&request, &on_request_resumed)) return true;
  refuse(request);
  return false;
}

evhttp_connection* idle_connection(const evrpc_pool& pool) noexcept {
  evhttp_connection* connection = nullptr;
  TAILQ_FOREACH(connection, &pool.connections, next) {
    if (connection->current() == nullptr) return connection;
  }
  return nullptr;
}

/// Sends one request, unless there is none or no connection for it.
void send_waiting(evrpc_pool& pool) noexcept {
  const KeptPool kept(pool);
  for (bool is_sent = false; !is_sent && !pool.freed;) {
    evrpc_request_wrapper* const request = TAILQ_FIRST(&pool.waiting);
    evhttp_connection* const connection = request != nullptr ? idle_connection(pool) : nullptr;
    if (connection == nullptr) return;
    TAILQ_REMOVE(&pool.waiting, request, next);
    is_sent = send(*connection, *request);
  }
}

}  // namespace

void tambour::libevent::leave_pool(evhttp_connection& connection) noexcept {
  evrpc_pool& pool = *connection.pool;
  connection.pool = nullptr;
  TAILQ_REMOVE(&pool.connections, &connection, next);
  evrpc_request_wrapper* request = nullptr;
  TAILQ_FOREACH(request, &pool.sent, next) {
    if (request->connection == &connection) request->connection = nullptr;
  }
}

evrpc_pool* evrpc_pool_new(event_base* base) {
  void* const memory = event_mm_calloc_(1, sizeof(evrpc_pool));
  if (memory == nullptr) return nullptr;
  auto* const created = new (memory) evrpc_pool{};
  created->init();
  TAILQ_INIT(&created->connections);
  TAILQ_INIT(&created->waiting);
  TAILQ_INIT(&created->sent);
  created->base = base;
  created->timeout = -1;
  created->references = 1;
  return created;
}

void evrpc_pool_free(evrpc_pool* pool) {
  const KeptPool kept(*pool);
  pool->freed = true;
  while (evrpc_request_wrapper* const request = TAILQ_FIRST(&pool->waiting)) {
    TAILQ_REMOVE(&pool->waiting, request, next);
    free_request(*request);
  }
  while (PausedRequest* const paused = TAILQ_FIRST(&pool->paused)) {
    const auto& request = *static_cast<evrpc_request_wrapper*>(paused->context);
    if (request.http_request != nullptr) evhttp_request_free(request.http_request);
    TAILQ_REMOVE(&pool->paused, paused, next);
    event_mm_free_(paused);
  }
  // Frees the requests that were sent, without invoking callbacks.
  while (evhttp_connection* const connection = TAILQ_FIRST(&pool->connections))
    evhttp_connection_free(connection);
  while (evrpc_request_wrapper* const request = TAILQ_FIRST(&pool->sent)) {
    TAILQ_REMOVE(&pool->sent, request, next);
    free_request(*request);
  }
  pool->clear();
  --pool->references;
}

void evrpc_pool_add_connection(evrpc_pool* pool, evhttp_connection* evcon) {
  TAILQ_INSERT_TAIL(&pool->connections, evcon, next);
  evcon->pool = pool;
  if (pool->base != nullptr && evcon->base != pool->base)
    evhttp_connection_set_base(evcon, pool->base);
  if (!evutil_timerisset(&evcon->timeout)) evhttp_connection_set_timeout(evcon, pool->timeout);
  send_waiting(*pool);
}

void evrpc_pool_remove_connection(evrpc_pool* pool, evhttp_connection* evcon) {
  TAILQ_REMOVE(&pool->connections, evcon, next);
  evcon->pool = nullptr;
}

void evrpc_pool_set_timeout(evrpc_pool* pool, int timeout_in_secs) {
  evhttp_connection* connection = nullptr;
  TAILQ_FOREACH(connection, &pool->connections, next)
  evhttp_connection_set_timeout(connection, timeout_in_secs);
  pool->timeout = timeout_in_secs;
}

evrpc_request_wrapper* evrpc_make_request_ctx(evrpc_pool* pool, void* request, void* reply,
                                              const char* rpcname,
                                              void (*req_marshal)(evbuffer*, void*),
                                              void (*rpl_clear)(void*),
                                              int (*rpl_unmarshal)(void*, evbuffer*),
                                              void (*cb)(evrpc_status*, void*, void*, void*),
                                              void* cbarg) {
  void* const memory = event_mm_calloc_(1, sizeof(evrpc_request_wrapper));
  if (memory == nullptr) return nullptr;
  auto* const created = new (memory) evrpc_request_wrapper{};
  created->name = event_mm_strdup_(rpcname);
  if (created->name == nullptr) {
    event_mm_free_(created);
    return nullptr;
  }
  created->pool = pool;
  created->callback = cb;
  created->argument = cbarg;
  created->request = request;
  created->reply = reply;
  created->marshal = req_marshal;
  created->clear = rpl_clear;
  created->unmarshal = rpl_unmarshal;
  return created;
}

int evrpc_make_request(evrpc_request_wrapper* ctx) {
  evrpc_pool& pool = *ctx->pool;
  event_assign(&ctx->timeout, pool.base, -1, 0, &on_timeout, ctx);
  TAILQ_INSERT_TAIL(&pool.waiting, ctx, next);
  send_waiting(pool);
  return 0;
}

int evrpc_send_request_generic(evrpc_pool* pool, void* request, void* reply,
                               void (*cb)(evrpc_status*, void*, void*, void*), void* cb_arg,
                               const char* rpcname, void (*req_marshal)(evbuffer*, void*),
                               void (*rpl_clear)(void*), int (*rpl_unmarshal)(void*, evbuffer*)) {
  evrpc_request_wrapper* const context = evrpc_make_request_ctx(
      pool, request, reply, rpcname, req_marshal, rpl_clear, rpl_unmarshal, cb, cb_arg);
  if (context != nullptr) return evrpc_make_request(context);
  evrpc_status status{};
  status.error = EVRPC_STATUS_ERR_UNSTARTED;
  cb(&status, request, reply, cb_arg);
  return -1;
}

evrpc_pool* evrpc_request_get_pool(evrpc_request_wrapper* ctx) { return ctx->pool; }
void evrpc_request_set_pool(evrpc_request_wrapper* ctx, evrpc_pool* pool) { ctx->pool = pool; }
void evrpc_request_set_cb(evrpc_request_wrapper* ctx,
                          void (*cb)(evrpc_status*, void* request, void* reply, void* arg),
                          void* cb_arg) {
  ctx->callback = cb;
  ctx->argument = cb_arg;
}
