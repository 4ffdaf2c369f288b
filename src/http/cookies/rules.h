// Rules that servers and clients share: the prefixes of names, and the sizes of cookies.
#pragma once

#include <cstddef>
#include <string_view>

#include <tambour/detail/namespaces.h>
#include <tambour/http/cookie.h>

#include "http_message/characters.h"

namespace tambour::http::detail::cookies {

/// Of name and value together, and of an attribute: RFC 6265bis, section 5.6.
inline constexpr std::size_t cookie_bytes_max = 4096;
inline constexpr std::size_t attribute_bytes_max = 1024;

[[nodiscard]] inline bool has_prefix(std::string_view name, std::string_view prefix) noexcept {
  return equal_ignoring_case(name.substr(0, prefix.size()), prefix);
}

/// Section 4.1.3, and SameSite=None (section 4.1.2.7). Prefixes are case-insensitive for clients.
[[nodiscard]] inline bool obeys_prefix(const SetCookie& cookie) noexcept {
  if (cookie.same_site == SameSite::none && !cookie.secure) return false;
  if (has_prefix(cookie.name, "__Secure-")) return cookie.secure;
  if (!has_prefix(cookie.name, "__Host-")) return true;
  return cookie.secure && cookie.domain.empty() && cookie.path == "/";
}

}  // namespace tambour::http::detail::cookies
