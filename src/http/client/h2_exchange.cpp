// H2Exchange: sends a request on a stream, reads the head of the response, and then its body.
#include "http/client/h2_exchange.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <tambour/net/stream_error.h>
#include <tambour/task/combinators.h>

#include "http/client/h2_tunnel.h"
#include "http/h2/client_connection.h"
#include "http_message/failure.h"

namespace tambour::http::detail::client {

H2Exchange::H2Exchange(EventLoop& loop, Lease lease, const ReadLimits& limits,
                       std::uint64_t body_bytes_max)
    : loop_(loop),
      lease_(std::move(lease)),
      stream_(std::make_unique<H2ClientStream>(*lease_.multiplexed())),
      patience_(loop, limits),
      body_bytes_max_(body_bytes_max) {}

Task<Result<>> H2Exchange::begin(const RequestHead& head, OutgoingBody body) {
  body_ = std::move(body);
  if (!head.protocol.empty()) {
    const Result<> allowed = co_await await_connect_protocol();
    if (!allowed) {
      end();
      co_return allowed;
    }
  }
  const bool is_connect = head.method == Method::connect;
  const bool has_body = body_.source != nullptr || !body_.bytes.empty();
  std::optional<std::uint64_t> length;
  if (body_.framing.kind == h1::BodyKind::length && !is_connect) length = body_.framing.length;
  Result<> begun = stream_->open(head, length, !has_body && !is_connect);
  if (begun) {
    if (has_body) start_sending();
    begun = co_await receive_head();
  }
  has_received_ = stream_->has_received();
  if (!begun) {
    is_unprocessed_ = stream_->is_unprocessed();
    const Error cause = cause_of(begun.error());
    end();
    co_return std::unexpected(cause);
  }
  // The server may have ended its side already.
  is_tunnel_ = is_connect && is_success(head_.status);
  if (is_connect && !is_tunnel_) static_cast<void>(stream_->end({}));
  // The server does not want the body: RFC 9110, section 10.1.1.
  if (code_of(head_.status) >= 300 && sender_ && !stream_->is_sent()) {
    sender_.reset();
    stream_->stop_sending();
  }
  length_ = is_tunnel_ ? 0 : stream_->length();
  if (!is_tunnel_ && stream_->is_response_complete() && stream_->received_bytes() == 0) {
    if (!length_) length_ = 0;
    complete();
  }
  co_return {};
}

Task<Result<>> H2Exchange::await_connect_protocol() {
  H2ClientConnection& connection = *lease_.multiplexed();
  const Result<> waited = co_await connection.settings_arrived().wait();
  if (!waited) co_return waited;
  // A connection that has ended opens no stream: the request is repeated on another one.
  if (connection.can_open() && !connection.allows_connect_protocol())
    co_return failure(http::ErrorCode::no_extended_connect);
  co_return {};
}

void H2Exchange::start_sending() {
  if (body_.source == nullptr && !body_.expects_continue) {
    stream_->write(std::move(body_.bytes));
    static_cast<void>(stream_->end({}));
    return;
  }
  if (body_.expects_continue) may_send_body_.emplace(loop_);
  sender_.emplace(loop_);
  sender_->set_exception_handler([this](std::exception_ptr thrown) {
    send_exception_ = std::move(thrown);
    stream_->fail(system_error(ECANCELED));
  });
  sender_->spawn(send_body());
}

Task<> H2Exchange::send_body() {
  // If the time limit passes, the body is sent anyway.
  if (may_send_body_) static_cast<void>(co_await timeout(continue_timeout, may_send_body_->wait()));
  if (body_.source == nullptr) {
    stream_->write(std::move(body_.bytes));
    static_cast<void>(stream_->end({}));
    co_return;
  }
  const Result<> sent = co_await send_source();
  if (sent) co_return;
  send_error_ = sent.error();
  stream_->fail(send_error_);
}

Task<Result<>> H2Exchange::send_source() {
  const bool has_length = body_.framing.kind == h1::BodyKind::length;
  std::uint64_t left = body_.framing.length;
  for (;;) {
    Buffer piece;
    const Result<> read = co_await body_.source->read(piece);
    if (!read) co_return read;
    if (has_length && piece.size() > left)
      co_return std::unexpected(system_error(EMSGSIZE));  // More than the request has announced.
    if (has_length && piece.empty() && left > 0)
      co_return std::unexpected(Error(StreamError::truncated));
    if (piece.empty()) co_return stream_->end(body_.source->trailers());
    left -= has_length ? piece.size() : 0;
    stream_->write(std::move(piece));
    while (!stream_->is_flushed()) {
      const Result<> waited = co_await stream_->sent().wait();
      if (!waited) co_return waited;
    }
    // Nothing more is sent. What waits for the response learns why.
    if (stream_->send_error()) co_return {};
  }
}

Task<Result<>> H2Exchange::receive_head() {
  for (int interim = 0;;) {
    auto& heads = stream_->heads();
    while (!heads.empty()) {
      ResponseHead head = std::move(heads.front());
      heads.erase(heads.begin());
      if (!is_interim(head.status)) {
        head_ = std::move(head);
        co_return {};
      }
      if (++interim > interim_responses_max)
        co_return failure(http::ErrorCode::too_many_interim_responses);
      if (head.status == Status::continue_ && may_send_body_) may_send_body_->set();
      if (on_interim_ != nullptr) (*on_interim_)(head);
      if (interim_sink_ != nullptr && head.status != Status::continue_)
        co_await interim_sink_->pass_interim(head);
    }
    if (stream_->error()) co_return std::unexpected(stream_->error());
    stream_->arrived().reset();
    const Result<> waited = co_await stream_->arrived().wait();
    if (!waited) co_return waited;
  }
}

bool H2Exchange::is_too_large() const noexcept {
  return std::max(length_.value_or(0), stream_->received_bytes()) > body_bytes_max_;
}

Task<Result<>> H2Exchange::wait_for_body(TimePoint since) {
  const std::uint64_t before = stream_->received_bytes();
  const std::optional<Duration> limit = patience_.begin(since);
  if (limit && *limit <= Duration::zero()) co_return std::unexpected(system_error(ETIMEDOUT));
  stream_->arrived().reset();
  auto arrived = as_task(stream_->arrived().wait());
  auto waiting = limit ? timeout(*limit, std::move(arrived)) : std::move(arrived);
  const Result<> waited = co_await std::move(waiting);
  patience_.end(static_cast<std::size_t>(stream_->received_bytes() - before));
  co_return waited;
}

Task<Result<Buffer>> H2Exchange::read_body(std::size_t bytes_max) {
  if (read_error_) co_return std::unexpected(read_error_);
  if (is_body_complete()) co_return Buffer();
  const TimePoint since = loop_.now();
  for (;;) {
    if (is_too_large()) co_return fail_body(http::ErrorCode::body_too_large);
    if (stream_->buffered() > 0 || stream_->is_response_complete()) {
      Buffer piece = stream_->take(bytes_max);
      if (stream_->buffered() == 0 && stream_->is_response_complete()) complete();
      co_return piece;
    }
    Result<> waited;
    if (stream_->error()) {
      waited = std::unexpected(stream_->error());
    } else {
      waited = co_await wait_for_body(since);
    }
    if (waited) continue;
    read_error_ = waited.error();
    const Error cause = cause_of(read_error_);
    co_return fail_body(cause);
  }
}

std::unexpected<Error> H2Exchange::fail_body(const Error& error) noexcept {
  read_error_ = error;
  end();
  return std::unexpected(error);
}

Error H2Exchange::cause_of(const Error& error) {
  if (send_exception_ != nullptr) {
    const std::exception_ptr thrown = std::exchange(send_exception_, nullptr);
    end();
    std::rethrow_exception(thrown);
  }
  return send_error_ ? send_error_ : error;
}

Result<ByteStream> H2Exchange::upgrade() {
  if (!is_tunnel_ || stream_ == nullptr) return std::unexpected(system_error(EINVAL));
  auto tunnel = std::make_unique<H2Tunnel>(std::move(lease_), std::move(stream_));
  end();
  is_complete_ = true;
  return ByteStream(std::move(tunnel));
}

void H2Exchange::abort(const Error& error) noexcept {
  if (stream_ == nullptr) return;
  if (!send_error_) send_error_ = error;
  stream_->fail(error);
}

void H2Exchange::complete() {
  trailers_ = std::move(stream_->trailers());
  is_complete_ = true;
  end();
}

void H2Exchange::end() noexcept {
  sender_.reset();
  stream_.reset();
  lease_.close();
}

}  // namespace tambour::http::detail::client
