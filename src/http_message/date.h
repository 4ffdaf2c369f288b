// The current date as text, which servers send with each response.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <tambour/detail/namespaces.h>

namespace tambour::http {

inline constexpr std::size_t date_size = 29;

/// Writes the format of format_date().
void write_date(std::chrono::sys_seconds time, std::span<char, date_size> to) noexcept;

/// The date at a time after 1970. Valid until the next call on the same thread, which formats it
/// again only if the second differs.
[[nodiscard]] std::string_view cached_date(std::int64_t wall_ns) noexcept;

}  // namespace tambour::http
