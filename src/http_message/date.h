// Times of the wall clock as texts: the current date, which servers send with each response, and
// texts of other formats.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tambour/detail/namespaces.h>

namespace tambour::http {

inline constexpr std::size_t date_size = 29;

/// Writes the format of format_date().
void write_date(std::chrono::sys_seconds time, std::span<char, date_size> to) noexcept;

/// Appends a time in a format of strftime(3), of which these are known: %b, %d, %m, %T and %Y, with
/// English names. The year must have four digits.
void append_time(std::string& to, std::chrono::sys_seconds time, std::string_view format);

/// Parses a text of such a format, in which %a may stand too, exactly. No value if it does not
/// match, or is no valid time.
[[nodiscard]] std::optional<std::chrono::sys_seconds> parse_time(std::string_view text,
                                                                 std::string_view format) noexcept;

/// The date at a time after 1970. Valid until the next call on the same thread, which formats it
/// again only if the second differs.
[[nodiscard]] std::string_view cached_date(std::int64_t wall_ns) noexcept;
/// The same as a field of HTTP/1: "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n".
[[nodiscard]] std::string_view cached_date_line(std::int64_t wall_ns) noexcept;

}  // namespace tambour::http
