// The syntax of components of URLs, for URLs, request targets and Host fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>

#include "http_message/characters.h"

namespace tambour::http {

/// Checks that a component consists of characters of `allowed` and percent-encoded bytes. Fails
/// with http::ErrorCode::url_bad_character or url_bad_encoding.
[[nodiscard]] Result<> check_component(std::string_view text, CharacterClass allowed) noexcept;

struct HostAndPort {
  std::string_view host{};  ///< Without brackets.
  std::optional<std::uint16_t> port{};
};

/// Parses an authority without userinfo: "example.org:80", "[::1]", "192.0.2.1:", "". Fails with
/// http::ErrorCode::url_bad_host or url_bad_port.
[[nodiscard]] Result<HostAndPort> parse_host_and_port(std::string_view text) noexcept;

}  // namespace tambour::http
