// ProxyChoice and ProxySettings.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/net/ip_address.h>
#include <tambour/net/proxy.h>

#include "address/ip_literal.h"
#include "base/parse_number.h"
#include "http_message/characters.h"

namespace tambour {
namespace {

/// IPv4 addresses that are mapped to IPv6 count as IPv4, and zones are ignored.
std::optional<IpAddress> parse_address(std::string_view text) noexcept {
  const auto address = parse_ignoring_zone(text);
  return address ? std::optional(address->unmapped()) : std::nullopt;
}

std::string_view without_brackets(std::string_view text) noexcept {
  const bool has_brackets = text.starts_with('[') && text.ends_with(']');
  return has_brackets ? text.substr(1, text.size() - 2) : text;
}

bool is_in_network(const IpAddress& address, std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto base = parse_address(without_brackets(text.substr(0, slash)));
  const auto bits = detail::base::parse_number<unsigned>(text.substr(slash + 1));
  if (!base || !bits) return false;
  const auto network = IpNetwork::make(*base, *bits);
  return network && network->contains(address);
}

/// Removes a port from the element. Returns false if it is another one.
bool take_port(std::string_view& element, std::uint16_t port) noexcept {
  const std::size_t colon = element.rfind(':');
  const bool is_address =
      element.find(':') != colon && !element.ends_with(']') && !element.starts_with('[');
  if (colon == std::string_view::npos || is_address) return true;
  const std::string_view digits = element.substr(colon + 1);
  if (digits.find(']') != std::string_view::npos) return true;
  element = element.substr(0, colon);
  return detail::base::parse_number<std::uint16_t>(digits) == port;
}

void remove_final_dot(std::string_view& name) noexcept {
  if (name.size() > 1 && name.ends_with('.')) name.remove_suffix(1);
}

/// `domain` matches itself and the names below it, also with a leading dot; `*.domain` matches only
/// the names below it.
bool matches_name(std::string_view host, std::string_view domain) noexcept {
  const bool is_below_only = domain.starts_with("*.");
  if (is_below_only) domain.remove_prefix(1);
  if (domain.starts_with('.')) domain.remove_prefix(1);
  remove_final_dot(domain);
  remove_final_dot(host);
  if (domain.empty() || host.size() < domain.size()) return false;
  const std::size_t rest = host.size() - domain.size();
  if (!http::equal_ignoring_case(host.substr(rest), domain)) return false;
  return rest == 0 ? !is_below_only : host[rest - 1] == '.';
}

/// `address` is that of the target's host, if that is no name.
bool matches(const ProxyTarget& target, const std::optional<IpAddress>& address,
             std::string_view element) {
  if (element == "*") return true;
  if (element.find('/') != std::string_view::npos)
    return address && is_in_network(*address, element);
  if (!take_port(element, target.port)) return false;
  // An address has no domains: 10.0.0.1 is not below 0.0.1.
  if (address) return parse_address(without_brackets(element)) == address;
  return matches_name(target.host, element);
}

/// The elements are separated by commas, spaces or both.
bool is_excepted(const ProxyTarget& target, std::string_view list) {
  const auto address = parse_address(without_brackets(target.host));
  constexpr std::string_view separators = ", \t";
  for (;;) {
    list.remove_prefix(std::min(list.find_first_not_of(separators), list.size()));
    if (list.empty()) return false;
    const std::string_view element = list.substr(0, list.find_first_of(separators));
    if (matches(target, address, element)) return true;
    list.remove_prefix(element.size());
  }
}

std::string variable(const char* name, const char* other = nullptr) {
  const char* value = std::getenv(name);
  if (value == nullptr && other != nullptr) value = std::getenv(other);
  return value == nullptr ? "" : value;
}

std::string with_scheme(std::string proxy) {
  if (proxy.empty() || proxy.find("://") != std::string::npos) return proxy;
  return "http://" + proxy;
}

}  // namespace

ProxySettings ProxySettings::from_environment() {
  return {.http = with_scheme(variable("http_proxy")),
          .https = with_scheme(variable("https_proxy", "HTTPS_PROXY")),
          .all = with_scheme(variable("all_proxy", "ALL_PROXY")),
          .except = variable("no_proxy", "NO_PROXY")};
}

ProxyChoice::ProxyChoice(std::string url) {
  if (!url.empty()) choose_ = [url = std::move(url)](const ProxyTarget&) { return url; };
}

ProxyChoice::ProxyChoice(ProxySettings settings) {
  if (settings.http.empty() && settings.https.empty() && settings.all.empty()) return;
  choose_ = [settings = std::move(settings)](const ProxyTarget& target) {
    if (is_excepted(target, settings.except)) return std::string();
    std::string chosen;
    if (target.scheme == "http") chosen = settings.http;
    if (target.scheme == "https") chosen = settings.https;
    return chosen.empty() ? settings.all : chosen;
  };
}

ProxyChoice ProxyChoice::from_environment() { return ProxySettings::from_environment(); }

}  // namespace tambour
