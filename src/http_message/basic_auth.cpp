// Basic authentication.
#include <cstddef>

#include <tambour/http/auth.h>

#include "http_message/base64.h"
#include "http_message/characters.h"
#include "http_message/failure.h"

namespace tambour::http {
namespace {

bool has_control(std::string_view text) noexcept {
  return !text.empty() && (!all_are(text, value_char) || text.find('\t') != std::string_view::npos);
}

}  // namespace

Result<std::string> format_basic_credentials(const BasicCredentials& credentials) {
  if (credentials.user.find(':') != std::string::npos || has_control(credentials.user) ||
      has_control(credentials.password))
    return failure(ErrorCode::bad_credentials);
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
