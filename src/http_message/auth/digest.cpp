// Digest: which challenge is answered, and the answer.
#include "http_message/auth/digest.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <tambour/http/url.h>

#include "http_message/auth/challenge.h"
#include "http_message/auth/scanner.h"

namespace tambour::http::detail::auth {
namespace {

struct NamedAlgorithm {
  std::string_view name;
  HashAlgorithm algorithm;
  bool is_session;
};

constexpr std::array<NamedAlgorithm, 6> algorithms{{
    {"MD5", HashAlgorithm::md5, false},
    {"MD5-sess", HashAlgorithm::md5, true},
    {"SHA-256", HashAlgorithm::sha256, false},
    {"SHA-256-sess", HashAlgorithm::sha256, true},
    {"SHA-512-256", HashAlgorithm::sha512_256, false},
    {"SHA-512-256-sess", HashAlgorithm::sha512_256, true},
}};

std::string_view name_of(HashAlgorithm algorithm, bool is_session) noexcept {
  for (const NamedAlgorithm& named : algorithms) {
    if (named.algorithm == algorithm && named.is_session == is_session) return named.name;
  }
  return {};
}

bool is_true(const std::string* value) noexcept {
  return value != nullptr && equal_ignoring_case(*value, "true");
}

/// "auth, auth-int". Unknown qualities are ignored; a challenge with only such cannot be answered.
bool parse_qualities(std::string_view list, DigestChallenge& into) noexcept {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view quality = trim(list.substr(0, comma));
    if (equal_ignoring_case(quality, "auth")) into.allows_auth = true;
    if (equal_ignoring_case(quality, "auth-int")) into.allows_auth_int = true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return into.allows_auth || into.allows_auth_int;
}

std::optional<DigestChallenge> digest_of(const Challenge& challenge) {
  if (!equal_ignoring_case(challenge.scheme, "Digest")) return std::nullopt;
  const std::string* const realm = challenge.find("realm");
  const std::string* const nonce = challenge.find("nonce");
  if (realm == nullptr || nonce == nullptr) return std::nullopt;
  DigestChallenge digest{.realm = *realm, .nonce = *nonce};
  if (const std::string* const opaque = challenge.find("opaque")) digest.opaque = *opaque;
  if (const std::string* const name = challenge.find("algorithm")) {
    const auto known = std::ranges::find_if(algorithms, [name](const NamedAlgorithm& named) {
      return equal_ignoring_case(named.name, *name);
    });
    if (known == algorithms.end()) return std::nullopt;
    digest.algorithm = known->algorithm;
    digest.is_session = known->is_session;
    digest.names_algorithm = true;
  }
  if (const std::string* const qualities = challenge.find("qop");
      qualities != nullptr && !parse_qualities(*qualities, digest))
    return std::nullopt;
  digest.is_stale = is_true(challenge.find("stale"));
  digest.hashes_user = is_true(challenge.find("userhash"));
  const std::string* const charset = challenge.find("charset");
  digest.is_utf8 = charset != nullptr && equal_ignoring_case(*charset, "UTF-8");
  return digest;
}

void append_quoted(std::string& to, std::string_view name, std::string_view value) {
  to.append(to.ends_with(' ') ? "" : ", ").append(name).append("=\"");
  for (const char character : value) {
    if (character == '"' || character == '\\') to += '\\';
    to += character;
  }
  to += '"';
}

void append_plain(std::string& to, std::string_view name, std::string_view value) {
  to.append(", ").append(name).append("=").append(value);
}

std::string hexadecimal(std::uint64_t high, std::uint64_t low) {
  char text[33];
  const int size =
      std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high),
                    static_cast<unsigned long long>(low));
  return {text, static_cast<std::size_t>(size)};
}

std::string nonce_count(std::uint32_t count) {
  char text[9];
  const int size = std::snprintf(text, sizeof text, "%08x", count);
  return {text, static_cast<std::size_t>(size)};
}

bool is_ascii(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool has_controls(std::string_view text) noexcept {
  return !text.empty() && !all_are(text, value_char);
}

}  // namespace

std::optional<DigestChallenge> strongest_challenge(const Fields& fields, std::string_view name,
                                                   Hash hash) {
  std::optional<DigestChallenge> strongest;
  for (const Challenge& challenge : parse_challenges(fields, name)) {
    auto digest = digest_of(challenge);
    if (!digest || !hash(digest->algorithm, Buffer())) continue;
    if (!strongest || digest->algorithm > strongest->algorithm) strongest = std::move(digest);
  }
  return strongest;
}

DigestSession::DigestSession(DigestChallenge challenge, Hash hash,
                             std::array<std::uint64_t, 2> random)
    : challenge_(std::move(challenge)),
      hash_(hash),
      client_nonce_(hexadecimal(random[0], random[1])) {}

std::optional<std::string> DigestSession::hashed(std::string_view text) const {
  return hash_(challenge_.algorithm, Buffer(text));
}

std::string DigestSession::secret(const BasicCredentials& credentials) const {
  const std::string text = credentials.user + ':' + challenge_.realm + ':' + credentials.password;
  std::string secret = hashed(text).value_or("");
  if (challenge_.is_session)
    secret = hashed(secret + ':' + challenge_.nonce + ':' + client_nonce_).value_or("");
  return secret;
}

std::optional<std::string> DigestSession::authorize(const BasicCredentials& credentials,
                                                    const DigestRequest& request) {
  if (has_controls(credentials.user) || has_controls(credentials.password)) return std::nullopt;
  const bool has_quality = challenge_.allows_auth || challenge_.allows_auth_int;
  const bool protects_body = has_quality && !challenge_.allows_auth;
  if (protects_body && request.body == nullptr) return std::nullopt;
  std::string second(request.method.name());
  second.append(":").append(request.target);
  if (protects_body) second += ':' + hash_(challenge_.algorithm, *request.body).value_or("");
  const std::string_view quality = protects_body ? "auth-int" : "auth";
  const std::string count = nonce_count(++count_);
  std::string text = secret(credentials) + ':' + challenge_.nonce + ':';
  if (has_quality) text.append(count + ':' + client_nonce_ + ':').append(quality).append(":");
  text += hashed(second).value_or("");
  const auto response = hashed(text);
  if (!response) return std::nullopt;

  std::string value = "Digest ";
  if (challenge_.hashes_user) {
    append_quoted(value, "username",
                  hashed(credentials.user + ':' + challenge_.realm).value_or(""));
  } else if (challenge_.is_utf8 && !is_ascii(credentials.user)) {
    value += "username*=UTF-8''" + percent_encode(credentials.user, UrlComponent::unreserved);
  } else {
    append_quoted(value, "username", credentials.user);
  }
  append_quoted(value, "realm", challenge_.realm);
  append_quoted(value, "nonce", challenge_.nonce);
  append_quoted(value, "uri", request.target);
  append_quoted(value, "response", *response);
  if (challenge_.names_algorithm)
    append_plain(value, "algorithm", name_of(challenge_.algorithm, challenge_.is_session));
  if (challenge_.opaque) append_quoted(value, "opaque", *challenge_.opaque);
  if (has_quality) {
    append_plain(value, "qop", quality);
    append_plain(value, "nc", count);
  }
  if (has_quality || challenge_.is_session) append_quoted(value, "cnonce", client_nonce_);
  if (challenge_.hashes_user) append_plain(value, "userhash", "true");
  return value;
}

void DigestSession::take_info(std::string_view info) {
  const Challenge parsed = parse_authentication_info(info);
  const std::string* const next = parsed.find("nextnonce");
  if (next == nullptr || *next == challenge_.nonce) return;
  challenge_.nonce = *next;
  count_ = 0;
}

}  // namespace tambour::http::detail::auth
