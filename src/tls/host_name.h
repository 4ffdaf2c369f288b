// Whether a certificate is valid for the host name that a client expects: RFC 9525, with the
// practice of browsers and curl that the label for which a wildcard stands may contain underscores.
#pragma once

#include <string_view>

#include <tambour/detail/namespaces.h>

#include "tls/openssl.h"

namespace tambour::tls::detail {

/// Whether `name`, a DNS name in a certificate, is `host`, or a wildcard for it. A wildcard is "*."
/// with at least two labels; the asterisk stands for one label. `host` is no address, and has no
/// final dot.
[[nodiscard]] bool is_name_of(std::string_view name, std::string_view host) noexcept;

/// Whether one of the DNS names in the certificate fits. False if there are none, and if they
/// cannot be decoded.
[[nodiscard]] bool is_valid_for(const X509* certificate, std::string_view host) noexcept;

}  // namespace tambour::tls::detail
