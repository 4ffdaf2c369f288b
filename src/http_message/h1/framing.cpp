// Decides where a body ends, from Content-Length, Transfer-Encoding, the status and the method;
// rejects what two parsers could read differently.
#include "http_message/h1/framing.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include "http_message/characters.h"
#include "http_message/failure.h"

namespace tambour::http::h1 {
namespace {

constexpr std::uint64_t length_max = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t length_digits_max = 19;

Result<std::uint64_t> parse_length(std::string_view text) noexcept {
  if (text.empty() || text.size() > length_digits_max)
    return failure(HttpError::bad_content_length);
  std::uint64_t length = 0;
  for (const char c : text) {
    if (!is_digit(c)) return failure(HttpError::bad_content_length);
    length = length * 10 + static_cast<std::uint64_t>(c - '0');
  }
  if (length > length_max) return failure(HttpError::bad_content_length);
  return length;
}

/// Returns no value if the field is missing. A list of equal lengths is rejected too, as RFC 9110,
/// section 8.6, permits.
Result<std::optional<std::uint64_t>> content_length(const Fields& fields) noexcept {
  const std::size_t at = fields.find("Content-Length");
  if (at == fields.size()) return std::nullopt;
  const std::string_view value = fields[at].value;
  if (fields.find("Content-Length", at + 1) != fields.size() ||
      value.find(',') != std::string_view::npos)
    return failure(HttpError::several_content_lengths);
  const auto length = parse_length(value);
  if (!length) return std::unexpected(length.error());
  return *length;
}

/// The same of a response, in which a length may be repeated: servers send the field twice, and
/// every client reads it in the same way. Only the client decides by it where the response ends.
Result<std::optional<std::uint64_t>> repeated_content_length(const Fields& fields) noexcept {
  std::optional<std::uint64_t> length;
  for (std::size_t at = fields.find("Content-Length"); at != fields.size();
       at = fields.find("Content-Length", at + 1)) {
    const std::string_view value = fields[at].value;
    for (std::size_t begin = 0; begin <= value.size();) {
      const std::size_t end = std::min(value.find(',', begin), value.size());
      const auto parsed = parse_length(trim(value.substr(begin, end - begin)));
      if (!parsed) return std::unexpected(parsed.error());
      if (length && *length != *parsed) return failure(HttpError::several_content_lengths);
      length = *parsed;
      begin = end + 1;
    }
  }
  return length;
}

struct Codings {
  std::size_t total = 0;
  std::size_t chunked = 0;
  bool ends_with_chunked = false;
  bool has_empty = false;
};

Codings transfer_codings(const Fields& fields) noexcept {
  Codings codings;
  for (const Field field : fields) {
    if (!equal_ignoring_case(field.name, "Transfer-Encoding")) continue;
    std::size_t begin = 0;
    while (begin <= field.value.size()) {
      const std::size_t end = std::min(field.value.find(',', begin), field.value.size());
      const std::string_view coding = trim(field.value.substr(begin, end - begin));
      codings.ends_with_chunked = equal_ignoring_case(coding, "chunked");
      codings.has_empty |= coding.empty();
      codings.chunked += codings.ends_with_chunked ? 1 : 0;
      ++codings.total;
      begin = end + 1;
    }
  }
  return codings;
}

/// Returns true if the body is chunked, false if the field is missing. The last coding must be the
/// only "chunked", because no other one says where the body ends. Other codings are not supported.
Result<bool> is_chunked(Version version, const Fields& fields) noexcept {
  const std::size_t at = fields.find("Transfer-Encoding");
  if (at == fields.size()) return false;
  if (version == Version::http_1_0) return failure(HttpError::transfer_encoding_in_http_1_0);
  if (fields.contains("Content-Length")) return failure(HttpError::length_with_transfer_encoding);
  const Codings codings = transfer_codings(fields);
  if (codings.has_empty || codings.chunked != 1 || !codings.ends_with_chunked)
    return failure(HttpError::bad_transfer_encoding);
  if (codings.total > 1) return failure(HttpError::unsupported_transfer_encoding);
  return true;
}

}  // namespace

Result<BodyFraming> framing_of(const RequestHead& head) noexcept {
  const auto chunked = is_chunked(head.version, head.fields);
  if (!chunked) return std::unexpected(chunked.error());
  // A front end that knows that CONNECT has no body takes it for the first bytes of the tunnel.
  const bool has_no_body = head.method == Method::connect;
  if (*chunked && has_no_body) return failure(HttpError::connect_with_body);
  if (*chunked) return BodyFraming{.kind = BodyKind::chunked};
  const auto length = content_length(head.fields);
  if (!length) return std::unexpected(length.error());
  if (has_no_body && length->value_or(0) > 0) return failure(HttpError::connect_with_body);
  if (!*length || **length == 0) return BodyFraming{};
  return BodyFraming{.kind = BodyKind::length, .length = **length};
}

Result<BodyFraming> framing_of(const ResponseHead& head, const Method& method,
                               ParsingMode mode) noexcept {
  // Both fields are ignored here: RFC 9110, section 9.3.6.
  if (method == Method::connect && is_success(head.status))
    return BodyFraming{.kind = BodyKind::tunnel};
  const auto chunked = is_chunked(head.version, head.fields);
  if (!chunked) return std::unexpected(chunked.error());
  auto length = content_length(head.fields);
  if (!length && mode == ParsingMode::lenient_response)
    length = repeated_content_length(head.fields);
  if (!length) return std::unexpected(length.error());
  if (head.status == Status::switching_protocols) return BodyFraming{.kind = BodyKind::tunnel};
  if (method == Method::head || has_no_body(head.status)) return BodyFraming{};
  if (*chunked) return BodyFraming{.kind = BodyKind::chunked};
  if (!*length) return BodyFraming{.kind = BodyKind::until_close};
  if (**length == 0) return BodyFraming{};
  return BodyFraming{.kind = BodyKind::length, .length = **length};
}

bool is_persistent(Version version, const Fields& fields) noexcept {
  if (fields.has_token("Connection", "close")) return false;
  return version != Version::http_1_0 || fields.has_token("Connection", "keep-alive");
}

}  // namespace tambour::http::h1
