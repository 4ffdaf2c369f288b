// Decides where a body ends, from Content-Length, Transfer-Encoding, the status and the method;
// rejects what two parsers could read differently.
#include "http_message/h1/framing.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include "http_message/characters.h"
#include "http_message/content_length.h"
#include "http_message/failure.h"
#include "http_message/field_writer.h"

namespace tambour::http::detail::h1 {
namespace {

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
  if (!FieldWriter::contains(fields, "Transfer-Encoding")) return false;
  if (version == Version::http_1_0) return failure(http::ErrorCode::transfer_encoding_in_http_1_0);
  if (FieldWriter::contains(fields, "Content-Length"))
    return failure(http::ErrorCode::length_with_transfer_encoding);
  const Codings codings = transfer_codings(fields);
  if (codings.has_empty || codings.chunked != 1 || !codings.ends_with_chunked)
    return failure(http::ErrorCode::bad_transfer_encoding);
  if (codings.total > 1) return failure(http::ErrorCode::unsupported_transfer_encoding);
  return true;
}

}  // namespace

Result<BodyFraming> framing_of(const RequestHead& head) noexcept {
  const auto chunked = is_chunked(head.version, head.fields);
  if (!chunked) return std::unexpected(chunked.error());
  // A front end that knows that CONNECT has no body takes it for the first bytes of the tunnel.
  const bool has_no_body = head.method == Method::connect;
  if (*chunked && has_no_body) return failure(http::ErrorCode::connect_with_body);
  if (*chunked) return BodyFraming{.kind = BodyKind::chunked};
  const auto length = content_length(head.fields);
  if (!length) return std::unexpected(length.error());
  if (has_no_body && length->value_or(0) > 0) return failure(http::ErrorCode::connect_with_body);
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
  if (FieldWriter::has_token(fields, "Connection", "close")) return false;
  return version != Version::http_1_0 || FieldWriter::has_token(fields, "Connection", "keep-alive");
}

}  // namespace tambour::http::detail::h1
