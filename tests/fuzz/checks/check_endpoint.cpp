// Text and socket addresses as endpoints, compared with inet_pton(3).
#include <arpa/inet.h>
#include <net/if.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include <tambour/net/endpoint.h>
#include <tambour/net/ip_address.h>

#include "fuzz/bytes_checks.h"

namespace tambour::fuzz {
namespace {

bool is_number(std::string_view text, unsigned long limit) {
  if (text.empty()) return false;
  unsigned long number = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return false;
    number = std::min(number * 10 + static_cast<unsigned long>(digit - '0'), limit + 1);
  }
  return number <= limit;
}

bool is_address(int family, const std::string& text) {
  in6_addr place;
  return text.find('\0') == std::string::npos && ::inet_pton(family, text.c_str(), &place) == 1;
}

bool is_zone(const std::string& text) {
  if (text.find('\0') != std::string::npos) return false;
  return is_number(text, UINT32_MAX) || ::if_nametoindex(text.c_str()) != 0;
}

bool is_v6_with_zone(const std::string& text) {
  const std::size_t percent = text.find('%');
  if (!is_address(AF_INET6, text.substr(0, percent))) return false;
  return percent == std::string::npos || is_zone(text.substr(percent + 1));
}

/// The syntax that Endpoint::parse() documents.
bool is_endpoint(const std::string& text) {
  if (text.starts_with("unix:")) {
    std::string name = text.substr(5);
    if (name.empty()) return false;
    const bool is_abstract = name[0] == '@' || name[0] == '\0';
    if (is_abstract) name.erase(0, 1);
    return name.size() <= 107 && (is_abstract || name.find('\0') == std::string::npos);
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || !is_number(text.substr(colon + 1), 65535)) return false;
  const std::string host = text.substr(0, colon);
  if (host.empty() || host == "*" || is_address(AF_INET, host)) return true;
  return host.size() > 2 && host.front() == '[' && host.back() == ']' &&
         is_v6_with_zone(host.substr(1, host.size() - 2));
}

void check_value(const Endpoint& endpoint) {
  const auto same = Endpoint::from(endpoint.data(), endpoint.size());
  expect(same && *same == endpoint, "from() changed an endpoint");
  expect(endpoint.with_port(endpoint.port()) == endpoint,
         "with_port() changed an endpoint whose port is the same");
  expect(endpoint.is_ip() || endpoint.port() == 0, "a Unix name has a port");
}

void check_text(const std::string& text) {
  const auto endpoint = Endpoint::parse(text);
  expect(endpoint.has_value() == is_endpoint(text), "parse() accepted or rejected the wrong text");
  if (!endpoint) {
    const int error = endpoint.error().value();
    expect(endpoint.error().category() == std::generic_category(),
           "the error of parse() is not an errno value");
    expect(error == EINVAL || error == ERANGE || error == ENODEV || error == ENAMETOOLONG,
           "parse() failed with an undocumented error");
    return;
  }
  check_value(*endpoint);
  const auto again = Endpoint::parse(endpoint->to_string());
  expect(again && *again == *endpoint, "parse(to_string()) returned another endpoint");
  expect(again->to_string() == endpoint->to_string(), "equal endpoints have different texts");
}

void check_address(const std::string& text, std::uint16_t port) {
  const auto endpoint = Endpoint::parse(text, port);
  const bool is_v4 = is_address(AF_INET, text);
  expect(endpoint.has_value() == (is_v4 || is_v6_with_zone(text)),
         "parse() accepted or rejected the wrong address");
  if (!endpoint) return;
  expect(endpoint->family() == (is_v4 ? AF_INET : AF_INET6),
         "parse() returned the wrong address family");
  expect(endpoint->port() == port, "parse() returned the wrong port");
  expect(Endpoint::parse(endpoint->address(), port) == endpoint,
         "parse(address()) returned another endpoint");
  check_value(*endpoint);
}

void check_network(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::string address = text.substr(0, slash);
  const bool is_v4 = is_address(AF_INET, address);
  const bool has_prefix =
      slash == std::string::npos || is_number(text.substr(slash + 1), is_v4 ? 32 : 128);
  const auto network = IpNetwork::parse(text);
  expect(network.has_value() == ((is_v4 || is_address(AF_INET6, address)) && has_prefix),
         "IpNetwork::parse() accepted or rejected the wrong text");
  if (!network) return;
  expect(IpNetwork::parse(network->to_string()) == network,
         "parse(to_string()) returned another network");
  expect(network->contains(network->address()), "a network does not contain its first address");
  expect(network->contains(*IpAddress::parse(address)),
         "a network does not contain the address that was parsed");
}

void check_socket_address(Bytes bytes) {
  sockaddr_storage place{};
  std::memcpy(&place, bytes.data(), std::min(bytes.size(), sizeof(place)));
  const auto size = static_cast<socklen_t>(bytes.size());
  const auto endpoint = Endpoint::from(reinterpret_cast<const sockaddr*>(&place), size);
  if (!endpoint) return;
  expect(endpoint->family() == place.ss_family, "from() returned the wrong address family");
  check_value(*endpoint);
  expect(!endpoint->to_string().empty(), "to_string() returned an empty text");
}

}  // namespace

void check_endpoint(Bytes bytes) {
  const std::string text(text_of(bytes));
  check_text(text);
  check_text("unix:" + text);
  check_text("[" + text + "]:80");
  check_text(text + ":80");
  check_address(text, static_cast<std::uint16_t>(text.size() * 257));
  check_network(text);
  check_socket_address(bytes);
}

}  // namespace tambour::fuzz
