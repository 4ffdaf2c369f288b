// Dates of cookies, which differ from those of other fields: RFC 6265bis, section 5.1.1.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include <tambour/detail/namespaces.h>

namespace tambour::http::detail::cookies {

/// No value if a part is missing, or is no date.
[[nodiscard]] std::optional<std::chrono::sys_seconds> parse_cookie_date(
    std::string_view text) noexcept;

}  // namespace tambour::http::detail::cookies
