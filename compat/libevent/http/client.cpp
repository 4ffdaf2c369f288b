// Clients: connecting, requests, and their ends.

#include <sys/queue.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/util.h>

#include "libevent/http/connection.h"
#include "libevent/http/server.h"

using tambour::http::detail::h1::BodyKind;
using tambour::libevent::DeferredFree;
using tambour::libevent::free_unless_owned;
using tambour::libevent::Kept;
namespace flags_of = tambour::libevent::connection_flags;

namespace {

constexpr timeval connect_timeout{45, 0};

/// A target must not end the request line.
bool is_valid_target(const char* text) noexcept { return std::strpbrk(text, "\r\n") == nullptr; }

/// The error of a connection attempt that has completed, or 0.
int socket_error(int fd) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

timeval retry_delay(const evhttp_connection& connection) noexcept {
  constexpr long seconds_max = 3600;
  timeval delay = connection.initial_retry_timeout;
  for (int i = 0; i < connection.retries && delay.tv_sec < seconds_max; ++i)
    evutil_timeradd(&delay, &delay, &delay);
  if (delay.tv_sec >= seconds_max) delay = {seconds_max, 0};
  return delay;
}

void on_retry(evutil_socket_t /*fd*/, short /*what*/, void* argument) {
  auto& connection = *static_cast<evhttp_connection*>(argument);
  const Kept kept(connection);
  connection.waits_for_retry = false;
  connection.state = tambour::libevent::HttpState::disconnected;
  if (connection.connect() != 0) connection.retry_or_give_up();
}

}  // namespace

int evhttp_connection::connect() noexcept {
  if (state == State::connecting) return 0;
  const Kept kept(*this);
  if (waits_for_retry) event_del(&retry);
  waits_for_retry = false;
  // The address of the last connection, before its descriptor is closed.
  const sockaddr* const known = evhttp_connection_get_addr(this);
  const State before = state;
  reset();
  if (freed) return 0;
  flags |= flags_of::outgoing;
  if (bind_address != nullptr || bind_port != 0) {
    fd = tambour::libevent::bind_socket(bind_address, bind_port, false);
    if (fd == -1) return -1;
  }
  bufferevent_setfd(bufev, fd);
  bufferevent_setcb(bufev, nullptr, nullptr, &on_connected, this);
  const timeval& limit = evutil_timerisset(&timeout) ? timeout : connect_timeout;
  bufferevent_set_timeouts(bufev, &limit, &limit);
  // Its end is reported as writing.
  if (bufferevent_enable(bufev, EV_WRITE) != 0) return -1;
  state = State::connecting;
  const bool reuses = has(EVHTTP_CON_REUSE_CONNECTED_ADDR) && known != nullptr &&
                      (known->sa_family == AF_INET || known->sa_family == AF_INET6);
  int result = 0;
  if (reuses) {
    const std::size_t size =
        known->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    result = bufferevent_socket_connect(bufev, known, static_cast<int>(size));
  } else {
    result = bufferevent_socket_connect_hostname(bufev, dns, family, address, port);
  }
  if (result < 0) {
    state = before;
    event_warnx("evhttp: connecting to \"%s\" failed: %s", address, std::strerror(errno));
    retry_or_give_up();
  }
  return 0;
}

void evhttp_connection::on_connected(bufferevent* bev, short kind, void* argument) {
  auto& self = *static_cast<evhttp_connection*>(argument);
  const Kept kept(self);
  if (self.fd == -1) self.fd = bufferevent_getfd(bev);
  if ((kind & BEV_EVENT_CONNECTED) == 0) {
    // After a failed lookup, errno is that of anything else.
    if (bufferevent_socket_get_dns_error(bev) == 0 && errno == ECONNREFUSED)
      return self.retry_or_give_up();
    return self.handle_event(kind);
  }
  if (self.fd == -1 || socket_error(self.fd) != 0) return self.retry_or_give_up();
  self.set_connected();
}

void evhttp_connection::set_connected() noexcept {
  retries = 0;
  state = State::idle;
  bufferevent_setcb(bufev, &on_read, &on_written, &on_event, this);
  evhttp_connection_set_timeout_tv(this, evutil_timerisset(&timeout) ? &timeout : nullptr);
  dispatch();
}

void evhttp_connection::retry_or_give_up() noexcept {
  const Kept kept(*this);
  reset();
  if (freed) return;
  if (retries_max < 0 || retries < retries_max) {
    const timeval delay = retry_delay(*this);
    event_assign(&retry, base, -1, 0, &on_retry, this);
    if (event_add(&retry, &delay) == 0) {
      waits_for_retry = true;
      ++retries;
      return;
    }
  }
  retries = 0;
  // A callback may make another request, which must not end here.
  decltype(requests) ended;
  TAILQ_INIT(&ended);
  TAILQ_CONCAT(&ended, &requests, next);
  while (evhttp_request* const request = TAILQ_FIRST(&ended)) {
    TAILQ_REMOVE(&ended, request, next);
    request->evcon = nullptr;
    request->cb(request, request->cb_arg);
    free_unless_owned(*request);
  }
  if (!freed && has(flags_of::free_on_completion) && current() == nullptr)
    evhttp_connection_free(this);
}

void evhttp_connection::dispatch() noexcept {
  evhttp_request* const request = current();
  if (request == nullptr) return;
  detect_close(false);
  interim_responses = 0;
  if (!tambour::libevent::write_request(*this, *request)) {
    state = State::writing;
    return fail(EVREQ_HTTP_BUFFER_ERROR);
  }
  send_request();
}

void evhttp_connection::send_request() noexcept {
  state = State::writing;
  start_writing(&on_request_written, nullptr);
}

void evhttp_connection::on_request_written(evhttp_connection* self, void* /*argument*/) {
  evhttp_request* const request = self->current();
  if (request == nullptr || self->state != State::writing) return;
  if (evbuffer_get_length(self->output()) != 0) return;
  request->kind = EVHTTP_RESPONSE;
  self->start_reading();
}

void evhttp_connection::detect_close(bool enabled) noexcept {
  if (enabled) {
    flags |= flags_of::detects_close;
    bufferevent_enable(bufev, EV_READ);
  } else {
    flags &= ~flags_of::detects_close;
    bufferevent_disable(bufev, EV_READ);
  }
}

/// The server has closed an idle connection, or has sent what was not asked for.
void evhttp_connection::lose_idle() noexcept {
  flags &= ~flags_of::detects_close;
  reset();
  if (!freed && current() == nullptr && has(flags_of::outgoing) &&
      has(flags_of::free_on_completion))
    evhttp_connection_free(this);
}

void evhttp_connection::complete_response(evhttp_request& request) noexcept {
  const bool is_tunnel = reader.framing().kind == BodyKind::tunnel;
  // Bytes that follow would be taken for the next response.
  const bool has_more = evbuffer_get_length(input()) != 0 && !is_tunnel;
  const bool closes = has_more || has(flags_of::closes) ||
                      reader.framing().kind == BodyKind::until_close ||
                      tambour::libevent::is_last(request);
  bool frees = false;
  // The next request and the end of the connection have callbacks, too.
  DeferredFree deferred(request);
  unlink(request);
  state = State::idle;
  if (closes) reset();
  if (!freed) {
    if (current() != nullptr) {
      if (is_connected()) {
        dispatch();
      } else if (connect() != 0) {
        retry_or_give_up();
      }
    } else if (!closes) {
      detect_close(true);
    } else {
      frees = has(flags_of::free_on_completion);
    }
  }
  if (deferred.end()) {
    request.cb(&request, request.cb_arg);
    free_unless_owned(request);
  }
  if (frees && !freed && current() == nullptr) evhttp_connection_free(this);
}

int evhttp_make_request(evhttp_connection* evcon, evhttp_request* req, evhttp_cmd_type type,
                        const char* uri) {
  const Kept kept(*evcon);
  req->kind = EVHTTP_REQUEST;
  req->type = type;
  char* const copy = is_valid_target(uri) ? event_mm_strdup_(uri) : nullptr;
  if (copy == nullptr) {
    event_warnx("evhttp_make_request: the target is invalid, or there is no memory");
    free_unless_owned(*req);
    return -1;
  }
  if (req->uri != nullptr) event_mm_free_(req->uri);
  req->uri = copy;
  if (req->major == 0 && req->minor == 0) req->major = req->minor = 1;
  req->evcon = evcon;
  TAILQ_INSERT_TAIL(&evcon->requests, req, next);
  // It is sent when the connection is retried.
  if (evcon->waits_for_retry) return 0;
  if (!evcon->is_connected()) {
    if (evcon->connect() == 0) return 0;
    evcon->drop(*req);
    return -1;
  }
  if (evcon->current() == req) evcon->dispatch();
  return 0;
}

void evhttp_cancel_request(evhttp_request* req) {
  evhttp_connection* const connection = req->evcon;
  if (connection == nullptr) return free_unless_owned(*req);
  if (connection->current() == req) return connection->fail(EVREQ_HTTP_REQUEST_CANCEL);
  connection->drop(*req);
}

extern "C" void evhttp_start_write_(evhttp_connection* evcon) { evcon->send_request(); }
