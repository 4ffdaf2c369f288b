// Hashes of OpenSSL, for protocols that need one without TLS.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>

namespace tambour::tls::detail {

enum class MessageDigest : std::uint8_t { md5, sha256, sha512_256 };

/// The digest of all bytes, in hexadecimal digits of lower case. No value if OpenSSL does not offer
/// the algorithm, as MD5 in its FIPS mode, or if the library has no TLS. Throws std::bad_alloc.
[[nodiscard]] std::optional<std::string> digest_of(MessageDigest algorithm, const Buffer& bytes);

}  // namespace tambour::tls::detail
