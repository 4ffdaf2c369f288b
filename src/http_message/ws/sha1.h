// SHA-1 (RFC 3174), for the opening handshake of WebSockets only: it is not secure any more, and
// the handshake does not need it to be. Codecs do not depend on OpenSSL.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include <tambour/detail/namespaces.h>

namespace tambour::http::detail::ws {

[[nodiscard]] std::array<std::byte, 20> sha1(std::string_view text) noexcept;

}  // namespace tambour::http::detail::ws
