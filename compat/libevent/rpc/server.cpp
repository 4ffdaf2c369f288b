// Servers of evrpc.

#include "libevent/http/server.h"

#include <sys/queue.h>

#include <cstring>
#include <new>
#include <string_view>

#include <event2/buffer.h>
#include <event2/tag.h>

#include "libevent/event/core.h"
#include "libevent/rpc/rpc.h"

extern "C" void evtag_init(void);

using tambour::libevent::PausedRequest;
using tambour::libevent::rpc_target;

namespace {

void fail(evrpc_req_generic* state) noexcept {
  evhttp_request* const request = state->http_request;
  evrpc_reqstate_free_(state);
  evhttp_send_error(request, HTTP_SERVUNAVAIL, nullptr);
}

/// Decodes the request, and invokes the callback of the procedure.
void invoke(void* context, EVRPC_HOOK_RESULT result) noexcept {
  auto* const state = static_cast<evrpc_req_generic*>(context);
  const evrpc& rpc = *state->rpc;
  if (result == EVRPC_TERMINATE) return fail(state);
  state->request = rpc.request_new(rpc.request_new_arg);
  if (state->request == nullptr ||
      rpc.request_unmarshal(state->request, state->http_request->input_buffer) == -1)
    return fail(state);
  state->reply = rpc.reply_new(rpc.reply_new_arg);
  if (state->reply == nullptr) return fail(state);
  rpc.cb(state, rpc.cb_arg);
}

void send(void* context, EVRPC_HOOK_RESULT result) noexcept {
  auto* const state = static_cast<evrpc_req_generic*>(context);
  evhttp_request* const request = state->http_request;
  if (result == EVRPC_TERMINATE) return fail(state);
  if (evhttp_find_header(request->output_headers, "Content-Type") == nullptr &&
      evhttp_add_header(request->output_headers, "Content-Type", "application/octet-stream") != 0)
    return fail(state);
  evhttp_send_reply(request, HTTP_OK, "OK", state->body);
  evrpc_reqstate_free_(state);
}

void on_request(evhttp_request* request, void* argument) {
  auto* const rpc = static_cast<evrpc*>(argument);
  const bool is_call = tambour::libevent::type_of(*request) == EVHTTP_REQ_POST &&
                       evbuffer_get_length(request->input_buffer) != 0;
  void* const memory = is_call ? event_mm_calloc_(1, sizeof(evrpc_req_generic)) : nullptr;
  if (memory == nullptr) return evhttp_send_error(request, HTTP_SERVUNAVAIL, nullptr);
  auto* const state = new (memory) evrpc_req_generic{};
  state->rpc = rpc;
  state->http_request = request;
  const int result =
      state->run_hooks(rpc->base->input, *request, request->input_buffer, request->evcon);
  if (result == EVRPC_CONTINUE) return invoke(state, EVRPC_CONTINUE);
  if (result != EVRPC_PAUSE || !rpc->base->pause(state, &invoke)) fail(state);
}

void free_procedure(evrpc* rpc) noexcept {
  event_mm_free_(const_cast<char*>(rpc->uri));
  event_mm_free_(rpc);
}

}  // namespace

char* tambour::libevent::rpc_target(const char* name) noexcept {
  constexpr std::string_view prefix = "/.rpc.";
  const std::size_t size = std::strlen(name) + 1;
  auto* const target = static_cast<char*>(event_mm_malloc_(prefix.size() + size));
  if (target == nullptr) return nullptr;
  prefix.copy(target, prefix.size());
  std::memcpy(target + prefix.size(), name, size);
  return target;
}

evrpc_base* evrpc_init(evhttp* server) {
  void* const memory = event_mm_calloc_(1, sizeof(evrpc_base));
  if (memory == nullptr) return nullptr;
  auto* const created = new (memory) evrpc_base{};
  evtag_init();
  created->init();
  TAILQ_INIT(&created->procedures);
  created->http = server;
  return created;
}

void evrpc_free(evrpc_base* base) {
  while (PausedRequest* const paused = TAILQ_FIRST(&base->paused))
    evrpc_resume_request(base, paused->context, EVRPC_TERMINATE);
  while (const evrpc* const rpc = TAILQ_FIRST(&base->procedures))
    evrpc_unregister_rpc(base, rpc->uri);
  base->clear();
  event_mm_free_(base);
}

int evrpc_register_rpc(evrpc_base* base, evrpc* rpc, void (*cb)(evrpc_req_generic*, void*),
                       void* cb_arg) {
  char* const target = rpc_target(rpc->uri);
  if (target == nullptr) return -1;
  rpc->base = base;
  rpc->cb = cb;
  rpc->cb_arg = cb_arg;
  const int result = evhttp_set_cb(base->http, target, &on_request, rpc);
  event_mm_free_(target);
  if (result != 0) return -1;
  TAILQ_INSERT_TAIL(&base->procedures, rpc, next);
  return 0;
}

int evrpc_unregister_rpc(evrpc_base* base, const char* name) {
  evrpc* rpc = nullptr;
  TAILQ_FOREACH(rpc, &base->procedures, next) {
    if (std::strcmp(rpc->uri, name) == 0) break;
  }
  if (rpc == nullptr) return -1;
  TAILQ_REMOVE(&base->procedures, rpc, next);
  base->http->remove_callbacks(rpc);
  free_procedure(rpc);
  return 0;
}

int evrpc_register_generic(evrpc_base* base, const char* name,
                           void (*callback)(evrpc_req_generic*, void*), void* cbarg,
                           void* (*req_new)(void*), void* req_new_arg, void (*req_free)(void*),
                           int (*req_unmarshal)(void*, evbuffer*), void* (*rpl_new)(void*),
                           void* rpl_new_arg, void (*rpl_free)(void*), int (*rpl_complete)(void*),
                           void (*rpl_marshal)(evbuffer*, void*)) {
  auto* const rpc = static_cast<evrpc*>(event_mm_calloc_(1, sizeof(evrpc)));
  if (rpc == nullptr) return -1;
  rpc->uri = event_mm_strdup_(name);
  if (rpc->uri == nullptr) {
    event_mm_free_(rpc);
    return -1;
  }
  rpc->request_new = req_new;
  rpc->request_new_arg = req_new_arg;
  rpc->request_free = req_free;
  rpc->request_unmarshal = req_unmarshal;
  rpc->reply_new = rpl_new;
  rpc->reply_new_arg = rpl_new_arg;
  rpc->reply_free = rpl_free;
  rpc->reply_complete = rpl_complete;
  rpc->reply_marshal = rpl_marshal;
  if (evrpc_register_rpc(base, rpc, callback, cbarg) == 0) return 0;
  free_procedure(rpc);
  return -1;
}

void evrpc_request_done(evrpc_req_generic* req) {
  const evrpc& rpc = *req->rpc;
  if (rpc.reply_complete(req->reply) == -1) return fail(req);
  req->body = evbuffer_new();
  if (req->body == nullptr) return fail(req);
  rpc.reply_marshal(req->body, req->reply);
  const int result =
      req->run_hooks(rpc.base->output, *req->http_request, req->body, req->http_request->evcon);
  if (result == EVRPC_CONTINUE) return send(req, EVRPC_CONTINUE);
  if (result != EVRPC_PAUSE || !rpc.base->pause(req, &send)) fail(req);
}

void* evrpc_get_request(evrpc_req_generic* req) { return req->request; }
void* evrpc_get_reply(evrpc_req_generic* req) { return req->reply; }

void evrpc_reqstate_free_(evrpc_req_generic* state) {
  state->free_meta();
  if (state->request != nullptr) state->rpc->request_free(state->request);
  if (state->reply != nullptr) state->rpc->reply_free(state->reply);
  if (state->body != nullptr) evbuffer_free(state->body);
  event_mm_free_(state);
}
