// Which characters each component of a URL may have, and the syntax of hosts and ports.
#include "http_message/url_syntax.h"

#include <tambour/net/ip_address.h>

#include "base/parse_number.h"
#include "http_message/failure.h"

namespace tambour::http {
namespace {

/// IPvFuture = "v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" )
bool is_future_address(std::string_view text) noexcept {
  if (to_lower(text.front()) != 'v') return false;
  std::size_t i = 1;
  while (i < text.size() && hex_value(text[i]) >= 0) ++i;
  if (i == 1 || i + 1 >= text.size() || text[i] != '.') return false;
  return all_are(text.substr(i + 1), user_char);
}

bool is_ip_literal(std::string_view text) noexcept {
  if (text.empty()) return false;
  if (is_future_address(text)) return true;
  // A URL contains no zone of this machine: RFC 9844.
  if (text.contains('%')) return false;
  const auto address = IpAddress::parse(text);
  return address && address->is_v6();
}

}  // namespace

Result<> check_component(std::string_view text, CharacterClass allowed) noexcept {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is(text[i], allowed)) [[likely]]
      continue;
    if (text[i] != '%') return failure(ErrorCode::url_bad_character);
    if (text.size() - i < 3 || hex_value(text[i + 1]) < 0 || hex_value(text[i + 2]) < 0)
      return failure(ErrorCode::url_bad_encoding);
    i += 2;
  }
  return {};
}

Result<HostAndPort> parse_host_and_port(std::string_view text) noexcept {
  HostAndPort parsed;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos || !is_ip_literal(text.substr(1, end - 1)))
      return failure(ErrorCode::url_bad_host);
    parsed.host = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
  } else {
    parsed.host = text.substr(0, text.find(':'));
    if (!check_component(parsed.host, host_char)) return failure(ErrorCode::url_bad_host);
    text.remove_prefix(parsed.host.size());
  }
  if (text.empty()) return parsed;
  if (text.front() != ':') return failure(ErrorCode::url_bad_host);
  text.remove_prefix(1);
  if (text.empty()) return parsed;
  const auto number = detail::base::parse_number<std::uint16_t>(text);
  if (!number) return failure(ErrorCode::url_bad_port);
  parsed.port = *number;
  return parsed;
}

}  // namespace tambour::http
