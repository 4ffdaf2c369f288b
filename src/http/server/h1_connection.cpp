#include "http/server/h1_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <string>
#include <utility>

#include <tambour/stream_error.h>
#include <tambour/wait.h>

#include "backend/system.h"
#include "base/clock.h"
#include "http_message/characters.h"
#include "loop/core.h"

namespace tambour::http::h1 {
namespace {

/// Responses are sent before the next request if there are more bytes of them.
constexpr std::size_t collected_bytes_max = std::size_t{64} * 1024;

}  // namespace

void InterruptibleStream::reset() noexcept {
  if (!is_open()) return;
  const linger no_linger{.l_onoff = 1, .l_linger = 0};
  static_cast<void>(
      system().setsockopt(descriptor(), SOL_SOCKET, SO_LINGER, &no_linger, sizeof no_linger));
  close();
}

ServerConnection::ServerConnection(SocketStream stream,
                                   std::shared_ptr<const ServerSettings> settings,
                                   std::stop_token shutdown, std::stop_token stop)
    : loop_(stream.loop()),
      settings_(std::move(settings)),
      stream_(std::move(stream)),
      parser_(settings_->options.limits),
      read_timer_(loop_,
                  [this] {
                    read_expired_ = true;
                    stream_.stop_waiting(false);
                    if (is_closing_) stream_.stop_waiting(true);
                  }),
      write_timer_(loop_, [this] { check_writing(); }),
      written_(loop_),
      shutdown_(std::move(shutdown)),
      handlers_(loop_, std::move(stop)) {
  handlers_.set_exception_handler([this](std::exception_ptr thrown) {
    if (thrown_ == nullptr) thrown_ = std::move(thrown);
  });
  drain_.emplace(shutdown_, Drain{*this});
}

Task<> ServerConnection::serve() {
  for (bool more = true; more;) {
    const Result<bool> has_head = parser_.parse_head(in_);
    if (!has_head) {
      reject(has_head.error());
      break;
    }
    if (!*has_head) {
      // Not in tasks of their own, whose frames would have to be allocated for each request. No
      // handler is running.
      while (begin_writing()) end_writing(co_await stream_.write(sending_));
      more = begin_receiving();
      if (more) more = end_receiving(co_await stream_.read(in_, read_bytes));
      continue;
    }
    while (more && turn_.is_over(loop::core_of(loop_))) more = co_await begin_next_turn();
    if (!more) break;
    begin_exchange();
    start_handler();
    if (!handlers_.empty()) {
      // The handler waits. Earlier responses must not wait for it.
      if (!out_.empty()) static_cast<void>(co_await flush());
      co_await handlers_.join();
    }
    watch_.reset();
    const bool is_left = !response().ended();
    finish_response();
    report_response();
    report_exception();
    end_handled(is_left);
    if (is_tunnel_ || is_broken_ || !persistent_) break;
    if (out_.size() >= collected_bytes_max || !parser_.is_complete())
      static_cast<void>(co_await flush());
    if (!parser_.is_complete()) more = co_await discard_body();
    parser_.restart();
  }
  if (!is_tunnel_) co_await close_gracefully();
  if (thrown_ != nullptr) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

/// Prepares to wait for more bytes of a head. Returns false if the connection has failed.
bool ServerConnection::begin_receiving() noexcept {
  if (write_error_) return false;
  is_idle_ = in_.empty();
  const Duration patience =
      is_idle_ && has_served_ ? options().idle_timeout : options().header_timeout;
  if (head_deadline_ == never && patience > Duration::zero())
    head_deadline_ = base::saturating_add(loop_.now(), patience);
  start_reading(Duration::zero());
  if (head_deadline_ != never) read_timer_.start_at(head_deadline_);
  if (is_idle_ && drains()) begin_drain();
  return true;
}

/// Returns false if the connection has ended, or has to.
bool ServerConnection::end_receiving(Result<std::size_t> received) {
  const Result<std::size_t> got = end_reading(received);
  if (is_idle_ && has_served_) head_deadline_ = never;  // The first bytes of the next head.
  const bool was_idle = std::exchange(is_idle_, false);
  if (got && *got > 0) return true;
  if (got) {
    const Result<> ended = parser_.end_input(in_);
    if (!ended && ended.error() != StreamError::eof) reject(ended.error());
  } else if (got.error() == system_error(ETIMEDOUT) && !was_idle) {
    reject(got.error());
  } else {
    stream_.close();  // No response can be lost.
  }
  return false;
}

/// Lets the other connections of the loop run before the next request, which has been received
/// already. Returns false if this connection has failed, or its task was asked to stop.
Task<bool> ServerConnection::begin_next_turn() {
  const bool is_flushed = (co_await flush()).has_value();
  if (is_flushed && co_await sleep_for(Duration::zero())) co_return true;
  stream_.close();
  co_return false;
}

void ServerConnection::begin_exchange() {
  has_served_ = true;
  head_deadline_ = never;
  update_now();
  received_at_ = loop_.now();
  restart(response(), *this);
  restart(request(), *this);
  const RequestHead& head = parser_.head();
  method_ = head.method;
  framing_ = {};
  persistent_ = parser_.is_persistent();
  body_error_ = {};
  body_time_ = options().body_timeout;
  expects_continue_ = false;
}

/// Keeps a handler that has ended from answering the next request. A handler that leaves its
/// response to another task ends before the response: its objects are set aside, so that the next
/// request has others. They are used again after `left_max` others.
void ServerConnection::end_handled(bool is_left) noexcept {
  end_use(request(), ended_exchange());
  end_use(response(), ended_exchange());
  if (!is_left || !persistent_) return;
  try {
    if (left_.size() < left_max) left_.push_back(std::make_unique<Handled>(exchange()));
  } catch (const std::bad_alloc&) {
    if (left_.empty()) return;
  }
  response().head() = ResponseHead();
  if (next_left_ == left_.size()) next_left_ = 0;
  std::swap(handled_, left_[next_left_++]);
}

/// Durations are measured exactly if the program logs them.
void ServerConnection::update_now() noexcept {
  if (options().on_response) loop_.update_now();
}

void ServerConnection::start_handler() {
  const RequestHead& head = parser_.head();
  if (head.version != Version::http_1_0) {
    if (const auto expect = head.fields.get("Expect")) {
      if (!equal_ignoring_case(*expect, "100-continue")) {
        persistent_ = false;
        return send_status(Status::expectation_failed, "only 100-continue is supported");
      }
      expects_continue_ = !parser_.is_complete();
    }
  }
  try {
    Task<> task = settings_->handler.start(request(), response());
    if (task) handlers_.spawn(std::move(task), settings_->handler.created_at());
  } catch (...) {
    thrown_ = std::current_exception();
  }
}

std::stop_token ServerConnection::disconnect_token() {
  if (watch_ == nullptr) watch_ = std::make_unique<ClientWatch>(loop_);
  start_watching();
  return watch_->disconnected.get_token();
}

/// The bytes of a body are read only when the handler asks for them, so that it slows down a client
/// that sends faster: the watch begins at the end of the body.
void ServerConnection::start_watching() {
  if (watch_ == nullptr || !parser_.is_complete() || is_tunnel_) return;
  if (watch_->reading.empty() && !watch_->disconnected.stop_requested())
    watch_->reading.spawn(watch_client());
}

/// Reads ahead until the client has closed the connection. The end of TLS is a message, too, which
/// only a read finds.
Task<> ServerConnection::watch_client() {
  while (in_.size() < read_bytes) {
    const Result<std::size_t> got = co_await stream_.read(in_, read_bytes);
    if (got && *got > 0) continue;
    if (!got && !write_error_) write_error_ = got.error();
    watch_->disconnected.request_stop();
    co_return;
  }
  // What the client sends now stays in the socket. The kernel still says when the client has
  // closed the connection, except to select(2).
  if (co_await ready(stream_.descriptor(), Events::closed)) watch_->disconnected.request_stop();
}

/// Completes what the handler has left undone.
void ServerConnection::finish_response() {
  if (write_error_) {
    is_broken_ = true;
  } else if (thrown_ != nullptr) {
    persistent_ = false;
    lingers_ = true;
    if (!response().begun()) return send_status(Status::internal_server_error, {});
    is_broken_ = is_broken_ || !response().ended();
  } else if (!response().begun()) {
    if (body_error_) return send_status(status_for(body_error_), body_error_.message());
    if (!send(Buffer())) send_status(Status::internal_server_error, "invalid response");
  } else if (!response().ended()) {
    if (!end(Fields())) is_broken_ = true;
  }
}

void ServerConnection::report_response() noexcept {
  if (!options().on_response) return;
  try {
    options().on_response(request(), response());
  } catch (...) {
    persistent_ = false;
    if (thrown_ == nullptr) thrown_ = std::current_exception();
  }
}

/// Reports the exception soon, and not when the connection has ended, which may take the time of
/// lingering. From the loop, because on_error may destroy the server, and with it this task. If the
/// connection ends first, serve() throws the exception.
void ServerConnection::report_exception() noexcept {
  if (thrown_ == nullptr) return;
  try {
    self_ = std::make_shared<ServerConnection*>(this);
    loop_.post([weak = std::weak_ptr<ServerConnection*>(self_)] {
      if (const auto self = weak.lock()) (*self)->pass_exception_on();
    });
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): serve() throws it.
  }
}

void ServerConnection::pass_exception_on() noexcept {
  // on_error may destroy this connection, and with it the last reference to the settings.
  const std::shared_ptr<const ServerSettings> settings = settings_;
  settings->reporter->report(loop::core_of(loop_), std::exchange(thrown_, nullptr));
}

/// Reads what the handler has not read of the body. Returns false if that is too much.
Task<bool> ServerConnection::discard_body() {
  const std::size_t bytes_max = options().discarded_bytes_max;
  bool is_small = parser_.bytes_left().value_or(0) <= bytes_max;
  std::size_t total = 0;
  while (is_small && !parser_.is_complete()) {
    const Result<Buffer> piece = co_await read_body(read_bytes);
    total += piece ? piece->size() : 0;
    is_small = piece && total <= bytes_max;
  }
  lingers_ = !is_small;
  co_return is_small;
}

/// Sends the last response. If the client may still be sending, closing at once would make the
/// kernel reset the connection, and the client might lose the response.
Task<> ServerConnection::close_gracefully() {
  const bool is_flushed = (co_await flush()).has_value();
  if (is_broken_) stream_.reset();
  if (!is_flushed || !stream_.is_open()) co_return;
  lingers_ = lingers_ || drains() || !in_.empty() || (parser_.has_head() && !parser_.is_complete());
  const Duration limit = linger_limit();
  const bool waits = lingers_ && limit > Duration::zero();
  // The end of TLS is a message, without which the client would take the response for a part.
  if (!waits && stream_.tls() == nullptr) co_return;
  is_closing_ = true;
  start_reading(waits ? limit : options().write_timeout);
  const Result<> shut = co_await stream_.shutdown_write();
  bool is_open = shut.has_value() && waits;
  while (is_open && !read_expired_) {
    in_.clear();
    const Result<std::size_t> got = co_await stream_.read(in_, read_bytes);
    is_open = got.value_or(0) > 0;
  }
  read_timer_.stop();
}

/// While the server shuts down, a client that keeps its connection open does not hold it up.
Duration ServerConnection::linger_limit() const noexcept {
  return drains() ? std::min(options().linger, options().drain_timeout) : options().linger;
}

/// Answers a message that is not a request.
void ServerConnection::reject(const Error& error) {
  parser_.keep_start_line(in_);
  begin_exchange();
  method_ = Method::get;
  persistent_ = false;
  lingers_ = true;
  send_status(status_for(error), error.message());
  report_response();
  report_exception();
}

/// Sends a response without the handler, with a short text as its body.
void ServerConnection::send_status(Status status, std::string_view reason) {
  restart(response(), *this);
  persistent_ = persistent_ && !body_error_;
  response().set_status(status);
  std::string text = std::to_string(code_of(status));
  text.append(" ").append(reason_phrase(status));
  if (!reason.empty()) text.append(": ").append(reason);
  static_cast<void>(response().fields().add("Content-Type", "text/plain"));
  if (!send(Buffer(text.append("\n")))) is_broken_ = true;
}

/// An idle connection stays open for a request that the client may have sent already, and one that
/// lingers for what the client is still sending.
void ServerConnection::begin_drain() noexcept {
  if (!is_idle_ && !is_closing_) return;
  const TimePoint deadline = base::saturating_add(loop_.now(), options().drain_timeout);
  if (!read_timer_.started() || deadline < read_timer_.deadline()) read_timer_.start_at(deadline);
}

}  // namespace tambour::http::h1

namespace tambour::http {

Task<> serve_connection(SocketStream stream, std::shared_ptr<const ServerSettings> settings,
                        std::stop_token shutdown) {
  const TaskContext& context = co_await this_task;
  h1::ServerConnection connection(std::move(stream), std::move(settings), std::move(shutdown),
                                  context.stop);
  co_await connection.serve();
}

}  // namespace tambour::http
