// use_proxy(), use_proxies() and ProxySettings.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include <tambour/http_proxy.h>

#include "http/characters.h"
#include "http/client/redirect.h"
#include "http/coding/lists.h"

namespace tambour::http {
namespace client {
namespace {

struct Address {
  std::array<unsigned char, 16> bytes{};
  unsigned bits = 0;  ///< 32 or 128.
};

std::optional<Address> parse_address(const std::string& text) noexcept {
  Address address;
  if (::inet_pton(AF_INET, text.c_str(), address.bytes.data()) == 1) {
    address.bits = 32;
  } else if (::inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) {
    address.bits = 128;
  } else {
    return std::nullopt;
  }
  return address;
}

bool is_in_network(const std::string& host, std::string_view network) {
  const std::size_t slash = network.find('/');
  const auto address = parse_address(host);
  const auto base = parse_address(std::string(network.substr(0, slash)));
  const std::string_view digits = network.substr(slash + 1);
  unsigned bits = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
  if (!address || !base || address->bits != base->bits || read.ec != std::errc() ||
      read.ptr != digits.data() + digits.size() || bits > base->bits)
    return false;
  for (unsigned i = 0; i < bits; ++i) {
    const unsigned mask = 128U >> (i % 8);
    if (((address->bytes[i / 8] ^ base->bytes[i / 8]) & mask) != 0) return false;
  }
  return true;
}

/// Removes a port from the element. Returns false if it is another one.
bool take_port(std::string_view& element, std::uint16_t port) noexcept {
  const std::size_t colon = element.rfind(':');
  const bool is_address =
      element.find(':') != colon && !element.ends_with(']') && !element.starts_with('[');
  if (colon == std::string_view::npos || is_address) return true;
  const std::string_view digits = element.substr(colon + 1);
  if (digits.find(']') != std::string_view::npos) return true;
  const bool is_same = digits == std::to_string(port);
  element = element.substr(0, colon);
  return is_same;
}

bool matches_host(const Origin& origin, std::string_view element) {
  if (element == "*") return true;
  if (element.find('/') != std::string_view::npos) return is_in_network(origin.host, element);
  if (!take_port(element, origin.port)) return false;
  if (element.starts_with('[') && element.ends_with(']'))
    element = element.substr(1, element.size() - 2);
  if (element.starts_with('.')) element.remove_prefix(1);
  const std::string_view host = origin.host;
  if (element.empty() || host.size() < element.size()) return false;
  const std::size_t rest = host.size() - element.size();
  return equal_ignoring_case(host.substr(rest), element) && (rest == 0 || host[rest - 1] == '.');
}

bool is_excepted(const Url& url, std::string_view list) {
  const Origin origin = origin_of(url);
  return std::ranges::any_of(coding::ListElements(list), [&origin](std::string_view element) {
    return matches_host(origin, element);
  });
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
}  // namespace client

ProxyChoice use_proxy(std::string proxy) {
  return [proxy = std::move(proxy)](const Url&) { return proxy; };
}

ProxySettings ProxySettings::from_environment() {
  using client::variable;
  using client::with_scheme;
  return {.http = with_scheme(variable("http_proxy")),
          .https = with_scheme(variable("https_proxy", "HTTPS_PROXY")),
          .all = with_scheme(variable("all_proxy", "ALL_PROXY")),
          .except = variable("no_proxy", "NO_PROXY")};
}

ProxyChoice use_proxies(ProxySettings settings) {
  return [settings = std::move(settings)](const Url& url) {
    if (client::is_excepted(url, settings.except)) return std::string();
    const std::string& chosen = client::origin_of(url).is_secure ? settings.https : settings.http;
    return chosen.empty() ? settings.all : chosen;
  };
}

}  // namespace tambour::http
