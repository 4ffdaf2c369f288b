// How much the parsers of HTTP/1.1 accept.
#pragma once

#include <cstdint>
#include <string_view>

#include <tambour/detail/namespaces.h>

#include "http_message/characters.h"

namespace tambour::http::detail::h1 {

enum class ParsingMode : std::uint8_t {
  /// What RFC 9112 defines. For servers: a front end that reads a request in another way would be
  /// deceived.
  strict,
  /// For clients. Accepts in addition what curl, browsers and Go accept, if it changes neither
  /// where a message ends nor how its framing is read: docs/decisions/0039.
  lenient_response,
};

/// The fields that say where a body ends. The lenient mode repairs nothing in them.
[[nodiscard]] constexpr bool is_framing_field(std::string_view name) noexcept {
  return equal_ignoring_case(name, "Content-Length") ||
         equal_ignoring_case(name, "Transfer-Encoding");
}

}  // namespace tambour::http::detail::h1
