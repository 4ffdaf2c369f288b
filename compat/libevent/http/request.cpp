// evhttp_request: creation, members, and what its fields say.

#include <sys/queue.h>

#include <cstring>
#include <new>
#include <string_view>

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <event2/util.h>

#include "libevent/event/core.h"
#include "libevent/http/connection.h"
#include "libevent/http/http_characters.h"
#include "libevent/http/http_text.h"

using tambour::libevent::copy_text;
using tambour::libevent::is_digit;

namespace tambour::libevent {
namespace {

/// With the lists of fields, so that they are not allocated one by one.
struct Request : evhttp_request {
  evkeyvalq input_fields;
  evkeyvalq output_fields;
};

}  // namespace

bool asks_to_close(const evhttp_request& request, const evkeyvalq& fields) noexcept {
  if ((request.flags & EVHTTP_PROXY_REQUEST) != 0)
    return !has_token(fields, "Proxy-Connection", "keep-alive");
  return has_token(fields, "Connection", "close");
}

bool asks_to_keep_alive(const evkeyvalq& fields) noexcept {
  return has_token(fields, "Connection", "keep-alive");
}

bool is_last(const evhttp_request& request) noexcept {
  // The connection is a tunnel then.
  if (type_of(request) == EVHTTP_REQ_CONNECT) return false;
  return asks_to_close(request, *request.input_headers) ||
         asks_to_close(request, *request.output_headers);
}

const http::Method* method_of(const evhttp_request& request) noexcept {
  switch (type_of(request)) {
    case EVHTTP_REQ_GET:
      return &http::Method::get;
    case EVHTTP_REQ_POST:
      return &http::Method::post;
    case EVHTTP_REQ_HEAD:
      return &http::Method::head;
    case EVHTTP_REQ_PUT:
      return &http::Method::put;
    case EVHTTP_REQ_DELETE:
      return &http::Method::delete_;
    case EVHTTP_REQ_OPTIONS:
      return &http::Method::options;
    case EVHTTP_REQ_TRACE:
      return &http::Method::trace;
    case EVHTTP_REQ_CONNECT:
      return &http::Method::connect;
    case EVHTTP_REQ_PATCH:
      return &http::Method::patch;
    default:
      return nullptr;
  }
}

bool is_at_least_1_1(const evhttp_request& request) noexcept {
  return request.major > 1 || (request.major == 1 && request.minor >= 1);
}

bool has_body(const evhttp_request& response) noexcept {
  const int code = response.response_code;
  return code != HTTP_NOCONTENT && code != HTTP_NOTMODIFIED && (code < 100 || code >= 200) &&
         type_of(response) != EVHTTP_REQ_CONNECT && type_of(response) != EVHTTP_REQ_HEAD;
}

Expect expectation(const evhttp_request& request, const evkeyvalq& fields) noexcept {
  if (request.kind != EVHTTP_REQUEST || !is_at_least_1_1(request)) return Expect::nothing;
  const char* const expect = evhttp_find_header(&fields, "Expect");
  if (expect == nullptr) return Expect::nothing;
  return evutil_ascii_strcasecmp(expect, "100-continue") == 0 ? Expect::to_continue : Expect::other;
}

void free_unless_owned(evhttp_request& request) noexcept {
  if ((request.flags & EVHTTP_USER_OWNED) == 0) evhttp_request_free(&request);
}

}  // namespace tambour::libevent

using tambour::libevent::Request;

evhttp_request* evhttp_request_new(void (*cb)(evhttp_request*, void*), void* arg) {
  void* const memory = event_mm_calloc_(1, sizeof(Request));
  if (memory == nullptr) {
    event_warn("evhttp_request_new: no memory");
    return nullptr;
  }
  auto* const created = new (memory) Request{};
  TAILQ_INIT(&created->input_fields);
  TAILQ_INIT(&created->output_fields);
  created->input_headers = &created->input_fields;
  created->output_headers = &created->output_fields;
  created->kind = EVHTTP_RESPONSE;
  created->cb = cb;
  created->cb_arg = arg;
  created->input_buffer = evbuffer_new();
  created->output_buffer = evbuffer_new();
  if (created->input_buffer != nullptr && created->output_buffer != nullptr) return created;
  evhttp_request_free(created);
  return nullptr;
}

void evhttp_request_free(evhttp_request* req) {
  if ((req->flags & EVHTTP_REQ_DEFER_FREE) != 0) {
    req->flags |= EVHTTP_REQ_NEEDS_FREE;
    return;
  }
  if (req->evcon != nullptr) req->evcon->unlink(*req);
  for (char* const text : {req->remote_host, req->uri, req->response_code_line, req->host_cache})
    if (text != nullptr) event_mm_free_(text);
  if (req->uri_elems != nullptr) evhttp_uri_free(req->uri_elems);
  evhttp_clear_headers(req->input_headers);
  evhttp_clear_headers(req->output_headers);
  if (req->input_buffer != nullptr) evbuffer_free(req->input_buffer);
  if (req->output_buffer != nullptr) evbuffer_free(req->output_buffer);
  event_mm_free_(static_cast<Request*>(req));
}

void evhttp_request_own(evhttp_request* req) { req->flags |= EVHTTP_USER_OWNED; }
int evhttp_request_is_owned(evhttp_request* req) {
  return (req->flags & EVHTTP_USER_OWNED) != 0 ? 1 : 0;
}

void evhttp_request_set_chunked_cb(evhttp_request* req, void (*cb)(evhttp_request*, void*)) {
  req->chunk_cb = cb;
}
void evhttp_request_set_header_cb(evhttp_request* req, int (*cb)(evhttp_request*, void*)) {
  req->header_cb = cb;
}
void evhttp_request_set_error_cb(evhttp_request* req, void (*cb)(evhttp_request_error, void*)) {
  req->error_cb = cb;
}
void evhttp_request_set_on_complete_cb(evhttp_request* req, void (*cb)(evhttp_request*, void*),
                                       void* cb_arg) {
  req->on_complete_cb = cb;
  req->on_complete_cb_arg = cb_arg;
}

evhttp_connection* evhttp_request_get_connection(evhttp_request* req) { return req->evcon; }
const char* evhttp_request_get_uri(const evhttp_request* req) { return req->uri; }
const evhttp_uri* evhttp_request_get_evhttp_uri(const evhttp_request* req) {
  return req->uri_elems;
}
evhttp_cmd_type evhttp_request_get_command(const evhttp_request* req) {
  return static_cast<evhttp_cmd_type>(tambour::libevent::type_of(*req));
}
int evhttp_request_get_response_code(const evhttp_request* req) { return req->response_code; }
const char* evhttp_request_get_response_code_line(const evhttp_request* req) {
  return req->response_code_line;
}
evkeyvalq* evhttp_request_get_input_headers(evhttp_request* req) { return req->input_headers; }
evkeyvalq* evhttp_request_get_output_headers(evhttp_request* req) { return req->output_headers; }
evbuffer* evhttp_request_get_input_buffer(evhttp_request* req) { return req->input_buffer; }
evbuffer* evhttp_request_get_output_buffer(evhttp_request* req) { return req->output_buffer; }

const char* evhttp_request_get_host(evhttp_request* req) {
  if (req->host_cache != nullptr) return req->host_cache;
  const char* const of_target =
      req->uri_elems != nullptr ? evhttp_uri_get_host(req->uri_elems) : nullptr;
  if (of_target != nullptr) return of_target;
  const char* const field = evhttp_find_header(req->input_headers, "Host");
  if (field == nullptr) return nullptr;
  // Without the port, like the host of a target.
  std::string_view host = field;
  std::size_t end = host.size();
  while (end > 1 && is_digit(host[end - 1])) --end;
  if (end < 2 || host[end - 1] != ':') return field;
  req->host_cache = copy_text(host.substr(0, end - 1));
  return req->host_cache;
}
