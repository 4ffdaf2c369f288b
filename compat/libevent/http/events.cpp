// Writing, errors, and the ends of connections.

#include <sys/queue.h>

#include <cerrno>

#include <event2/buffer.h>

#include "libevent/http/connection.h"
#include "libevent/http/server.h"

using tambour::http::detail::h1::BodyKind;
using tambour::libevent::DeferredFree;
using tambour::libevent::Kept;
namespace flags_of = tambour::libevent::connection_flags;

void evhttp_connection::start_writing(Written then, void* argument) noexcept {
  written = then;
  written_argument = argument;
  bufferevent_setcb(bufev, &on_read, &on_written, &on_event, this);
  // Reading detects the end of the connection. Each part of a response would admit a transfer.
  bufferevent_enable(bufev, is_input_full() ? EV_WRITE : EV_READ | EV_WRITE);
}

void evhttp_connection::on_written(bufferevent* /*bev*/, void* argument) {
  auto& self = *static_cast<evhttp_connection*>(argument);
  if (self.written == nullptr) return;
  const Kept kept(self);
  self.written(&self, self.written_argument);
}

void evhttp_connection::fail(evhttp_request_error error) noexcept {
  const Kept kept(*this);
  evhttp_request* const request = current();
  bufferevent_disable(bufev, EV_READ | EV_WRITE);
  if (has(flags_of::incoming)) {
    if (request == nullptr) return evhttp_connection_free(this);
    return fail_incoming(*request, error);
  }
  if (request == nullptr) return reset();
  fail_outgoing(*request, error);
}

void evhttp_connection::fail_incoming(evhttp_request& request,
                                      evhttp_request_error error) noexcept {
  const bool is_lost = error == EVREQ_HTTP_TIMEOUT || error == EVREQ_HTTP_EOF;
  const bool is_answered = state == State::writing;
  if (is_lost || is_answered || error == EVREQ_HTTP_BUFFER_ERROR) {
    // The user still has it, and frees it by answering.
    if (request.userdone == 0) unlink(request);
    return evhttp_connection_free(this);
  }
  request.response_code = error == EVREQ_HTTP_DATA_TOO_LONG ? HTTP_ENTITYTOOLARGE : HTTP_BADREQUEST;
  // Without a target, the request is answered with the status.
  if (request.uri != nullptr) event_mm_free_(request.uri);
  request.uri = nullptr;
  if (request.uri_elems != nullptr) evhttp_uri_free(request.uri_elems);
  request.uri_elems = nullptr;
  // What follows cannot be divided into requests.
  state = State::writing;
  flags |= flags_of::closes | flags_of::lingers;
  request.cb(&request, request.cb_arg);
}

void evhttp_connection::fail_outgoing(evhttp_request& request,
                                      evhttp_request_error error) noexcept {
  const int errno_before = errno;
  const auto on_error = request.error_cb;
  // It is not invoked for a request that was cancelled.
  const auto callback = error != EVREQ_HTTP_REQUEST_CANCEL ? request.cb : nullptr;
  void* const argument = request.cb_arg;
  // The close callback may free it.
  DeferredFree deferred(request);
  unlink(request);
  reset();
  const bool is_kept = deferred.end();
  if (is_kept) tambour::libevent::free_unless_owned(request);
  if (!freed && current() != nullptr) {
    if (connect() != 0) retry_or_give_up();
  } else if (!freed && has(flags_of::outgoing) && has(flags_of::free_on_completion)) {
    evhttp_connection_free(this);
  }
  if (!is_kept) return;
  errno = errno_before;
  if (on_error != nullptr) on_error(error, argument);
  if (callback != nullptr) callback(nullptr, argument);
}

void evhttp_connection::on_event(bufferevent* /*bev*/, short kind, void* self) {
  static_cast<evhttp_connection*>(self)->handle_event(kind);
}

void evhttp_connection::handle_event(short kind) noexcept {
  const Kept kept(*this);
  evhttp_request* const request = current();
  if (fd == -1) fd = bufferevent_getfd(bufev);
  if (state == State::connecting && (kind & BEV_EVENT_TIMEOUT) != 0) return retry_or_give_up();
  const bool is_end = kind == (BEV_EVENT_READING | BEV_EVENT_EOF);
  if (is_end && state == State::reading_body && request != nullptr &&
      reader.framing().kind == BodyKind::until_close)
    return complete();
  if (is_end && state == State::writing && has(flags_of::incoming) && request != nullptr &&
      request->userdone != 0) {
    // The client has half-closed the connection, and still gets its response.
    flags |= flags_of::closes;
    return;
  }
  if (has(flags_of::detects_close)) return lose_idle();
  if ((kind & BEV_EVENT_TIMEOUT) != 0) return fail(EVREQ_HTTP_TIMEOUT);
  if (kind == BEV_EVENT_CONNECTED) return;
  if ((kind & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) == 0) return fail(EVREQ_HTTP_BUFFER_ERROR);
  if (has(EVHTTP_CON_READ_ON_WRITE_ERROR) && request != nullptr) {
    if ((kind & BEV_EVENT_WRITING) != 0) return read_after_error(*request);
    if ((kind & BEV_EVENT_READING) != 0 && evbuffer_get_length(input()) != 0)
      return schedule_reading();
  }
  fail(EVREQ_HTTP_EOF);
}

void evhttp_connection::read_after_error(evhttp_request& request) noexcept {
  if (has(flags_of::reads_after_error)) {
    flags &= ~flags_of::reads_after_error;
    return fail(EVREQ_HTTP_EOF);
  }
  request.kind = EVHTTP_RESPONSE;
  evbuffer* const unsent = output();
  evbuffer_unfreeze(unsent, 1);
  evbuffer_drain(unsent, evbuffer_get_length(unsent));
  evbuffer_freeze(unsent, 1);
  start_reading();
  flags |= flags_of::reads_after_error | flags_of::closes;
}
