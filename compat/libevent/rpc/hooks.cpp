// Hooks of evrpc, and what they store with requests.

#include <sys/queue.h>

#include <cstring>
#include <new>

#include "libevent/event/core.h"
#include "libevent/rpc/rpc.h"

using tambour::libevent::PausedRequest;
using tambour::libevent::RpcContext;
using tambour::libevent::RpcHook;
using tambour::libevent::RpcHooks;

namespace {

/// Returns false if there is no memory.
bool make_meta(RpcContext& context) noexcept {
  if (context.meta != nullptr) return true;
  auto* const created = static_cast<evrpc_hook_meta*>(event_mm_calloc_(1, sizeof(evrpc_hook_meta)));
  if (created == nullptr) return false;
  TAILQ_INIT(&created->entries);
  context.meta = created;
  return true;
}

RpcHooks::List& list_of(void* base, EVRPC_HOOK_TYPE type) noexcept {
  auto& hooks = *static_cast<RpcHooks*>(base);
  return type == EVRPC_INPUT ? hooks.input : hooks.output;
}

void clear_list(RpcHooks::List& list) noexcept {
  while (RpcHook* const hook = TAILQ_FIRST(&list)) {
    TAILQ_REMOVE(&list, hook, next);
    event_mm_free_(hook);
  }
}

}  // namespace

void RpcHooks::init() noexcept {
  TAILQ_INIT(&input);
  TAILQ_INIT(&output);
  TAILQ_INIT(&paused);
}

void RpcHooks::clear() noexcept {
  clear_list(input);
  clear_list(output);
}

bool RpcHooks::pause(void* context, tambour::libevent::Resumed resumed) noexcept {
  auto* const paused_request =
      static_cast<PausedRequest*>(event_mm_calloc_(1, sizeof(PausedRequest)));
  if (paused_request == nullptr) return false;
  paused_request->context = context;
  paused_request->resumed = resumed;
  TAILQ_INSERT_TAIL(&paused, paused_request, next);
  return true;
}

void RpcContext::free_meta() noexcept {
  if (meta == nullptr) return;
  while (evrpc_hook_meta::Entry* const entry = TAILQ_FIRST(&meta->entries)) {
    TAILQ_REMOVE(&meta->entries, entry, next);
    event_mm_free_(entry->key);
    event_mm_free_(entry->data);
    event_mm_free_(entry);
  }
  event_mm_free_(meta);
  meta = nullptr;
}

int RpcContext::run_hooks(RpcHooks::List& hooks, evhttp_request& request, evbuffer* body,
                          evhttp_connection* connection) noexcept {
  if (TAILQ_FIRST(&hooks) == nullptr) return EVRPC_CONTINUE;
  if (!make_meta(*this)) return EVRPC_TERMINATE;
  meta->connection = connection;
  RpcHook* hook = nullptr;
  RpcHook* next = nullptr;
  for (hook = TAILQ_FIRST(&hooks); hook != nullptr; hook = next) {
    next = TAILQ_NEXT(hook, next);
    const int result = hook->function(this, &request, body, hook->argument);
    if (result != EVRPC_CONTINUE) return result;
  }
  return EVRPC_CONTINUE;
}

void* evrpc_add_hook(void* vbase, EVRPC_HOOK_TYPE hook_type,
                     int (*cb)(void*, evhttp_request*, evbuffer*, void*), void* cb_arg) {
  auto* const rpc_hook = static_cast<RpcHook*>(event_mm_calloc_(1, sizeof(RpcHook)));
  if (rpc_hook == nullptr) {
    event_warn("evrpc_add_hook: no memory");
    return nullptr;
  }
  rpc_hook->function = cb;
  rpc_hook->argument = cb_arg;
  TAILQ_INSERT_TAIL(&list_of(vbase, hook_type), rpc_hook, next);
  return rpc_hook;
}

int evrpc_remove_hook(void* vbase, EVRPC_HOOK_TYPE hook_type, void* handle) {
  RpcHooks::List& list = list_of(vbase, hook_type);
  RpcHook* hook = nullptr;
  TAILQ_FOREACH(hook, &list, next) {
    if (hook != handle) continue;
    TAILQ_REMOVE(&list, hook, next);
    event_mm_free_(hook);
    return 1;
  }
  return 0;
}

int evrpc_resume_request(void* vbase, void* ctx, EVRPC_HOOK_RESULT res) {
  auto& hooks = *static_cast<RpcHooks*>(vbase);
  PausedRequest* paused = nullptr;
  TAILQ_FOREACH(paused, &hooks.paused, next) {
    if (paused->context != ctx) continue;
    const auto resumed = paused->resumed;
    TAILQ_REMOVE(&hooks.paused, paused, next);
    event_mm_free_(paused);
    resumed(ctx, res);
    return 0;
  }
  return -1;
}

void evrpc_hook_add_meta(void* ctx, const char* key, const void* data, size_t data_size) {
  auto& context = *static_cast<RpcContext*>(ctx);
  auto* const entry =
      static_cast<evrpc_hook_meta::Entry*>(event_mm_calloc_(1, sizeof(evrpc_hook_meta::Entry)));
  char* const key_copy = event_mm_strdup_(key);
  void* const data_copy = event_mm_malloc_(data_size != 0 ? data_size : 1);
  if (entry == nullptr || key_copy == nullptr || data_copy == nullptr || !make_meta(context)) {
    event_warn("evrpc_hook_add_meta: no memory");
    for (void* const memory : {static_cast<void*>(entry), static_cast<void*>(key_copy), data_copy})
      if (memory != nullptr) event_mm_free_(memory);
    return;
  }
  if (data_size != 0) std::memcpy(data_copy, data, data_size);
  entry->key = key_copy;
  entry->data = data_copy;
  entry->size = data_size;
  TAILQ_INSERT_TAIL(&context.meta->entries, entry, next);
}

int evrpc_hook_find_meta(void* ctx, const char* key, void** data, size_t* data_size) {
  const evrpc_hook_meta* const meta = static_cast<RpcContext*>(ctx)->meta;
  if (meta == nullptr) return -1;
  evrpc_hook_meta::Entry* entry = nullptr;
  TAILQ_FOREACH(entry, &meta->entries, next) {
    if (std::strcmp(entry->key, key) != 0) continue;
    *data = entry->data;
    *data_size = entry->size;
    return 0;
  }
  return -1;
}

evhttp_connection* evrpc_hook_get_connection(void* ctx) {
  const evrpc_hook_meta* const meta = static_cast<RpcContext*>(ctx)->meta;
  return meta != nullptr ? meta->connection : nullptr;
}
