// compress() and decode_requests().
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <tambour/http_compress.h>

#include "http/coding/codec.h"
#include "http/coding/lists.h"
#include "http/coding/negotiation.h"
#include "http/exchange/copy_file.h"
#include "http/exchange/exchange.h"
#include "http_message/characters.h"
#include "http_message/failure.h"
#include "http_message/h1/trailers.h"

namespace tambour::http {
namespace coding {
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

/// The response that the handler gets. It decides when the response begins, and passes it on to the
/// response of the connection.
class Compressor final : public Responder {
 public:
  Compressor(const CompressOptions& options, const Request& request, Response& outer)
      : options_(options), request_(request), outer_(outer) {
    // What earlier middleware has set.
    response_.head() = std::move(outer.head());
  }

  [[nodiscard]] Response& response() noexcept { return response_; }

  /// Sends the rest after the handler has ended. Throws if the response is incomplete.
  [[nodiscard]] Task<> complete();

 private:
  Result<> send(Buffer body) override;
  [[nodiscard]] Task<Result<>> write(Buffer piece) override;
  [[nodiscard]] Task<Result<>> write_file(const File& file, std::uint64_t offset,
                                          std::uint64_t size) override;
  Result<> end(const Fields& trailers) override;
  [[nodiscard]] Task<Result<>> flush() override;
  [[nodiscard]] Task<Result<ByteStream>> upgrade() override;
  [[nodiscard]] TimePoint begun_at() const noexcept override { return outer_.begun_at(); }
  [[nodiscard]] bool is_broken() const noexcept override { return outer_.failed(); }

  void begin(std::optional<std::uint64_t> bytes);
  [[nodiscard]] Task<Result<>> write_encoded(Buffer piece);
  [[nodiscard]] Task<Result<>> send_rest();
  [[nodiscard]] bool is_head() const noexcept { return request_.method() == Method::head; }

  const CompressOptions& options_;
  const Request& request_;
  Response& outer_;
  Response response_{*this};
  std::unique_ptr<Encoder> encoder_;  ///< Null if the body is sent as it is.
  Buffer rest_;                       ///< Of a large body: not compressed yet.
  Fields trailers_;
  bool has_rest_ = false;  ///< The end of the body was not sent yet.
};

/// Decides, and prepares the head of the outer response.
void Compressor::begin(std::optional<std::uint64_t> bytes) {
  ResponseHead head = response_.head();
  const bool may = request_.method() != Method::connect && is_compressible(head, bytes, options_);
  if (may || head.status == Status::not_modified) add_vary(head.fields);
  if (may) {
    if (const auto coding = choose_coding(request_.fields(), options_.codings)) {
      encoder_ = make_encoder(*coding, level_of(options_, *coding));
      set_coding(head.fields, *coding);
    }
  }
  // The tag of the response that the client has stored, compressed or not: a weak tag matches both.
  if (head.status == Status::not_modified && choose_coding(request_.fields(), options_.codings))
    make_tag_weak(head.fields);
  outer_.head() = std::move(head);
  if (encoder_ == nullptr && response_.length()) outer_.set_length(*response_.length());
}

Result<> Compressor::send(Buffer body) {
  if (response_.begun()) return failure(HttpError::response_begun);
  const std::size_t size = body.size();
  // The handler of a HEAD request need not make the body.
  const bool has_length = is_head() && size == 0 && response_.length();
  begin(has_length ? *response_.length() : size);
  Result<> sent;
  if (encoder_ == nullptr) {
    sent = outer_.send(std::move(body));
  } else if (has_length) {
    sent = outer_.end();
  } else if (size <= slice_bytes) {
    Buffer encoded;
    encoder_->encode(std::move(body), Encoder::Mode::finish, encoded);
    sent = outer_.send(std::move(encoded));
  } else {
    rest_ = std::move(body);
    has_rest_ = true;
  }
  if (!sent) {
    encoder_.reset();
    return sent;
  }
  add_body_bytes(response_, size);
  set_state(response_, ResponseState::ended);
  return {};
}

Task<Result<>> Compressor::write(Buffer piece) {
  if (response_.ended()) co_return failure(HttpError::response_ended);
  if (!response_.begun()) {
    begin(response_.length());
    set_state(response_, ResponseState::begun);
  }
  const std::size_t size = piece.size();
  if (encoder_ != nullptr && response_.length() &&
      size > *response_.length() - response_.body_bytes())
    co_return failure(HttpError::response_too_long);
  add_body_bytes(response_, size);
  // The body of a response to HEAD is not sent.
  if (encoder_ == nullptr || is_head()) co_return co_await outer_.write(std::move(piece));
  co_return co_await write_encoded(std::move(piece));
}

Task<Result<>> Compressor::write_file(const File& file, std::uint64_t offset, std::uint64_t size) {
  if (response_.ended()) co_return failure(HttpError::response_ended);
  if (!response_.begun()) {
    begin(response_.length());
    set_state(response_, ResponseState::begun);
  }
  if (encoder_ != nullptr) co_return co_await copy_file(file, offset, size, *this);
  add_body_bytes(response_, size);
  co_return co_await outer_.write_file(file, offset, size);
}

Task<Result<>> Compressor::write_encoded(Buffer piece) {
  do {
    Buffer encoded;
    encoder_->encode(piece.take(slice_bytes), Encoder::Mode::flush, encoded);
    const auto written = co_await outer_.write(std::move(encoded));
    if (!written) co_return written;
  } while (!piece.empty());
  co_return {};
}

Result<> Compressor::end(const Fields& trailers) {
  if (response_.ended()) return failure(HttpError::response_ended);
  if (!response_.begun()) begin(response_.length());
  if (encoder_ == nullptr) {
    if (auto ended = outer_.end(trailers); !ended) return ended;
    set_state(response_, ResponseState::ended);
    return {};
  }
  const bool has_all =
      is_head() || response_.body_bytes() == response_.length().value_or(response_.body_bytes());
  if (!has_all) return failure(HttpError::response_too_short);
  for (const Field field : trailers) {
    if (!h1::may_be_trailer(field.name)) return failure(HttpError::trailer_not_allowed);
  }
  trailers_ = trailers;
  has_rest_ = true;
  set_state(response_, ResponseState::ended);
  return {};
}

Task<Result<>> Compressor::send_rest() {
  has_rest_ = false;
  while (!is_head()) {
    const bool is_last = rest_.size() <= slice_bytes;
    Buffer encoded;
    encoder_->encode(rest_.take(slice_bytes),
                     is_last ? Encoder::Mode::finish : Encoder::Mode::append, encoded);
    const auto written = co_await outer_.write(std::move(encoded));
    if (!written) co_return written;
    if (is_last) break;
  }
  co_return outer_.end(trailers_);
}

Task<Result<>> Compressor::flush() {
  if (has_rest_) {
    const auto sent = co_await send_rest();
    if (!sent) co_return sent;
  }
  co_return co_await outer_.flush();
}

Task<Result<ByteStream>> Compressor::upgrade() {
  if (response_.begun()) co_return failure(HttpError::response_begun);
  outer_.head() = response_.head();
  auto tunnel = co_await outer_.upgrade();
  if (outer_.begun()) set_state(response_, ResponseState::ended);
  co_return tunnel;
}

Task<> Compressor::complete() {
  if (!response_.begun()) {
    // The server sends an empty response, or answers an error of the request's body.
    outer_.head() = std::move(response_.head());
    if (response_.length()) outer_.set_length(*response_.length());
    co_return;
  }
  if (!response_.ended() && encoder_ != nullptr) {
    // Otherwise the client would take the part for the whole.
    if (const auto ended = end(Fields()); !ended) throw std::system_error(ended.error());
  }
  // If it fails, the connection has ended.
  if (has_rest_) static_cast<void>(co_await send_rest());
}

Task<> run_compressed(std::shared_ptr<const CompressOptions> options, Request& request,
                      Response& response, const Handler& next) {
  Compressor compressor(*options, request, response);
  co_await next.run(request, compressor.response());
  co_await compressor.complete();
}

Task<> run_decoded(DecodingLimits limits, Request& request, Response& response,
                   const Handler& next) {
  if (request.body().decode(limits)) co_return co_await next.run(request, response);
  // RFC 9110, section 15.5.16.
  static_cast<void>(response.fields().set("Accept-Encoding", available_codings()));
  static_cast<void>(response.send(Status::unsupported_media_type));
}

Middleware middleware_of(CompressOptions options) {
  auto shared = std::make_shared<const CompressOptions>(std::move(options));
  return [shared](Request& request, Response& response, const Handler& next) {
    return run_compressed(shared, request, response, next);
  };
}

bool is_between(int level, int min, int max) { return level >= min && level <= max; }

}  // namespace
}  // namespace coding

Middleware compress() { return coding::middleware_of({}); }

Result<Middleware> compress(CompressOptions options) {
  const bool are_valid = coding::is_between(options.gzip_level, 1, 9) &&
                         coding::is_between(options.brotli_quality, 0, 11) &&
                         coding::is_between(options.zstd_level, 1, 19);
  if (!are_valid) return failure(HttpError::bad_coding_level);
  return coding::middleware_of(std::move(options));
}

Middleware decode_requests(DecodingLimits limits) {
  return [limits](Request& request, Response& response, const Handler& next) {
    return coding::run_decoded(limits, request, response, next);
  };
}

}  // namespace tambour::http
