// The hashes of Digest authentication, by OpenSSL.
#pragma once

#include <optional>
#include <string>

#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>

#include "http_message/auth/digest.h"
#include "tls/message_digest.h"

namespace tambour::detail::client {

/// An auth::Hash. Without TLS in the library, no algorithm is available.
inline std::optional<std::string> digest_hash(http::detail::auth::HashAlgorithm algorithm,
                                              const Buffer& text) {
  using http::detail::auth::HashAlgorithm;
  using tls::detail::MessageDigest;
  switch (algorithm) {
    case HashAlgorithm::md5:
      return tls::detail::digest_of(MessageDigest::md5, text);
    case HashAlgorithm::sha256:
      return tls::detail::digest_of(MessageDigest::sha256, text);
    case HashAlgorithm::sha512_256:
      return tls::detail::digest_of(MessageDigest::sha512_256, text);
  }
  return std::nullopt;
}

}  // namespace tambour::detail::client
