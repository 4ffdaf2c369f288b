// Digest authentication, as a client performs it: RFC 7616.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/auth.h>
#include <tambour/http/fields.h>
#include <tambour/http/method.h>

namespace tambour::http::detail::auth {

enum class HashAlgorithm : std::uint8_t { md5, sha256, sha512_256 };

/// Returns the hash in hexadecimal digits; no value if the algorithm is not available. May throw
/// std::bad_alloc.
using Hash = std::optional<std::string> (*)(HashAlgorithm algorithm, const Buffer& text);

/// What is hashed of a request.
struct DigestRequest {
  const Method& method;
  std::string_view target;
  const Buffer* body = nullptr;  ///< Null if it is not known before it is sent.
};

struct DigestChallenge {
  std::string realm{};
  std::string nonce{};
  std::optional<std::string> opaque{};
  HashAlgorithm algorithm = HashAlgorithm::md5;
  bool names_algorithm = false;  ///< The challenge has the parameter.
  bool is_session = false;       ///< "-sess".
  bool allows_auth = false;      ///< The qualities of protection; none: as in RFC 2069.
  bool allows_auth_int = false;
  bool is_stale = false;  ///< Only the nonce was too old.
  bool hashes_user = false;
  bool is_utf8 = false;
};

/// The challenge with the strongest algorithm that `hash` knows. No value if there is none that a
/// client can answer. `name` is "WWW-Authenticate" or "Proxy-Authenticate". Throws std::bad_alloc.
[[nodiscard]] std::optional<DigestChallenge> strongest_challenge(const Fields& fields,
                                                                 std::string_view name, Hash hash);

/// Answers one challenge, for any number of requests.
class DigestSession {
 public:
  /// `random` becomes the nonce of the client.
  DigestSession(DigestChallenge challenge, Hash hash, std::array<std::uint64_t, 2> random);

  /// The value of Authorization or Proxy-Authorization, and counts the request. No value if the
  /// server wants the body to be hashed and it is not known, or if the user or the password has a
  /// control character. Throws std::bad_alloc.
  [[nodiscard]] std::optional<std::string> authorize(const BasicCredentials& credentials,
                                                     const DigestRequest& request);
  /// Uses the next nonce that the server names in Authentication-Info, if there is one.
  void take_info(std::string_view info);

 private:
  [[nodiscard]] std::optional<std::string> hashed(std::string_view text) const;
  [[nodiscard]] std::string secret(const BasicCredentials& credentials) const;

  DigestChallenge challenge_;
  Hash hash_;
  std::string client_nonce_;
  std::uint32_t count_ = 0;  ///< Of the requests with this nonce.
};

}  // namespace tambour::http::detail::auth
