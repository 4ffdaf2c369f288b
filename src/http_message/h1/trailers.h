// Which fields may be trailers.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include <tambour/detail/namespaces.h>

#include "http_message/characters.h"

namespace tambour::http::detail::h1 {

/// Fields that frame, route or authenticate a message must not be trailers: RFC 9110, section
/// 6.5.1.
[[nodiscard]] inline bool may_be_trailer(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 12> forbidden = {
      "authorization",  "connection",          "content-encoding",
      "content-length", "content-range",       "expect",
      "host",           "proxy-authorization", "te",
      "trailer",        "transfer-encoding",   "upgrade"};
  return std::ranges::none_of(
      forbidden, [name](std::string_view text) { return equal_ignoring_case(text, name); });
}

}  // namespace tambour::http::detail::h1
