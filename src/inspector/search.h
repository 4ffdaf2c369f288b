// Searching the rows of a list.
#pragma once

#include <algorithm>
#include <string_view>

namespace tambour::inspector {

/// Ignores case in ASCII.
[[nodiscard]] inline bool contains(std::string_view text, std::string_view part) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; };
  return !std::ranges::search(text, part, {}, lower, lower).empty() || part.empty();
}

}  // namespace tambour::inspector
