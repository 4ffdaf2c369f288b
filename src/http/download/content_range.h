// The field Content-Range, and validators of versions, as a client reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tambour/detail/namespaces.h>
#include <tambour/http/fields.h>

namespace tambour::http::detail::download {

struct ContentRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::optional<std::uint64_t> total{};
};

/// "bytes 0-499/1234" and "bytes 0-499/*": RFC 9110, section 14.4. No value if it is malformed, is
/// "bytes */1234", or its last byte is not one of the whole.
[[nodiscard]] std::optional<ContentRange> parse_content_range(std::string_view value) noexcept;

/// What If-Range can name: a strong ETag, or a Last-Modified that is strong because it is a minute
/// older than the Date (section 8.8.2.2). Empty: none.
[[nodiscard]] std::string validator_of(const Fields& fields);

}  // namespace tambour::http::detail::download
