// compress() and decode_requests().
#include <tambour/http/compress.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "http/coding/codec.h"
#include "http/coding/lists.h"
#include "http/coding/negotiation.h"
#include "http/exchange/copy_file.h"
#include "http/exchange/exchange.h"
#include "http/exchange/response_sink.h"
#include "http_message/characters.h"
#include "http_message/failure.h"
#include "http_message/h1/trailers.h"

namespace tambour::http {
namespace detail::coding {
namespace {

/// What is compressed without letting other connections be served. Larger bodies are compressed
/// while they are sent.
constexpr std::size_t slice_bytes = std::size_t{256} * 1024;

int level_of(const CompressOptions& options, Coding coding) noexcept {
  if (coding == Coding::br) return options.brotli_quality;
  return coding == Coding::zstd ? options.zstd_level : options.gzip_level;
}

bool matches(std::string_view type, std::string_view pattern) noexcept {
  if (pattern.ends_with("/*")) {
    pattern.remove_suffix(1);
    return equal_ignoring_case(type.substr(0, pattern.size()), pattern);
  }
  if (pattern.starts_with('+') && type.size() > pattern.size())
    type.remove_prefix(type.size() - pattern.size());
  return equal_ignoring_case(type, pattern);
}

bool has_media_type(const Fields& fields, const std::vector<std::string>& patterns) noexcept {
  const std::string_view value = fields.get("Content-Type").value_or("");
  const std::string_view type = trim(value.substr(0, value.find(';')));
  return std::ranges::any_of(patterns,
                             [type](const std::string& pattern) { return matches(type, pattern); });
}

/// Whether the response may be compressed for clients that accept it. `bytes` is its size if it is
/// known.
bool is_compressible(const ResponseHead& head, std::optional<std::uint64_t> bytes,
                     const CompressOptions& options) noexcept {
  const Fields& fields = head.fields;
  if (class_of(head.status) < 2 || has_no_body(head.status) ||
      head.status == Status::partial_content || (bytes && *bytes < options.bytes_min))
    return false;
  for (const char* const name :
       {"Content-Encoding", "Content-Range", "Content-Digest", "Repr-Digest", "Digest"}) {
    if (fields.contains(name)) return false;
  }
  return !fields.has_token("Cache-Control", "no-transform") &&
         has_media_type(fields, options.media_types);
}

void add_vary(Fields& fields) {
  if (!fields.has_token("Vary", "Accept-Encoding") && !fields.has_token("Vary", "*"))
    static_cast<void>(fields.add("Vary", "Accept-Encoding"));
}

void make_tag_weak(Fields& fields) {
  const auto tag = fields.get("ETag");
  if (tag && !tag->starts_with("W/"))
    static_cast<void>(fields.set("ETag", std::string("W/").append(*tag)));
}

void set_coding(Fields& fields, Coding coding) {
  static_cast<void>(fields.set("Content-Encoding", name_of(coding)));
  // Ranges of the compressed body would differ with each compression.
  fields.remove("Accept-Ranges");
  make_tag_weak(fields);
}

/// Compresses the body of a response on its way to the connection. It decides when the response
/// begins.
class Compressor final : public detail::ResponseFilter {
 public:
  Compressor(const CompressOptions& options, Request& request, Response& response)
      : ResponseFilter(response), options_(options), request_(request) {}

  /// Sends the rest after the handler has ended. Throws if the response is incomplete.
  [[nodiscard]] Task<> complete();

 private:
  [[nodiscard]] Result<> begin(ResponseHead& head, BodyPlan plan) override;
  [[nodiscard]] Result<> send(ResponseHead& head, BodyPlan plan, Buffer&& body) override;
  [[nodiscard]] Task<Result<>> write(Buffer&& piece) override;
  [[nodiscard]] Task<Result<>> write_file(const File& file, std::uint64_t offset,
                                          std::uint64_t size) override;
  [[nodiscard]] Result<> end(const Fields& trailers) override;
  [[nodiscard]] Task<Result<>> flush() override;

  void choose(ResponseHead& head, const BodyPlan& plan);
  void encode(Buffer piece, Encoder::Mode mode, Buffer& encoded) {
    encoder_->encode(std::move(piece), mode, encoded);
    hold_memory();
  }
  /// Tells the connection what the encoder has allocated.
  void hold_memory() noexcept;
  [[nodiscard]] Result<> send_encoded(ResponseHead& head, BodyPlan plan, Buffer&& body);
  [[nodiscard]] Task<Result<>> write_encoded(Buffer piece);
  [[nodiscard]] Task<Result<>> send_rest();
  [[nodiscard]] bool is_head() const noexcept { return request_.method() == Method::head; }

  const CompressOptions& options_;
  Request& request_;
  std::unique_ptr<Encoder> encoder_;  ///< Null if the body is sent as it is.
  Buffer rest_;                       ///< Of a large body: not compressed yet.
  Fields trailers_;
  std::size_t held_bytes_ = 0;
  bool has_rest_ = false;  ///< The end of the body was not sent yet.
};

void Compressor::hold_memory() noexcept {
  const std::size_t bytes = std::max(held_bytes_, encoder_->memory_bytes());
  const std::size_t more = bytes - std::exchange(held_bytes_, bytes);
  if (detail::Exchange* const exchange = detail::Exchange::of(request_))
    exchange->hold_memory(more);
}

/// Decides, and changes the head accordingly.
void Compressor::choose(ResponseHead& head, const BodyPlan& plan) {
  std::optional<std::uint64_t> bytes;
  if (plan.kind != BodyPlan::Kind::unknown) bytes = plan.length;
  const bool may = request_.method() != Method::connect && is_compressible(head, bytes, options_);
  const bool is_same = head.status == Status::not_modified;
  if (!may && !is_same) return;
  add_vary(head.fields);
  const auto coding = choose_coding(request_.headers(), options_.codings);
  if (!coding) return;
  // The tag of the response that the client has stored, compressed or not: a weak tag matches both.
  if (is_same) return make_tag_weak(head.fields);
  encoder_ = make_encoder(*coding, level_of(options_, *coding));
  hold_memory();
  set_coding(head.fields, *coding);
}

Result<> Compressor::begin(ResponseHead& head, BodyPlan plan) {
  Fields unchanged = head.fields;
  choose(head, plan);
  if (encoder_ != nullptr) plan = {.kind = BodyPlan::Kind::unknown};
  const Result<> begun = next().begin(head, plan);
  if (begun) return begun;
  head.fields = std::move(unchanged);
  encoder_.reset();
  return begun;
}

Result<> Compressor::send(ResponseHead& head, BodyPlan plan, Buffer&& body) {
  Fields unchanged = head.fields;
  choose(head, plan);
  const Result<> sent = encoder_ == nullptr ? next().send(head, plan, std::move(body))
                                            : send_encoded(head, plan, std::move(body));
  if (sent) return sent;
  head.fields = std::move(unchanged);
  encoder_.reset();
  return sent;
}

Result<> Compressor::send_encoded(ResponseHead& head, BodyPlan plan, Buffer&& body) {
  // The handler of a HEAD request need not make the body.
  if (is_head() && body.empty()) {
    const Result<> begun = next().begin(head, {.kind = BodyPlan::Kind::unknown});
    return begun ? next().end(Fields()) : begun;
  }
  if (body.size() <= slice_bytes) {
    Buffer encoded;
    encode(std::move(body), Encoder::Mode::finish, encoded);
    plan.length = encoded.size();
    return next().send(head, plan, std::move(encoded));
  }
  const Result<> begun = next().begin(head, {.kind = BodyPlan::Kind::unknown});
  if (!begun) return begun;
  rest_ = std::move(body);
  has_rest_ = true;
  return {};
}

Task<Result<>> Compressor::write(Buffer&& piece) {
  // The body of a response to HEAD is not sent.
  if (encoder_ == nullptr || is_head()) return next().write(std::move(piece));
  return write_encoded(std::move(piece));
}

Task<Result<>> Compressor::write_file(const File& file, std::uint64_t offset, std::uint64_t size) {
  if (encoder_ == nullptr || is_head()) return next().write_file(file, offset, size);
  return copy_file(file, offset, size, *this);
}

Task<Result<>> Compressor::write_encoded(Buffer piece) {
  do {
    Buffer encoded;
    encode(piece.take(slice_bytes), Encoder::Mode::flush, encoded);
    const auto written = co_await next().write(std::move(encoded));
    if (!written) co_return written;
  } while (!piece.empty());
  co_return {};
}

Result<> Compressor::end(const Fields& trailers) {
  if (encoder_ == nullptr || is_head()) return next().end(trailers);
  for (const Field field : trailers) {
    if (!h1::may_be_trailer(field.name)) return failure(http::ErrorCode::trailer_not_allowed);
  }
  trailers_ = trailers;
  has_rest_ = true;
  return {};
}

Task<Result<>> Compressor::send_rest() {
  has_rest_ = false;
  for (bool is_last = false; !is_last;) {
    is_last = rest_.size() <= slice_bytes;
    Buffer encoded;
    encode(rest_.take(slice_bytes), is_last ? Encoder::Mode::finish : Encoder::Mode::append,
           encoded);
    const auto written = co_await next().write(std::move(encoded));
    if (!written) co_return written;
  }
  co_return next().end(trailers_);
}

Task<Result<>> Compressor::flush() {
  if (has_rest_) {
    const auto sent = co_await send_rest();
    if (!sent) co_return sent;
  }
  co_return co_await next().flush();
}

Task<> Compressor::complete() {
  if (encoder_ == nullptr || response().has_failed()) co_return;
  if (!response().has_ended()) {
    // Otherwise the client would treat a truncated response as complete.
    if (const auto ended = response().end(); !ended) throw std::system_error(ended.error());
  }
  // If it fails, the connection has ended.
  if (has_rest_) static_cast<void>(co_await send_rest());
}

Task<> run_compressed(std::shared_ptr<const CompressOptions> options, Request& request,
                      Response& response, const Handler& next) {
  Compressor compressor(*options, request, response);
  co_await next.run(request, response);
  co_await compressor.complete();
}

Task<> run_decoded(DecodingLimits limits, Request& request, Response& response,
                   const Handler& next) {
  if (request.body().decode(limits)) co_return co_await next.run(request, response);
  // RFC 9110, section 15.5.16.
  static_cast<void>(response.headers().set("Accept-Encoding", available_codings()));
  static_cast<void>(response.send_error(Status::unsupported_media_type));
}

Middleware middleware_of(CompressOptions options) {
  auto shared = std::make_shared<const CompressOptions>(std::move(options));
  return [shared](Request& request, Response& response, const Handler& next) {
    return run_compressed(shared, request, response, next);
  };
}

bool is_between(int level, int min, int max) { return level >= min && level <= max; }

}  // namespace
}  // namespace detail::coding

Middleware compress() { return detail::coding::middleware_of({}); }

Result<Middleware> compress(CompressOptions options) {
  const bool are_valid = detail::coding::is_between(options.gzip_level, 1, 9) &&
                         detail::coding::is_between(options.brotli_quality, 0, 11) &&
                         detail::coding::is_between(options.zstd_level, 1, 19);
  if (!are_valid) return failure(ErrorCode::bad_coding_level);
  return detail::coding::middleware_of(std::move(options));
}

Middleware decode_requests(DecodingLimits limits) {
  return [limits](Request& request, Response& response, const Handler& next) {
    return detail::coding::run_decoded(limits, request, response, next);
  };
}

}  // namespace tambour::http
