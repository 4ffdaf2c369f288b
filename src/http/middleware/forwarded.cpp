// Reads lists of addresses from right to left. What a client has sent is on the left.
#include "http/middleware/forwarded.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http_message/characters.h"

namespace tambour::http {
namespace {

/// An address with an optional port: "192.0.2.1:80", "[2001:db8::1]:80", "2001:db8::1".
std::optional<IpAddress> parse_node(std::string_view text) noexcept {
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view rest = text.substr(end + 1);
    if (!rest.empty() && rest.front() != ':') return std::nullopt;
    text = text.substr(1, end - 1);
  } else if (std::ranges::count(text, ':') == 1) {
    text = text.substr(0, text.find(':'));
  }
  // The name of a zone would be looked up among the interfaces of this machine.
  if (text.find('%') != std::string_view::npos) return std::nullopt;
  const Result<IpAddress> address = IpAddress::parse(text);
  if (!address) return std::nullopt;
  return address->unmapped();
}

/// Reads a Forwarded field: RFC 7239, section 4.
class ForwardedParser {
 public:
  explicit ForwardedParser(std::string_view text) noexcept : rest_(text) {}

  /// Appends the node of each element to `nodes`; empty if it has no parameter "for". Returns false
  /// if the field is malformed.
  [[nodiscard]] bool append_nodes(std::vector<std::string>& nodes) {
    nodes.emplace_back();
    while (true) {
      skip_space();
      if (!rest_.empty() && rest_.front() != ';' && rest_.front() != ',') {
        if (!take_pair(nodes.back())) return false;
        skip_space();
      }
      if (rest_.empty()) return true;
      const char separator = rest_.front();
      if (separator != ';' && separator != ',') return false;
      rest_.remove_prefix(1);
      if (separator == ',') nodes.emplace_back();
    }
  }

 private:
  void skip_space() noexcept {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t'))
      rest_.remove_prefix(1);
  }

  bool take_pair(std::string& node) {
    const std::size_t equals = rest_.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view name = rest_.substr(0, equals);
    if (name.empty() || !all_are(name, token_char)) return false;
    rest_.remove_prefix(equals + 1);
    std::string value;
    if (!take_value(value)) return false;
    if (equal_ignoring_case(name, "for")) node = std::move(value);
    return true;
  }

  bool take_value(std::string& value) {
    if (!rest_.starts_with('"')) {
      // Some proxies do not quote a port or an IPv6 address.
      constexpr std::string_view others = ":[]";
      while (!rest_.empty() && (is(rest_.front(), token_char) || others.contains(rest_.front()))) {
        value += rest_.front();
        rest_.remove_prefix(1);
      }
      return !value.empty();
    }
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == '"') {
        rest_.remove_prefix(i + 1);
        return true;
      }
      if (rest_[i] == '\\' && i + 1 < rest_.size()) ++i;
      value += rest_[i];
    }
    return false;
  }

  std::string_view rest_;
};

/// The nodes from left to right. No value if the field is malformed.
std::optional<std::vector<std::string>> nodes_of(const Fields& fields, ForwardingField field) {
  const bool is_forwarded = field == ForwardingField::forwarded;
  const std::string_view name = is_forwarded ? "Forwarded" : "X-Forwarded-For";
  std::vector<std::string> nodes;
  for (std::size_t at = fields.find(name); at != fields.size(); at = fields.find(name, at + 1)) {
    std::string_view list = fields[at].value;
    if (is_forwarded) {
      if (!ForwardedParser(list).append_nodes(nodes)) return std::nullopt;
      continue;
    }
    for (bool more = true; more;) {
      const std::size_t comma = list.find(',');
      more = comma != std::string_view::npos;
      nodes.emplace_back(trim(list.substr(0, comma)));
      if (more) list.remove_prefix(comma + 1);
    }
  }
  return nodes;
}

}  // namespace

std::optional<IpAddress> find_client(const Fields& fields, ForwardingField field,
                                     const TrustedPeers& trusted) {
  const auto nodes = nodes_of(fields, field);
  if (!nodes) return std::nullopt;
  std::optional<IpAddress> client;
  for (std::size_t i = nodes->size(); i-- > 0;) {
    const std::optional<IpAddress> address = parse_node((*nodes)[i]);
    if (!address) break;
    client = address;
    if (!trusted.contains(*address)) break;
  }
  return client;
}

}  // namespace tambour::http
