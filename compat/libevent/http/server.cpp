// evhttp: creation, settings, virtual hosts and callbacks.

#include "libevent/http/server.h"

#include <cstring>
#include <new>

#include <event2/util.h>

#include "libevent/event/core.h"

using tambour::libevent::LingeringClose;
using tambour::libevent::PathCallback;
using tambour::libevent::ServerAlias;

namespace {

PathCallback* find_callback(const evhttp& http, const char* path) noexcept {
  PathCallback* callback = nullptr;
  TAILQ_FOREACH(callback, &http.callbacks, next) {
    if (std::strcmp(callback->path, path) == 0) return callback;
  }
  return nullptr;
}

void remove(evhttp& http, PathCallback* callback) noexcept {
  TAILQ_REMOVE(&http.callbacks, callback, next);
  event_mm_free_(callback->path);
  event_mm_free_(callback);
}

void remove(evhttp& http, ServerAlias* alias) noexcept {
  TAILQ_REMOVE(&http.aliases, alias, next);
  event_mm_free_(alias->name);
  event_mm_free_(alias);
}

}  // namespace

evhttp* evhttp_new(event_base* base) {
  void* const memory = event_mm_calloc_(1, sizeof(evhttp));
  if (memory == nullptr) {
    event_warn("evhttp_new: no memory");
    return nullptr;
  }
  auto* const created = new (memory) evhttp{};
  TAILQ_INIT(&created->sockets);
  TAILQ_INIT(&created->callbacks);
  TAILQ_INIT(&created->connections);
  TAILQ_INIT(&created->virtual_hosts);
  TAILQ_INIT(&created->aliases);
  TAILQ_INIT(&created->lingering);
  created->head_bytes_max = SIZE_MAX;
  created->body_bytes_max = UINT64_MAX;
  created->default_content_type = "text/html; charset=ISO-8859-1";
  created->allowed_methods =
      EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE;
  created->base = base;
  return created;
}

extern "C" evhttp* evhttp_start(const char* address, unsigned short port) {
  evhttp* const created = evhttp_new(nullptr);
  if (created == nullptr || evhttp_bind_socket(created, address, port) == 0) return created;
  evhttp_free(created);
  return nullptr;
}

void evhttp_free(evhttp* http) {
  while (evhttp_bound_socket* const bound = TAILQ_FIRST(&http->sockets))
    evhttp_del_accept_socket(http, bound);
  while (evhttp_connection* const connection = TAILQ_FIRST(&http->connections))
    evhttp_connection_free(connection);
  LingeringClose::stop_all(http->lingering);
  while (PathCallback* const callback = TAILQ_FIRST(&http->callbacks)) remove(*http, callback);
  while (evhttp* const host = TAILQ_FIRST(&http->virtual_hosts)) {
    TAILQ_REMOVE(&http->virtual_hosts, host, next);
    evhttp_free(host);
  }
  while (ServerAlias* const alias = TAILQ_FIRST(&http->aliases)) remove(*http, alias);
  if (http->host_pattern != nullptr) event_mm_free_(http->host_pattern);
  event_mm_free_(http);
}

int evhttp_add_virtual_host(evhttp* http, const char* pattern, evhttp* vhost) {
  if (vhost->host_pattern != nullptr || TAILQ_FIRST(&vhost->sockets) != nullptr) return -1;
  vhost->host_pattern = event_mm_strdup_(pattern);
  if (vhost->host_pattern == nullptr) return -1;
  TAILQ_INSERT_TAIL(&http->virtual_hosts, vhost, next);
  return 0;
}

int evhttp_remove_virtual_host(evhttp* http, evhttp* vhost) {
  if (vhost->host_pattern == nullptr) return -1;
  TAILQ_REMOVE(&http->virtual_hosts, vhost, next);
  event_mm_free_(vhost->host_pattern);
  vhost->host_pattern = nullptr;
  return 0;
}

int evhttp_add_server_alias(evhttp* http, const char* alias) {
  auto* const server_alias = static_cast<ServerAlias*>(event_mm_calloc_(1, sizeof(ServerAlias)));
  if (server_alias == nullptr) return -1;
  server_alias->name = event_mm_strdup_(alias);
  if (server_alias->name == nullptr) {
    event_mm_free_(server_alias);
    return -1;
  }
  TAILQ_INSERT_TAIL(&http->aliases, server_alias, next);
  return 0;
}

int evhttp_remove_server_alias(evhttp* http, const char* alias) {
  ServerAlias* server_alias = nullptr;
  TAILQ_FOREACH(server_alias, &http->aliases, next) {
    if (evutil_ascii_strcasecmp(server_alias->name, alias) != 0) continue;
    remove(*http, server_alias);
    return 0;
  }
  return -1;
}

int evhttp_set_cb(evhttp* http, const char* path, void (*cb)(evhttp_request*, void*),
                  void* cb_arg) {
  if (find_callback(*http, path) != nullptr) return -1;
  auto* const callback = static_cast<PathCallback*>(event_mm_calloc_(1, sizeof(PathCallback)));
  if (callback == nullptr) {
    event_warn("evhttp_set_cb: no memory");
    return -2;
  }
  callback->path = event_mm_strdup_(path);
  if (callback->path == nullptr) {
    event_warn("evhttp_set_cb: no memory");
    event_mm_free_(callback);
    return -3;
  }
  callback->function = cb;
  callback->argument = cb_arg;
  TAILQ_INSERT_TAIL(&http->callbacks, callback, next);
  return 0;
}

int evhttp_del_cb(evhttp* http, const char* path) {
  PathCallback* const callback = find_callback(*http, path);
  if (callback == nullptr) return -1;
  remove(*http, callback);
  return 0;
}

void evhttp::remove_callbacks(const void* argument) noexcept {
  PathCallback* following = nullptr;
  for (PathCallback* entry = TAILQ_FIRST(&callbacks); entry != nullptr; entry = following) {
    following = TAILQ_NEXT(entry, next);
    if (entry->argument == argument) remove(*this, entry);
  }
}

void evhttp_set_gencb(evhttp* http, void (*cb)(evhttp_request*, void*), void* arg) {
  http->callback = cb;
  http->callback_argument = arg;
}

void evhttp_set_bevcb(evhttp* http, bufferevent* (*cb)(event_base*, void*), void* arg) {
  http->make_bufferevent = cb;
  http->make_bufferevent_argument = arg;
}

void evhttp_set_max_headers_size(evhttp* http, ev_ssize_t max_headers_size) {
  http->head_bytes_max =
      max_headers_size < 0 ? SIZE_MAX : static_cast<std::size_t>(max_headers_size);
}
void evhttp_set_max_body_size(evhttp* http, ev_ssize_t max_body_size) {
  http->body_bytes_max = max_body_size < 0 ? UINT64_MAX : static_cast<std::uint64_t>(max_body_size);
}
void evhttp_set_default_content_type(evhttp* http, const char* content_type) {
  http->default_content_type = content_type;
}
void evhttp_set_allowed_methods(evhttp* http, ev_uint16_t methods) {
  http->allowed_methods = methods;
}

void evhttp_set_timeout(evhttp* http, int timeout_in_secs) {
  const timeval timeout{timeout_in_secs, 0};
  evhttp_set_timeout_tv(http, timeout_in_secs != -1 ? &timeout : nullptr);
}
void evhttp_set_timeout_tv(evhttp* http, const timeval* tv) {
  http->timeout = tv != nullptr ? *tv : timeval{};
}

int evhttp_set_flags(evhttp* http, int flags) {
  if ((flags & ~EVHTTP_SERVER_LINGERING_CLOSE) != 0) return 1;
  http->flags = flags;
  return 0;
}
