// Basic authentication, and the Base64 that it needs.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <tambour/http_auth.h>

#include "http_message/characters.h"
#include "http_message/failure.h"

namespace tambour::http {
namespace {

constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// RFC 4648, section 4.
std::string encode_base64(std::string_view text) {
  std::string encoded;
  encoded.reserve((text.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < text.size(); at += 3) {
    const std::string_view group = text.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8U | (i < group.size() ? static_cast<unsigned char>(group[i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      encoded += i <= group.size() ? base64_digits[bits >> (18 - 6 * i) & 63U] : '=';
  }
  return encoded;
}

/// Accepts only what encode_base64() returns.
std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string decoded;
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text.substr(0, text.find('='))) {
    const std::size_t digit = base64_digits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6U | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    decoded += static_cast<char>(bits >> count & 255U);
  }
  if (encode_base64(decoded) != text) return std::nullopt;
  return decoded;
}

bool has_control(std::string_view text) noexcept {
  return !text.empty() && (!all_are(text, value_char) || text.find('\t') != std::string_view::npos);
}

}  // namespace

Result<std::string> format_basic_credentials(const BasicCredentials& credentials) {
  if (credentials.user.find(':') != std::string::npos || has_control(credentials.user) ||
      has_control(credentials.password))
    return failure(HttpError::bad_credentials);
  return "Basic " + encode_base64(credentials.user + ":" + credentials.password);
}

std::optional<BasicCredentials> parse_basic_credentials(std::string_view value) {
  constexpr std::string_view scheme = "Basic ";
  if (!equal_ignoring_case(value.substr(0, scheme.size()), scheme)) return std::nullopt;
  const auto decoded = decode_base64(trim(value.substr(scheme.size())));
  if (!decoded || has_control(*decoded)) return std::nullopt;
  const std::size_t colon = decoded->find(':');
  if (colon == std::string::npos) return std::nullopt;
  return BasicCredentials{.user = decoded->substr(0, colon),
                          .password = decoded->substr(colon + 1)};
}

bool constant_time_equal(std::string_view given, std::string_view expected) noexcept {
  if (given.size() != expected.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < given.size(); ++i)
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(expected[i]);
  // Otherwise the compiler could end the loop early.
  const volatile unsigned result = difference;
  return result == 0;
}

}  // namespace tambour::http
