// Responses of servers.
//
// A request whose connection has ended has none: its response is discarded, and the call that would
// have ended the response frees the request.

#include <sys/queue.h>

#include <cstdio>

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>

#include "libevent/http/connection.h"
#include "libevent/http/server.h"

using tambour::libevent::BodyEnd;
using tambour::libevent::has_body;
using tambour::libevent::is_at_least_1_1;
using tambour::libevent::Kept;
using tambour::libevent::set_status;
using tambour::libevent::write_response;
namespace flags_of = tambour::libevent::connection_flags;

namespace {

void on_response_written(evhttp_connection* connection, void* /*argument*/) {
  connection->end_response();
}

/// Writes the whole response.
void send(evhttp_request& request, evbuffer* body) noexcept {
  evhttp_connection* const connection = request.evcon;
  if (connection == nullptr) return evhttp_request_free(&request);
  request.userdone = 1;
  const bool has_all = body == nullptr || evbuffer_add_buffer(request.output_buffer, body) == 0;
  if (!has_all || !write_response(*connection, request, BodyEnd::length))
    return evhttp_connection_free(connection);
  connection->state = evhttp_connection::State::writing;
  connection->start_writing(&on_response_written, nullptr);
}

}  // namespace

void evhttp_connection::end_response() noexcept {
  const Kept kept(*this);
  evhttp_request* const request = current();
  if (request == nullptr) return;
  TAILQ_REMOVE(&requests, request, next);
  if (request->on_complete_cb != nullptr)
    request->on_complete_cb(request, request->on_complete_cb_arg);
  const bool keeps_1_0 = tambour::libevent::asks_to_keep_alive(*request->input_headers);
  const bool closes = has(flags_of::closes) || tambour::libevent::is_last(*request) ||
                      (!is_at_least_1_1(*request) && !keeps_1_0);
  request->evcon = nullptr;
  evhttp_request_free(request);
  if (!freed && (closes || !tambour::libevent::expect_request(*this))) evhttp_connection_free(this);
}

void evhttp_connection::abandon_response() noexcept {
  if (evhttp_request* const request = current()) unlink(*request);
  evhttp_connection_free(this);
}

extern "C" void evhttp_send_page_(evhttp_request* req, evbuffer* databuf) {
  if (req->major == 0 || req->minor == 0) req->major = req->minor = 1;
  if (req->kind != EVHTTP_RESPONSE) set_status(*req, HTTP_OK, "OK");
  evhttp_clear_headers(req->output_headers);
  if (req->evcon != nullptr) req->evcon->flags |= flags_of::closes;
  evhttp_add_header(req->output_headers, "Content-Type", "text/html");
  evhttp_add_header(req->output_headers, "Connection", "close");
  send(*req, databuf);
}

void evhttp_send_error(evhttp_request* req, int error, const char* reason) {
  set_status(*req, error, reason);
  if (reason == nullptr) reason = req->response_code_line;
  if (reason == nullptr) reason = "";
  evbuffer* const page = evbuffer_new();
  const bool is_written =
      page != nullptr && evbuffer_add_printf(page,
                                             "<HTML><HEAD>\n<TITLE>%d %s</TITLE>\n</HEAD><BODY>\n"
                                             "<H1>%s</H1>\n</BODY></HTML>\n",
                                             error, reason, reason) >= 0;
  if (is_written) {
    evhttp_send_page_(req, page);
  } else if (req->evcon != nullptr) {
    evhttp_connection_free(req->evcon);
  } else {
    evhttp_request_free(req);
  }
  if (page != nullptr) evbuffer_free(page);
}

void evhttp_send_reply(evhttp_request* req, int code, const char* reason, evbuffer* databuf) {
  set_status(*req, code, reason);
  send(*req, databuf);
}

void evhttp_send_reply_start(evhttp_request* req, int code, const char* reason) {
  set_status(*req, code, reason);
  evhttp_connection* const connection = req->evcon;
  if (connection == nullptr) return;
  BodyEnd end = BodyEnd::length;
  if (has_body(*req) && evhttp_find_header(req->output_headers, "Content-Length") == nullptr)
    end = is_at_least_1_1(*req) ? BodyEnd::chunked : BodyEnd::close;
  req->chunked = end == BodyEnd::chunked;
  if (end == BodyEnd::close) connection->flags |= flags_of::closes;
  if (!write_response(*connection, *req, end)) return connection->abandon_response();
  connection->start_writing(nullptr, nullptr);
}

void evhttp_send_reply_chunk_with_cb(evhttp_request* req, evbuffer* databuf,
                                     void (*cb)(evhttp_connection*, void*), void* arg) {
  evhttp_connection* const connection = req->evcon;
  if (connection == nullptr) return;
  const std::size_t size = evbuffer_get_length(databuf);
  if (size == 0 || !has_body(*req)) return;
  evbuffer* const output = connection->output();
  char begin[24];
  const int begin_size = std::snprintf(begin, sizeof begin, "%zx\r\n", size);
  const bool is_chunked = req->chunked != 0;
  const bool is_written =
      (!is_chunked || evbuffer_add(output, begin, static_cast<std::size_t>(begin_size)) == 0) &&
      evbuffer_add_buffer(output, databuf) == 0 &&
      (!is_chunked || evbuffer_add(output, "\r\n", 2) == 0);
  if (!is_written) return connection->abandon_response();
  connection->start_writing(cb, arg);
}

void evhttp_send_reply_chunk(evhttp_request* req, evbuffer* databuf) {
  evhttp_send_reply_chunk_with_cb(req, databuf, nullptr, nullptr);
}

void evhttp_send_reply_end(evhttp_request* req) {
  evhttp_connection* const connection = req->evcon;
  if (connection == nullptr) return evhttp_request_free(req);
  req->userdone = 1;
  evbuffer* const output = connection->output();
  if (req->chunked != 0) {
    req->chunked = 0;
    if (evbuffer_add(output, "0\r\n\r\n", 5) != 0) return evhttp_connection_free(connection);
    connection->start_writing(&on_response_written, nullptr);
  } else if (evbuffer_get_length(output) == 0) {
    connection->end_response();
  } else {
    connection->written = &on_response_written;
    connection->written_argument = nullptr;
  }
}
