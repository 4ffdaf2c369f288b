// The exchange of a connection of HTTP/1.1: the body of the request, and the response.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include <tambour/stream_error.h>

#include "base/clock.h"
#include "http/server/h1_connection.h"
#include "http_message/date.h"
#include "http_message/failure.h"
#include "http_message/h1/writer.h"
#include "loop/core.h"

namespace tambour::http::h1 {
namespace {

constexpr std::string_view continue_response = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

std::optional<std::uint64_t> ServerConnection::body_length() const noexcept {
  const BodyFraming& framing = parser_.framing();
  if (framing.kind == BodyKind::chunked) return std::nullopt;
  return framing.kind == BodyKind::length ? framing.length : 0;
}

std::unexpected<Error> ServerConnection::fail_body(const Error& error) noexcept {
  if (!body_error_) body_error_ = error;
  persistent_ = false;
  lingers_ = true;
  return std::unexpected(error);
}

Task<Result<Buffer>> ServerConnection::read_body(std::size_t bytes_max) {
  Buffer piece;
  while (!body_error_) {
    const Result<std::size_t> parsed = parser_.read_body(in_, piece, bytes_max);
    if (!parsed) co_return fail_body(parsed.error());
    if (*parsed > 0 || parser_.is_complete()) {
      expects_continue_ = false;
      start_watching();
      co_return piece;
    }
    if (std::exchange(expects_continue_, false) && !response().begun()) {
      Appending appending(is_broken_);
      out_.append(continue_response);
      appending.complete();
      const Result<> sent = co_await flush();
      if (!sent) co_return fail_body(sent.error());
    }
    // Not loop_.now(), which is the time before the handler has computed.
    const TimePoint begin(Duration(loop::core_of(loop_).clock_ns()));
    start_reading(body_time_);
    const Result<std::size_t> got = end_reading(co_await stream_.read(in_, read_bytes));
    if (!got) co_return fail_body(got.error());
    use_body_time(std::max(loop_.now() - begin, Duration::zero()), *got);
    if (*got > 0) continue;
    if (const Result<> ended = parser_.end_input(in_); !ended) co_return fail_body(ended.error());
  }
  co_return std::unexpected(body_error_);
}

void ServerConnection::use_body_time(Duration spent, std::size_t received) noexcept {
  const Duration most = options().body_timeout;
  if (most <= Duration::zero()) return;
  Duration gained{};
  if (const std::size_t rate = options().body_rate_min; rate > 0)
    gained = std::chrono::nanoseconds(received * std::uint64_t{1'000'000'000} / rate);
  // At least a nanosecond, because zero means no limit.
  body_time_ = std::clamp(base::saturating_add(body_time_ - spent, gained), Duration(1), most);
}

bool ServerConnection::is_bodiless() const noexcept {
  return has_no_body(response().status()) ||
         (method_ == Method::connect && is_success(response().status()));
}

/// Appends the head.
Result<> ServerConnection::begin_response(const BodyFraming& framing) {
  if (response().begun()) return failure(HttpError::response_begun);
  if (class_of(response().status()) == 1) return failure(HttpError::interim_status);
  const RequestHead& request = parser_.head();
  // A client that waits for "100 Continue" may send the body after this response, or may not.
  const bool awaits_continue = expects_continue_ && in_.empty();
  const bool ends = drains() || body_error_ || awaits_continue ||
                    framing.kind == BodyKind::until_close || method_ == Method::connect ||
                    response().fields().has_token("Connection", "close");
  HeadOptions head{.framing = framing};
  const bool stays = persistent_ && !ends;
  if (!stays) head.connection = "close";
  if (stays && request.version == Version::http_1_0) head.connection = "keep-alive";
  head.date = cached_date(loop::core_of(loop_).wall_ns());
  Appending appending(is_broken_);
  const Result<> appended = append_head(out_, response().head(), head);
  appending.complete();
  if (!appended) return appended;
  persistent_ = stays;
  framing_ = framing;
  update_now();
  begun_at_ = loop_.now();
  set_state(response(), ResponseState::begun);
  return {};
}

Result<> ServerConnection::send(Buffer body) {
  const bool bodiless = is_bodiless();
  if (bodiless && !body.empty()) return failure(HttpError::response_too_long);
  BodyFraming framing;
  // A handler of HEAD need not make the body. Its size is then unknown unless the handler states
  // it.
  const bool is_unknown = !sends_body() && body.empty() && !response().length();
  if (!bodiless && !is_unknown)
    framing = {.kind = BodyKind::length,
               .length = body.empty() ? response().length().value_or(0) : body.size()};
  if (auto begun = begin_response(framing); !begun) return begun;
  const std::size_t size = body.size();
  // A head without its body would make the client take the next response for the body.
  Appending appending(is_broken_);
  if (sends_body()) out_.append(std::move(body));
  appending.complete();
  add_body_bytes(response(), size);
  set_state(response(), ResponseState::ended);
  return {};
}

/// The head of a response whose body follows in pieces.
Result<> ServerConnection::begin_stream() {
  if (is_bodiless()) return begin_response({});
  if (response().length())
    return begin_response({.kind = BodyKind::length, .length = *response().length()});
  const bool is_old = parser_.head().version == Version::http_1_0;
  return begin_response({.kind = is_old ? BodyKind::until_close : BodyKind::chunked});
}

bool ServerConnection::is_too_long(std::uint64_t bytes) const noexcept {
  const bool is_limited = framing_.kind == BodyKind::length || framing_.kind == BodyKind::none;
  return is_limited && bytes > framing_.length - response().body_bytes();
}

Result<> ServerConnection::add_to_body(Buffer piece) {
  if (response().ended()) return failure(HttpError::response_ended);
  if (is_too_long(piece.size())) return failure(HttpError::response_too_long);
  const std::size_t size = piece.size();
  if (size == 0 || !sends_body()) {
    add_body_bytes(response(), size);
    return {};
  }
  Appending appending(is_broken_);
  if (framing_.kind == BodyKind::chunked) {
    append_chunk(out_, std::move(piece));
  } else {
    out_.append(std::move(piece));
  }
  appending.complete();
  add_body_bytes(response(), size);
  return {};
}

Task<Result<>> ServerConnection::write(Buffer piece) {
  if (!response().begun()) {
    if (auto begun = begin_stream(); !begun) co_return begun;
  }
  if (auto added = add_to_body(std::move(piece)); !added) co_return added;
  co_return co_await flush();
}

Result<> ServerConnection::end(const Fields& trailers) {
  if (response().ended()) return failure(HttpError::response_ended);
  if (!response().begun()) {
    if (auto begun = begin_stream(); !begun) return begun;
  }
  const bool has_all = !sends_body() || response().body_bytes() == framing_.length;
  if (framing_.kind == BodyKind::length && !has_all) return failure(HttpError::response_too_short);
  if (framing_.kind == BodyKind::chunked && sends_body()) {
    Appending appending(is_broken_);
    const Result<> appended = append_last_chunk(out_, trailers);
    appending.complete();
    if (!appended) return appended;
  }
  set_state(response(), ResponseState::ended);
  return {};
}

/// Whether the connection may become a tunnel: RFC 9110, sections 7.8 and 9.3.6.
Result<> ServerConnection::check_tunnel() const noexcept {
  if (response().begun()) return failure(HttpError::response_begun);
  if (method_ == Method::connect)
    return is_success(response().status()) ? Result<>() : failure(HttpError::bad_status);
  const RequestHead& request = parser_.head();
  const auto protocol = response().fields().get("Upgrade");
  const bool is_asked_for = request.version != Version::http_1_0 && protocol &&
                            request.fields.has_token("Connection", "upgrade") &&
                            request.fields.has_token("Upgrade", *protocol);
  return is_asked_for ? Result<>() : failure(HttpError::not_an_upgrade);
}

Task<Result<ByteStream>> ServerConnection::upgrade() {
  if (const auto checked = check_tunnel(); !checked) co_return std::unexpected(checked.error());
  watch_.reset();
  if (!parser_.is_complete()) {
    const bool is_small = co_await discard_body();
    if (!is_small) co_return fail_body(HttpError::body_too_large);
  }
  HeadOptions head{.date = cached_date(loop::core_of(loop_).wall_ns())};
  if (method_ != Method::connect) {
    response().set_status(Status::switching_protocols);
    head.connection = "upgrade";
  }
  Appending appending(is_broken_);
  const Result<> appended = append_head(out_, response().head(), head);
  appending.complete();
  if (!appended) co_return std::unexpected(appended.error());
  set_state(response(), ResponseState::ended);
  persistent_ = false;
  const Result<> flushed = co_await flush();
  if (!flushed) co_return std::unexpected(flushed.error());
  is_tunnel_ = true;
  co_return ByteStream(SocketStream(std::move(stream_)), std::move(in_));
}

/// Several tasks may call it: the handler, and the task of the connection.
Task<Result<>> ServerConnection::flush() {
  while (is_writing_) {
    written_.reset();
    const Result<> waited = co_await written_.wait();
    if (!waited) co_return waited;
  }
  const Writing writing(is_writing_, write_timer_, written_);
  while (begin_writing()) end_writing(co_await stream_.write(sending_));
  if (write_error_) co_return std::unexpected(write_error_);
  co_return {};
}

bool ServerConnection::begin_writing() noexcept {
  // What a write that was destroyed has left cannot be continued: it may have sent a part.
  if (unsent() > 0 && !write_error_) write_error_ = system_error(ECANCELED);
  if (out_.empty() || write_error_) return false;
  sending_ = std::move(out_);
  unsent_before_ = unsent();
  write_expired_ = false;
  if (options().write_timeout > Duration::zero()) write_timer_.start(options().write_timeout);
  return true;
}

void ServerConnection::end_writing(const Result<>& written) noexcept {
  write_timer_.stop();
  if (!written) write_error_ = write_expired_ ? system_error(ETIMEDOUT) : written.error();
}

/// Ends a write that has made no progress since the timer was started.
void ServerConnection::check_writing() noexcept {
  if (std::exchange(unsent_before_, unsent()) != unsent())
    return write_timer_.start(options().write_timeout);
  write_expired_ = true;
  stream_.stop_waiting(true);
}

void ServerConnection::start_reading(Duration limit) noexcept {
  read_expired_ = false;
  read_timer_.stop();  // A read that was destroyed may have left it.
  if (limit > Duration::zero()) read_timer_.start(limit);
}

Result<std::size_t> ServerConnection::end_reading(Result<std::size_t> got) noexcept {
  read_timer_.stop();
  if (!got && read_expired_) return std::unexpected(system_error(ETIMEDOUT));
  return got;
}

}  // namespace tambour::http::h1
