// Dates in HTTP fields: RFC 9110, section 5.6.7.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// "Sun, 06 Nov 1994 08:49:37 GMT". The year must be between 0 and 9999.
[[nodiscard]] std::string format_date(std::chrono::sys_seconds time);

/// Parses the format of format_date(), and the two obsolete ones that recipients must accept:
/// "Sunday, 06-Nov-94 08:49:37 GMT" and "Sun Nov  6 08:49:37 1994". A year of two digits is the
/// last one with these digits that is not more than 50 years after `now`. The day of the week must
/// be that of the date. Fails with EINVAL for any other text.
[[nodiscard]] Result<std::chrono::sys_seconds> parse_date(
    std::string_view text, std::chrono::sys_seconds now = std::chrono::floor<std::chrono::seconds>(
                               std::chrono::system_clock::now())) noexcept;

}  // namespace tambour::http

#pragma GCC visibility pop
