// Priorities of responses: RFC 9218, section 4.
#pragma once

#include <cstdint>
#include <string_view>

#include <tambour/detail/namespaces.h>

namespace tambour::http::detail::h2 {

struct Priority {
  static constexpr std::uint8_t urgency_max = 7;

  std::uint8_t urgency = 3;     ///< 0 is the most urgent.
  bool is_incremental = false;  ///< Parts of the response are useful: interleave it with others.

  bool operator==(const Priority&) const = default;
};

/// Parses the field Priority, or that of PRIORITY_UPDATE: "u=1, i". Unknown parameters, and values
/// of another type or range, are ignored. A text that is not a dictionary (RFC 8941) has no effect:
/// the result is the default.
[[nodiscard]] Priority parse_priority(std::string_view text) noexcept;

}  // namespace tambour::http::detail::h2
