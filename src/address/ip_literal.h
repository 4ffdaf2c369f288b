// IP addresses in texts that have no meaning for this machine.
#pragma once

#include <optional>
#include <string_view>

#include <tambour/net/ip_address.h>

namespace tambour {

/// Parses an address like IpAddress::parse(), but ignores its zone, which need not exist: the zone
/// in a certificate or a URL is one of another machine.
[[nodiscard]] std::optional<IpAddress> parse_ignoring_zone(std::string_view text) noexcept;

}  // namespace tambour
