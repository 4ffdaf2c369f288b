// Reading a message: the states of a connection from its head to its end.

#include <sys/queue.h>

#include <cerrno>
#include <utility>

#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>
#include <event2/util.h>

#include "libevent/bufferevent/bufferevent.h"
#include "libevent/http/connection.h"
#include "libevent/http/http_text.h"
#include "libevent/http/server.h"

using tambour::http::detail::h1::BodyKind;
using tambour::libevent::DeferredFree;
using tambour::libevent::Expect;
using tambour::libevent::Kept;
using tambour::libevent::ReadResult;
namespace flags_of = tambour::libevent::connection_flags;

namespace {

// What follows the current message is read up to this size, and one transfer more.
constexpr std::size_t read_ahead_max = 65536;

}  // namespace

bool evhttp_connection::is_input_full() const noexcept {
  return evbuffer_get_length(input()) >= read_ahead_max;
}

/// Independent of whether reading is enabled, which the program may change in its callbacks.
void evhttp_connection::suspend_reading() noexcept {
  bufferevent_suspend_read_(bufev, tambour::libevent::suspended::read_ahead);
  suspends_reading = true;
}

void evhttp_connection::resume_reading() noexcept {
  // Reading may begin at once, and suspend it again.
  if (std::exchange(suspends_reading, false))
    bufferevent_unsuspend_read_(bufev, tambour::libevent::suspended::read_ahead);
}

void evhttp_connection::start_reading() noexcept {
  bufferevent_disable(bufev, EV_WRITE);
  // Otherwise each message would admit another transfer.
  if (is_input_full()) suspend_reading();
  bufferevent_enable(bufev, EV_READ);
  const evhttp_request* const request = current();
  state = State::reading_head;
  reader.restart(request != nullptr ? request->kind : EVHTTP_REQUEST, head_bytes_max,
                 body_bytes_max);
  bufferevent_setcb(bufev, &on_read, &on_written, &on_event, this);
  // From the loop, because reading here would be a recursion.
  if (evbuffer_get_length(input()) != 0) schedule_reading();
}

void evhttp_connection::schedule_reading() noexcept {
  event_deferred_cb_schedule_(base, &read_more);
  reads_more = true;
}

void evhttp_connection::cancel_reading() noexcept {
  if (reads_more) event_deferred_cb_cancel_(base, &read_more);
  reads_more = false;
}

void evhttp_connection::on_read(bufferevent* /*bev*/, void* self) {
  static_cast<evhttp_connection*>(self)->read();
}

void evhttp_connection::read() noexcept {
  const Kept kept(*this);
  evhttp_request* const request = current();
  cancel_reading();
  if (state == State::idle) return lose_idle();
  if (request == nullptr) return;
  switch (state) {
    case State::reading_head:
      read_head(*request);
      break;
    case State::reading_body:
      read_body(*request);
      break;
    case State::reading_trailers:
      read_trailers(*request);
      break;
    case State::writing:
      // The end of the connection is detected by reading.
      if (is_input_full()) bufferevent_disable(bufev, EV_READ);
      break;
    default:
      break;
  }
  // The message is longer than the input, or is complete and has disabled reading. If the next one
  // has begun, its part of the input has not been parsed yet.
  if (!freed && !reads_more) resume_reading();
}

void evhttp_connection::fail_reading(ReadResult result, evhttp_request_error invalid) noexcept {
  fail(result == ReadResult::no_memory ? EVREQ_HTTP_BUFFER_ERROR : invalid);
}

void evhttp_connection::read_head(evhttp_request& request) noexcept {
  static constexpr tambour::http::Method unknown{};
  const auto* const method = tambour::libevent::method_of(request);
  ReadResult result = reader.read_head(input(), request, method != nullptr ? *method : unknown);
  if (result == ReadResult::incomplete) return;
  if (result == ReadResult::complete && request.kind == EVHTTP_REQUEST)
    result = store_target(request);
  if (result != ReadResult::complete) return fail_reading(result, EVREQ_HTTP_INVALID_HEADER);
  request.chunked = reader.framing().kind == BodyKind::chunked;
  if (request.header_cb != nullptr) {
    DeferredFree deferred(request);
    const int verdict = request.header_cb(&request, request.cb_arg);
    if (!deferred.end() || freed || current() != &request) return;
    if (verdict < 0) return fail(EVREQ_HTTP_EOF);
  }
  if (request.kind == EVHTTP_REQUEST) return begin_body(request);
  take_response_head(request);
}

ReadResult evhttp_connection::store_target(evhttp_request& request) noexcept {
  request.uri_elems = tambour::libevent::type_of(request) == EVHTTP_REQ_CONNECT
                          ? tambour::libevent::parse_authority_form(request.uri)
                          : evhttp_uri_parse_with_flags(request.uri, EVHTTP_URI_NONCONFORMANT);
  if (request.uri_elems == nullptr) return ReadResult::invalid;
  // A target with the name of another host is for a proxy.
  const char* const scheme = evhttp_uri_get_scheme(request.uri_elems);
  const char* const host = evhttp_uri_get_host(request.uri_elems);
  if (scheme == nullptr || host == nullptr || server == nullptr) return ReadResult::complete;
  const bool is_http =
      evutil_ascii_strcasecmp(scheme, "http") == 0 || evutil_ascii_strcasecmp(scheme, "https") == 0;
  if (is_http && server->find_host(host) == nullptr) request.flags |= EVHTTP_PROXY_REQUEST;
  return ReadResult::complete;
}

void evhttp_connection::take_response_head(evhttp_request& request) noexcept {
  constexpr int switching_protocols = 101;
  if (request.response_code < 200 && request.response_code != switching_protocols)
    return take_interim_response(request);
  // The request may have been answered before its body was sent. The server waits for it.
  if (evbuffer_get_length(request.output_buffer) != 0) flags |= flags_of::closes;
  if (!tambour::libevent::has_body(request) || reader.framing().kind == BodyKind::tunnel)
    return complete();
  begin_body(request);
}

void evhttp_connection::take_interim_response(evhttp_request& request) noexcept {
  constexpr int interim_max = 32;
  if (++interim_responses > interim_max) return fail(EVREQ_HTTP_INVALID_HEADER);
  evhttp_clear_headers(request.input_headers);
  const bool sends_body =
      request.response_code == 100 && evbuffer_get_length(request.output_buffer) != 0;
  if (!sends_body) return start_reading();
  if (evbuffer_add_buffer(output(), request.output_buffer) != 0)
    return fail(EVREQ_HTTP_BUFFER_ERROR);
  send_request();
}

void evhttp_connection::begin_body(evhttp_request& request) noexcept {
  const auto& framing = reader.framing();
  state = State::reading_body;
  switch (framing.kind) {
    case BodyKind::length:
      request.ntoread = static_cast<ev_int64_t>(framing.length);
      break;
    case BodyKind::none:
    case BodyKind::tunnel:
      request.ntoread = 0;
      if (request.kind == EVHTTP_REQUEST) return complete();
      break;
    default:
      request.ntoread = -1;
  }
  if (continues(request)) read_body(request);
}

/// Answers an Expect field. Returns false if the body is not read.
bool evhttp_connection::continues(evhttp_request& request) noexcept {
  switch (tambour::libevent::expectation(request, *request.input_headers)) {
    case Expect::nothing:
      return true;
    case Expect::other:
      flags |= flags_of::closes | flags_of::lingers;
      evhttp_send_error(&request, HTTP_EXPECTATIONFAILED, nullptr);
      return false;
    case Expect::to_continue:
      break;
  }
  if (request.ntoread > 0 && static_cast<std::uint64_t>(request.ntoread) > body_bytes_max) {
    refuse_body(request);
    return false;
  }
  // If the body has begun, the client does not wait.
  if (evbuffer_get_length(input()) != 0) return true;
  bufferevent_enable(bufev, EV_WRITE);
  evbuffer_add_printf(output(), "HTTP/%d.%d 100 Continue\r\n\r\n", request.major, request.minor);
  written = [](evhttp_connection* self, void* /*argument*/) {
    bufferevent_disable(self->bufev, EV_WRITE);
  };
  return true;
}

void evhttp_connection::read_body(evhttp_request& request) noexcept {
  switch (reader.framing().kind) {
    case BodyKind::chunked:
      return read_chunks(request);
    case BodyKind::until_close:
      return read_until_close(request);
    default:
      return read_length(request);
  }
}

void evhttp_connection::refuse_body(evhttp_request& request) noexcept {
  const bool waits = has(EVHTTP_CON_LINGERING_CLOSE) && request.ntoread >= 0;
  if (!waits) return fail(EVREQ_HTTP_DATA_TOO_LONG);
  // The answer is sent when the body has arrived.
  const auto left = static_cast<std::uint64_t>(request.ntoread);
  const std::size_t there = evbuffer_get_length(input());
  const std::size_t discarded = there < left ? there : static_cast<std::size_t>(left);
  request.ntoread -= static_cast<ev_int64_t>(discarded);
  request.body_size += discarded;
  evbuffer_drain(input(), discarded);
  if (request.ntoread == 0) fail(EVREQ_HTTP_DATA_TOO_LONG);
}

bool evhttp_connection::pass_chunk(evhttp_request& request) noexcept {
  if (request.chunk_cb == nullptr || evbuffer_get_length(request.input_buffer) == 0) return true;
  DeferredFree deferred(request);
  request.chunk_cb(&request, request.cb_arg);
  evbuffer_drain(request.input_buffer, evbuffer_get_length(request.input_buffer));
  return deferred.end() && !freed && current() == &request;
}

void evhttp_connection::read_length(evhttp_request& request) noexcept {
  const auto left = static_cast<std::uint64_t>(request.ntoread);
  if (reader.framing().length > body_bytes_max) return refuse_body(request);
  const std::size_t there = evbuffer_get_length(input());
  const std::size_t size = there < left ? there : static_cast<std::size_t>(left);
  // Without a callback for parts, the body is moved when it is complete.
  if (request.chunk_cb == nullptr && size < left) return;
  request.ntoread -= static_cast<ev_int64_t>(size);
  request.body_size += size;
  const bool is_all = size == there;
  const bool moved = is_all ? evbuffer_add_buffer(request.input_buffer, input()) == 0
                            : evbuffer_remove_buffer(input(), request.input_buffer, size) ==
                                  static_cast<int>(size);
  if (!moved) return fail(EVREQ_HTTP_BUFFER_ERROR);
  if (pass_chunk(request) && request.ntoread == 0) complete();
}

void evhttp_connection::read_until_close(evhttp_request& request) noexcept {
  const std::size_t size = evbuffer_get_length(input());
  request.body_size += size;
  if (request.body_size > body_bytes_max) return fail(EVREQ_HTTP_DATA_TOO_LONG);
  if (evbuffer_add_buffer(request.input_buffer, input()) != 0) return fail(EVREQ_HTTP_BUFFER_ERROR);
  if (!pass_chunk(request)) return;
}

void evhttp_connection::read_chunks(evhttp_request& request) noexcept {
  for (;;) {
    const ReadResult result = reader.read_chunk(input(), request.input_buffer);
    request.body_size = static_cast<std::size_t>(reader.body_bytes());
    request.ntoread = static_cast<ev_int64_t>(reader.chunk_left());
    if (result == ReadResult::incomplete) return;
    if (result == ReadResult::complete) break;
    if (result != ReadResult::chunk) return fail_reading(result, EVREQ_HTTP_DATA_TOO_LONG);
    if (!pass_chunk(request)) return;
  }
  state = State::reading_trailers;
  read_trailers(request);
}

void evhttp_connection::read_trailers(evhttp_request& request) noexcept {
  const ReadResult result = reader.read_trailers(input(), request);
  if (result == ReadResult::incomplete) return;
  if (result != ReadResult::complete) return fail_reading(result, EVREQ_HTTP_DATA_TOO_LONG);
  complete();
}

/// The message has been read.
void evhttp_connection::complete() noexcept {
  evhttp_request& request = *current();
  bufferevent_disable(bufev, EV_READ);
  if (has(flags_of::outgoing)) return complete_response(request);
  // The request remains until it is answered.
  state = State::writing;
  request.cb(&request, request.cb_arg);
}
