// Public suffixes: domains below which anyone can register names (publicsuffix.org).
#pragma once

#include <string>
#include <string_view>

#include <tambour/detail/namespaces.h>

namespace tambour::http::detail::cookies {

/// True for "com", "co.uk", "github.io" with libpsl; without it, for names with a single label.
/// `host` is in lower case.
[[nodiscard]] bool is_public_suffix(const std::string& host) noexcept;

/// The public suffix of a host and one label more: "example.co.uk". Without libpsl, the host
/// itself. Also the host itself if it is an address, or a public suffix.
[[nodiscard]] std::string registrable_domain(const std::string& host);

/// What a host and all hosts for which it can set cookies have in common: the registrable domain;
/// without libpsl, the last two labels.
[[nodiscard]] std::string site_of(const std::string& host);

/// True for IPv4 and IPv6 addresses, the latter without brackets.
[[nodiscard]] bool is_address(const std::string& host) noexcept;

}  // namespace tambour::http::detail::cookies
