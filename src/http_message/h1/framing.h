// Where the body of a message of HTTP/1.1 ends: RFC 9112, section 6.3.
#pragma once

#include <cstdint>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/message.h>

#include "http_message/h1/parsing_mode.h"

namespace tambour::http::detail::h1 {

enum class BodyKind : std::uint8_t {
  none,
  length,       ///< Content-Length bytes.
  chunked,      ///< Chunks and trailers.
  until_close,  ///< The rest of the connection; only responses.
  tunnel,       ///< No body: the connection is not HTTP any more (CONNECT).
};

struct BodyFraming {
  BodyKind kind = BodyKind::none;
  std::uint64_t length = 0;  ///< If the kind is `length`.
};

/// Fails with the errors of http::ErrorCode about the end of a body, from bad_content_length to
/// transfer_encoding_in_http_1_0.
[[nodiscard]] Result<BodyFraming> framing_of(const RequestHead& head) noexcept;
/// `method` is that of the request. The lenient mode accepts a length that is repeated.
[[nodiscard]] Result<BodyFraming> framing_of(const ResponseHead& head, const Method& method,
                                             ParsingMode mode = ParsingMode::strict) noexcept;

/// True if the connection may be used for another message: RFC 9112, section 9.3. The framing of
/// the body must allow it too.
[[nodiscard]] bool is_persistent(Version version, const Fields& fields) noexcept;

}  // namespace tambour::http::detail::h1
