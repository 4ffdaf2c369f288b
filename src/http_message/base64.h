// Base64: RFC 4648, section 4.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <tambour/detail/namespaces.h>

namespace tambour::http {

[[nodiscard]] std::string encode_base64(std::string_view text);
/// Accepts only what encode_base64() returns.
[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text);

}  // namespace tambour::http
