// Which virtual host and callback a request belongs to.

#include <sys/queue.h>

#include <string_view>

#include <event2/buffer.h>
#include <event2/util.h>

#include "base/ascii.h"
#include "libevent/event/core.h"
#include "libevent/http/server.h"

using tambour::libevent::PathCallback;
using tambour::libevent::ServerAlias;

namespace {

/// A star stands for any text. As in libevent, it must not be the last character of the pattern:
/// such a pattern matches nothing.
bool matches(std::string_view pattern, std::string_view name) noexcept {
  if (pattern.ends_with('*')) return false;
  std::size_t at = 0;
  std::size_t star = std::string_view::npos;  // The last one.
  std::size_t resumed = 0;                    // Where the text after it was tried.
  std::size_t i = 0;
  while (i < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      resumed = i;
    } else if (at < pattern.size() && tambour::detail::base::to_lower(pattern[at]) ==
                                          tambour::detail::base::to_lower(name[i])) {
      ++at;
      ++i;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      i = ++resumed;
    } else {
      return false;
    }
  }
  return at == pattern.size();
}

evhttp* find_alias(evhttp& http, const char* name) noexcept {
  ServerAlias* alias = nullptr;
  TAILQ_FOREACH(alias, &http.aliases, next) {
    if (evutil_ascii_strcasecmp(alias->name, name) == 0) return &http;
  }
  evhttp* host = nullptr;
  TAILQ_FOREACH(host, &http.virtual_hosts, next) {
    if (evhttp* const found = find_alias(*host, name)) return found;
  }
  return nullptr;
}

evhttp* find_pattern(evhttp& http, std::string_view name) noexcept {
  evhttp* host = nullptr;
  TAILQ_FOREACH(host, &http.virtual_hosts, next) {
    if (matches(host->host_pattern, name)) return host;
  }
  return nullptr;
}

/// Compares a path with one that is percent-encoded.
bool is_encoded(std::string_view encoded, std::string_view path) noexcept {
  std::size_t at = 0;
  for (std::size_t i = 0; i < encoded.size(); ++i, ++at) {
    char c = encoded[i];
    const int high = i + 2 < encoded.size() ? tambour::detail::base::hex_value(encoded[i + 1]) : -1;
    const int low = high >= 0 ? tambour::detail::base::hex_value(encoded[i + 2]) : -1;
    if (c == '%' && high >= 0 && low >= 0) {
      c = static_cast<char>(high << 4 | low);
      i += 2;
    }
    if (at >= path.size() || c != path[at]) return false;
  }
  return at == path.size();
}

const PathCallback* callback_for(const evhttp& http, const evhttp_request& request) noexcept {
  const std::string_view encoded = evhttp_uri_get_path(request.uri_elems);
  PathCallback* callback = nullptr;
  TAILQ_FOREACH(callback, &http.callbacks, next) {
    if (is_encoded(encoded, callback->path)) return callback;
  }
  return nullptr;
}

void send_not_found(evhttp_request* request) noexcept {
  char* const target = evhttp_htmlescape(request->uri);
  evbuffer* const page = evbuffer_new();
  const bool is_written =
      target != nullptr && page != nullptr &&
      evbuffer_add_printf(page,
                          "<html><head><title>404 Not Found</title></head><body><h1>Not Found</h1>"
                          "<p>The requested URL %s was not found on this server.</p></body></html>"
                          "\n",
                          target) >= 0;
  if (is_written) {
    tambour::libevent::set_status(*request, HTTP_NOTFOUND, "Not Found");
    evhttp_send_page_(request, page);
  } else {
    evhttp_connection_free(request->evcon);
  }
  if (target != nullptr) event_mm_free_(target);
  if (page != nullptr) evbuffer_free(page);
}

}  // namespace

evhttp* evhttp::find_host(const char* name) noexcept {
  if (evhttp* const found = find_alias(*this, name)) return found;
  // Hosts may have virtual hosts of their own.
  evhttp* best = nullptr;
  for (evhttp* host = find_pattern(*this, name); host != nullptr; host = find_pattern(*host, name))
    best = host;
  return best;
}

void evhttp::on_request(evhttp_request* request, void* server) {
  evhttp* http = static_cast<evhttp*>(server);
  // The user has to act on it now.
  request->userdone = 0;
  bufferevent_disable(request->evcon->bufev, EV_READ);
  const unsigned type = tambour::libevent::type_of(*request);
  if (type == 0 || request->uri == nullptr)
    return evhttp_send_error(request, request->response_code, nullptr);
  if ((http->allowed_methods & type) == 0)
    return evhttp_send_error(request, HTTP_NOTIMPLEMENTED, nullptr);
  if (const char* const name = evhttp_request_get_host(request)) {
    if (evhttp* const host = http->find_host(name)) http = host;
  }
  if (const PathCallback* const callback = callback_for(*http, *request))
    return callback->function(request, callback->argument);
  if (http->callback != nullptr) return http->callback(request, http->callback_argument);
  send_not_found(request);
}
