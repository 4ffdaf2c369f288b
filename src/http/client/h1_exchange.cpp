// Exchanges over HTTP/1: sends a request, reads the head of the response, and then its body.
#include "http/client/h1_exchange.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <tambour/net/stream_error.h>
#include <tambour/task/combinators.h>

#include "http/coding/body_decoder.h"
#include "http/coding/lists.h"
#include "http_message/failure.h"
#include "http_message/h1/writer.h"

namespace tambour::http::detail::client {
namespace {

/// A body of at most this size is sent before the response is awaited. The socket takes it at once,
/// or after the server has read it.
constexpr std::size_t small_body_max = std::size_t{64} * 1024;

/// Whether the protocols of a response with the status 101 were offered: RFC 9110, section 7.8.
bool is_offered(const Fields& request, const Fields& response) {
  std::size_t chosen = 0;
  for (const Field field : response) {
    if (!equal_ignoring_case(field.name, "Upgrade")) continue;
    for (const std::string_view protocol : coding::ListElements(field.value)) {
      if (!request.has_token("Upgrade", protocol)) return false;
      ++chosen;
    }
  }
  return chosen > 0;
}

}  // namespace

Task<Result<>> H1Exchange::begin(const RequestHead& head, OutgoingBody body) {
  body_ = std::move(body);
  Buffer output;
  // A sender of Upgrade must name it there: RFC 9110, section 7.8.
  const char* const connection = head.fields.contains("Upgrade") ? "upgrade" : "";
  if (auto written =
          h1::append_head(output, head, {.framing = body_.framing, .connection = connection});
      !written)
    co_return std::unexpected(written.error());
  const bool is_small = body_.source == nullptr && body_.bytes.size() <= small_body_max;
  if (is_small && !body_.expects_continue) {
    // If this fails, the server may have answered before it closed the connection.
    static_cast<void>(co_await send(std::move(output)));
  } else {
    if (body_.expects_continue) may_send_body_.emplace(loop_);
    sender_.emplace(loop_);
    sender_->set_exception_handler([this](std::exception_ptr thrown) {
      send_exception_ = std::move(thrown);
      lease_->stream.close();
    });
    sender_->spawn(send_concurrently(std::move(output)));
  }
  auto received = co_await receive_head(head);
  if (received && received->status == Status::switching_protocols) {
    const auto checked = co_await check_upgrade(head, *received);
    if (!checked) received = std::unexpected(checked.error());
  }
  if (!received) {
    end(false);
    co_return std::unexpected(cause_of(received.error()));
  }
  // The server does not want the body: RFC 9110, section 10.1.1.
  if (code_of(received->status) >= 300 && !is_sent_) sender_.reset();
  const h1::BodyFraming& framing = lease_->parser.framing();
  if (framing.kind != h1::BodyKind::chunked && framing.kind != h1::BodyKind::until_close)
    length_ = framing.kind == h1::BodyKind::length ? framing.length : 0;
  head_ = std::move(*received);
  if (lease_->parser.is_complete()) complete();
  co_return {};
}

Task<> H1Exchange::send_concurrently(Buffer output) {
  [[maybe_unused]] const auto sent = co_await send(std::move(output));
  // The peer would wait for the rest of the body. Closing ends the wait for the response.
  if (send_error_) lease_->stream.close();
}

Task<Result<>> H1Exchange::send(Buffer output) {
  if (may_send_body_) {
    auto written = co_await lease_->stream.write(output);
    if (!written) co_return written;
    // If the time limit passes, the body is sent anyway.
    static_cast<void>(co_await timeout(continue_timeout, may_send_body_->wait()));
  }
  if (body_.source != nullptr) co_return co_await send_source(std::move(output));
  output.append(std::move(body_.bytes));
  auto written = co_await lease_->stream.write(output);
  is_sent_ = written.has_value();
  co_return written;
}

Task<Result<>> H1Exchange::send_source(Buffer output) {
  const bool is_chunked = body_.framing.kind == h1::BodyKind::chunked;
  std::uint64_t left = body_.framing.length;
  for (;;) {
    Buffer piece;
    auto read = co_await body_.source->read(piece);
    if (read && !is_chunked && piece.size() > left)
      read = std::unexpected(system_error(EMSGSIZE));  // More than the request has announced.
    if (read && !is_chunked && piece.empty() && left > 0)
      read = std::unexpected(Error(StreamError::truncated));
    if (!read) {
      send_error_ = read.error();
      co_return read;
    }
    const bool is_last = piece.empty();
    if (is_chunked && !is_last) {
      h1::append_chunk(output, std::move(piece));
    } else if (is_chunked) {
      const Result<> ended = h1::append_last_chunk(output, body_.source->trailers());
      if (!ended) {
        send_error_ = ended.error();
        co_return ended;
      }
    } else {
      left -= piece.size();
      output.append(std::move(piece));
    }
    auto written = co_await lease_->stream.write(output);
    if (!written) co_return written;
    if (is_last) break;
  }
  is_sent_ = true;
  co_return {};
}

Task<Result<>> H1Exchange::check_upgrade(const RequestHead& request, const ResponseHead& response) {
  if (!is_offered(request.fields, response.fields))
    co_return failure(http::ErrorCode::not_an_upgrade);
  // The other protocol begins after the whole request. A time limit ends the wait.
  if (sender_) {
    auto sent = as_task(sender_->join());
    if (const Result<> joined = co_await std::move(sent); !joined) co_return joined;
  }
  if (!is_sent_) co_return failure(http::ErrorCode::not_an_upgrade);
  co_return {};
}

Task<Result<ResponseHead>> H1Exchange::receive_head(const RequestHead& request) {
  Connection& connection = *lease_.operator->();
  for (int interim = 0;;) {
    auto parsed = connection.parser.parse_head(connection.input, request.method);
    if (!parsed) co_return std::unexpected(parsed.error());
    if (!*parsed) {
      if (auto received = co_await receive(read_bytes_max_); !received)
        co_return std::unexpected(received.error());
      continue;
    }
    ResponseHead& head = connection.parser.head();
    if (!is_interim(head.status)) co_return std::move(head);
    if (++interim > interim_responses_max)
      co_return failure(http::ErrorCode::too_many_interim_responses);
    if (head.status == Status::continue_ && may_send_body_) may_send_body_->set();
    if (on_interim_ != nullptr) (*on_interim_)(head);
    if (interim_sink_ != nullptr && head.status != Status::continue_)
      co_await interim_sink_->pass_interim(head);
    connection.parser.restart();
  }
}

Task<Result<>> H1Exchange::receive(std::size_t bytes_max) {
  Connection& connection = *lease_.operator->();
  auto got = co_await connection.stream.read(connection.input, bytes_max);
  if (!got) co_return std::unexpected(got.error());
  if (*got > 0) {
    has_received_ = true;
    co_return {};
  }
  co_return connection.parser.end_input(connection.input);
}

/// The size of a block of memory follows, so that a short rest does not take a large one. One more
/// byte shows that the server has sent more than its response.
std::size_t H1Exchange::body_read_max() const noexcept {
  const auto left = lease_->parser.bytes_left();
  if (!left || *left >= read_bytes_max_) return read_bytes_max_;
  return static_cast<std::size_t>(*left) + 1;
}

void H1Exchange::set_body_bytes_max(std::uint64_t bytes_max) noexcept {
  if (lease_) lease_->parser.set_body_bytes_max(bytes_max);
}

std::unexpected<Error> H1Exchange::fail_body(const Error& error) noexcept {
  if (!read_error_) read_error_ = error;
  end(false);
  return std::unexpected(error);
}

Task<Result<>> H1Exchange::receive_within(TimePoint since) {
  const std::size_t buffered = lease_->input.size();
  const std::optional<Duration> limit = patience_.begin(since);
  // A read that succeeds at once would not notice it.
  if (limit && *limit <= Duration::zero()) co_return std::unexpected(system_error(ETIMEDOUT));
  const std::size_t bytes_max = body_read_max();
  auto receiving = limit ? timeout(*limit, receive(bytes_max)) : receive(bytes_max);
  const auto received = co_await std::move(receiving);
  patience_.end(lease_->input.size() - buffered);
  co_return received;
}

Task<Result<Buffer>> H1Exchange::read_body(std::size_t bytes_max) {
  if (read_error_) co_return std::unexpected(read_error_);
  Buffer piece;
  // What follows the status 101 is not a body: the program takes it with the connection.
  if (is_body_complete()) co_return piece;
  // Bytes that only frame the body do not extend the time.
  const TimePoint since = loop_.now();
  for (;;) {
    Connection& connection = *lease_.operator->();
    auto moved = connection.parser.read_body(connection.input, piece, bytes_max);
    if (moved && connection.parser.is_complete()) complete();
    if (moved && (*moved > 0 || is_complete_)) co_return piece;
    Result<> received;
    if (!moved) {
      received = std::unexpected(moved.error());
    } else {
      received = co_await receive_within(since);
    }
    if (!received) {
      read_error_ = received.error();
      end(false);
      read_error_ = cause_of(read_error_);
      co_return std::unexpected(read_error_);
    }
  }
}

Error H1Exchange::cause_of(const Error& error) {
  if (send_exception_ != nullptr) std::rethrow_exception(std::exchange(send_exception_, nullptr));
  return send_error_ ? send_error_ : error;
}

Result<ByteStream> H1Exchange::upgrade() {
  if (!is_tunnel()) return std::unexpected(system_error(EINVAL));
  sender_.reset();
  ByteStream stream(std::move(lease_->stream), std::move(lease_->input));
  end(false);
  is_complete_ = true;
  return stream;
}

void H1Exchange::abort(const Error& error) noexcept {
  if (!lease_) return;
  if (!send_error_) send_error_ = error;
  lease_->stream.close();
}

void H1Exchange::complete() {
  if (is_tunnel()) return;
  h1::ResponseParser& parser = lease_->parser;
  trailers_ = parser.trailers();
  is_complete_ = true;
  // Bytes after the response belong to no request.
  end(is_sent_ && parser.is_persistent() && lease_->input.empty() && lease_->stream.is_open());
}

void H1Exchange::end(bool is_reusable) noexcept {
  sender_.reset();
  if (!lease_) return;
  if (is_reusable) {
    lease_.release();
  } else {
    lease_.close();
  }
}

}  // namespace tambour::http::detail::client
