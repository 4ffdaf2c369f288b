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
  const bool has_upgrade = has_upgrade_ ? *has_upgrade_ : head.fields.contains("Upgrade");
  // A sender of Upgrade must name it there: RFC 9110, section 7.8.
  const h1::HeadOptions options{.framing = body_.framing,
                                .connection = has_upgrade ? "upgrade" : ""};
  if (const auto written = h1::append_head(output, head, options); !written)
    co_return std::unexpected(written.error());
  Connection& connection = *lease_.operator->();
  const bool is_small = body_.source == nullptr && body_.bytes.size() <= small_body_max;
  // Most requests and responses need no other frame than this one.
  if (is_small && !body_.expects_continue) {
    output.append(std::move(body_.bytes));
    // If this fails, the server may have answered before it closed the connection.
    const Result<> written = co_await connection.stream.write(output);
    is_sent_ = written.has_value();
  } else {
    start_sender(std::move(output));
  }
  for (int interim = 0;;) {
    const Result<bool> has_head = connection.input.empty()
                                      ? Result<bool>(false)
                                      : connection.parser.parse_head(connection.input, head.method);
    if (!has_head) co_return fail_head(has_head.error());
    if (!*has_head) {
      const auto got = co_await connection.stream.read(connection.input, read_bytes_max_);
      if (const Result<> ended = received(got); !ended) co_return fail_head(ended.error());
      continue;
    }
    ResponseHead& response = connection.parser.head();
    if (!is_interim(response.status)) break;
    if (++interim > interim_responses_max)
      co_return fail_head(http::ErrorCode::too_many_interim_responses);
    take_interim(response);
    if (interim_sink_ != nullptr && response.status != Status::continue_)
      co_await interim_sink_->pass_interim(response);
    connection.parser.restart();
  }
  if (connection.parser.head().status == Status::switching_protocols) {
    const Result<> checked = co_await check_upgrade(head, connection.parser.head());
    if (!checked) co_return fail_head(checked.error());
  }
  take_head();
  co_return {};
}

void H1Exchange::start_sender(Buffer output) {
  if (body_.expects_continue) may_send_body_.emplace(loop_);
  sender_.emplace(loop_);
  sender_->set_exception_handler([this](std::exception_ptr thrown) {
    send_exception_ = std::move(thrown);
    lease_->stream.close();
  });
  sender_->spawn(send_concurrently(std::move(output)));
}

void H1Exchange::take_interim(const ResponseHead& head) {
  if (head.status == Status::continue_ && may_send_body_) may_send_body_->set();
  if (on_interim_ != nullptr) (*on_interim_)(head);
}

void H1Exchange::take_head() {
  h1::ResponseParser& parser = lease_->parser;
  // The server does not want the body: RFC 9110, section 10.1.1.
  if (code_of(parser.head().status) >= 300 && !is_sent_) sender_.reset();
  const h1::BodyFraming& framing = parser.framing();
  if (framing.kind != h1::BodyKind::chunked && framing.kind != h1::BodyKind::until_close)
    length_ = framing.kind == h1::BodyKind::length ? framing.length : 0;
  head_ = std::move(parser.head());
  if (parser.is_complete()) complete();
}

std::unexpected<Error> H1Exchange::fail_head(const Error& error) {
  end(false);
  return std::unexpected(cause_of(error));
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

Task<Result<>> H1Exchange::receive(std::size_t bytes_max) {
  const auto got = co_await lease_->stream.read(lease_->input, bytes_max);
  co_return received(got);
}

Result<> H1Exchange::received(const Result<std::size_t>& got) {
  if (!got) return std::unexpected(got.error());
  if (*got == 0) return lease_->parser.end_input(lease_->input);
  has_received_ = true;
  return {};
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
  if (!limit) {
    const auto got = co_await lease_->stream.read(lease_->input, bytes_max);
    co_return received(got);
  }
  auto receiving = timeout(*limit, receive(bytes_max));
  const auto ended = co_await std::move(receiving);
  patience_.end(lease_->input.size() - buffered);
  co_return ended;
}

Result<bool> H1Exchange::take_body(Buffer& into, std::size_t bytes_max) {
  if (read_error_) return std::unexpected(read_error_);
  // What follows the status 101 is not a body: the program takes it with the connection.
  if (is_body_complete()) return true;
  Connection& connection = *lease_.operator->();
  const auto moved = connection.parser.read_body(connection.input, into, bytes_max);
  if (!moved) return fail_reading(moved.error());
  if (connection.parser.is_complete()) complete();
  return *moved > 0 || is_complete_;
}

Task<Result<Buffer>> H1Exchange::read_body(std::size_t bytes_max) {
  Buffer piece;
  // Bytes that only frame the body do not extend the time.
  const TimePoint since = loop_.now();
  for (;;) {
    const Result<bool> taken = take_body(piece, bytes_max);
    if (!taken) co_return std::unexpected(taken.error());
    if (*taken) co_return piece;
    const Result<> got = co_await receive_within(since);
    if (!got) co_return fail_reading(got.error());
  }
}

std::unexpected<Error> H1Exchange::fail_reading(const Error& error) {
  read_error_ = error;
  end(false);
  read_error_ = cause_of(error);
  return std::unexpected(read_error_);
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
  if (!parser.trailers().empty()) trailers_ = parser.trailers();
  // The memory of fields that were passed on is used again.
  if (head_.fields.empty()) parser.head().fields = std::move(head_.fields);
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
