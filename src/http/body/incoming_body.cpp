// IncomingBody: decoding, and reading to the end.
#include <algorithm>
#include <utility>

#include <tambour/http/body.h>

#include "base/check.h"
#include "http/body/body_stream.h"
#include "http/body/checked.h"
#include "http/coding/body_decoder.h"
#include "http_message/failure.h"

namespace tambour::http {
namespace {

constexpr std::size_t piece_bytes_max = std::size_t{256} * 1024;

}  // namespace

void fail_use(const char* function) noexcept {
  detail::base::fail_check(
      "http::%s was called after the handler of the request had ended; a handler whose response "
      "comes from another task must be a coroutine that waits for this task",
      function);
}

void detail::BodyAccess::detach(IncomingBody& body) noexcept {
  body.stream_ = nullptr;
  body.decoder_.reset();
}

void detail::BodyAccess::decode(IncomingBody& body, const std::vector<Coding>& codings,
                                const DecodingLimits& limits, detail::coding::RawDeflate raw) {
  Fields& fields = body.stream_->body_fields();
  if (!codings.empty()) {
    body.decoder_ = std::make_unique<detail::coding::BodyDecoder>(codings, limits, raw);
    fields.remove("Content-Length");
  }
  fields.remove("Content-Encoding");
}

IncomingBody::IncomingBody(detail::BodyStream* stream) noexcept : stream_(stream) {}
IncomingBody::~IncomingBody() = default;

std::optional<std::uint64_t> IncomingBody::length() const noexcept {
  const detail::BodyStream& stream = checked(stream_, "IncomingBody::length()");
  return decoder_ == nullptr ? stream.body_length() : std::nullopt;
}

bool IncomingBody::is_complete() const noexcept {
  const detail::BodyStream& stream = checked(stream_, "IncomingBody::is_complete()");
  return decoder_ == nullptr ? stream.is_body_complete() : decoder_->has_ended();
}

const Fields& IncomingBody::trailers() const noexcept {
  return checked(stream_, "IncomingBody::trailers()").body_trailers();
}

void IncomingBody::set_bytes_max(std::uint64_t bytes_max) noexcept {
  checked(stream_, "IncomingBody::set_bytes_max()").set_body_bytes_max(bytes_max);
}

std::unexpected<Error> IncomingBody::reject(const Error& error) noexcept {
  if (decoder_ != nullptr) decoder_->fail(error);
  return checked(stream_, "IncomingBody::reject()").fail_body(error);
}

Task<Result<Buffer>> IncomingBody::read(std::size_t bytes_max) {
  detail::BodyStream& stream = checked(stream_, "IncomingBody::read()");
  bytes_max = std::max<std::size_t>(bytes_max, 1);
  return decoder_ == nullptr ? stream.read_body(bytes_max) : read_decoded(bytes_max);
}

Task<Result<Buffer>> IncomingBody::read_decoded(std::size_t bytes_max) {
  Buffer piece;
  for (;;) {
    detail::BodyStream& stream = checked(stream_, "IncomingBody::read()");
    if (decoder_->first_error()) co_return std::unexpected(decoder_->first_error());
    const auto got = decoder_->read(piece, bytes_max);
    stream.hold_memory(decoder_->take_memory_growth());
    if (!got) co_return reject(got.error());
    if (*got > 0 || decoder_->has_ended()) co_return piece;
    if (stream.is_body_complete()) {
      if (const auto ended = decoder_->end(); !ended) co_return reject(ended.error());
      co_return piece;
    }
    auto received = co_await stream.read_body(piece_bytes_max);
    if (!received) co_return received;
    static_cast<void>(checked(decoder_.get(), "IncomingBody::read()"));
    decoder_->append(std::move(*received));
  }
}

Result<> IncomingBody::decode(const DecodingLimits& limits) {
  detail::BodyStream& stream = checked(stream_, "IncomingBody::decode()");
  if (decoder_ != nullptr) return {};
  const auto codings = detail::coding::codings_of(stream.body_fields());
  if (!codings) return stream.fail_body(codings.error());
  detail::BodyAccess::decode(*this, *codings, limits, detail::coding::RawDeflate::rejected);
  return {};
}

Task<Result<Buffer>> IncomingBody::read_all(std::size_t bytes_max) {
  if (length().value_or(0) > bytes_max) co_return reject(ErrorCode::body_too_large);
  Buffer all;
  while (!is_complete()) {
    // One byte more than the limit, to notice that there are more.
    const std::size_t left = std::min(bytes_max - all.size(), piece_bytes_max) + 1;
    Result<Buffer> piece = co_await read(left);
    if (!piece) co_return std::unexpected(piece.error());
    all.append(std::move(*piece));
    if (all.size() > bytes_max) co_return reject(ErrorCode::body_too_large);
  }
  co_return all;
}

Task<Result<std::string>> IncomingBody::read_text(std::size_t bytes_max) {
  auto body = co_await read_all(bytes_max);
  if (!body) co_return std::unexpected(body.error());
  co_return body->to_string();
}

}  // namespace tambour::http
