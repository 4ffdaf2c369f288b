// The fields that a proxy removes and adds. Most requests have none of the former but Connection,
// so that one pass over the names finds what has to be done.
#include "http/proxy/fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "http/coding/lists.h"
#include "http_message/characters.h"

namespace tambour::http::detail::proxy {
namespace {

/// Whether a field is never passed on. Those that frame the message are set by the library.
bool is_hop_by_hop(std::string_view name) noexcept {
  switch (name.size()) {
    case 10:
      return equal_ignoring_case(name, "Connection") || equal_ignoring_case(name, "Keep-Alive");
    case 14:
      return equal_ignoring_case(name, "Content-Length") ||
             equal_ignoring_case(name, "HTTP2-Settings");
    case 16:
      return equal_ignoring_case(name, "Proxy-Connection");
    case 17:
      return equal_ignoring_case(name, "Transfer-Encoding");
    case 18:
      return equal_ignoring_case(name, "Proxy-Authenticate");
    case 19:
      return equal_ignoring_case(name, "Proxy-Authorization");
    default:
      return false;
  }
}

bool is_usual_option(std::string_view option) noexcept {
  return equal_ignoring_case(option, "close") || equal_ignoring_case(option, "keep-alive") ||
         equal_ignoring_case(option, "Upgrade") || equal_ignoring_case(option, "TE");
}

/// The fields that Connection names: RFC 9110, section 7.6.1.
void remove_named_by_connection(Fields& fields) {
  std::string options;
  for (const Field field : fields) {
    if (!equal_ignoring_case(field.name, "Connection")) continue;
    for (const std::string_view option : coding::ListElements(field.value)) {
      if (!is_usual_option(option)) options.append(option).append(",");
    }
  }
  if (options.empty()) return;
  for (const std::string_view option : coding::ListElements(options)) fields.remove(option);
}

/// Compares like programs that get fields as variables (RFC 3875, section 4.1.18).
bool is_same_variable(std::string_view name, std::string_view other) noexcept {
  return std::ranges::equal(name, other, [](char a, char b) {
    return base::to_lower(a == '_' ? '-' : a) == base::to_lower(b);
  });
}

bool is_about_client(std::string_view name) noexcept {
  constexpr std::string_view prefix = "X-Forwarded-";
  if (name.size() == 9) {
    return equal_ignoring_case(name, "Forwarded") || is_same_variable(name, "X-Real-IP");
  }
  return name.size() > prefix.size() && is_same_variable(name.substr(0, prefix.size()), prefix);
}

void remove_about_client(Fields& fields) {
  for (std::size_t i = 0; i < fields.size();) {
    if (is_about_client(fields[i].name)) {
      fields.remove(std::string(fields[i].name));
    } else {
      ++i;
    }
  }
}

/// A list in one field, with one more element.
void append_to_list(Fields& fields, std::string_view name, std::string_view element) {
  std::string list = fields.joined(name);
  if (!list.empty()) list += ", ";
  static_cast<void>(fields.set(name, list.append(element)));
}

/// IPv4 without the functions of printf(3), which cost as much as the rest of the field.
std::string text_of(const IpAddress& address) {
  if (!address.is_v4()) return address.to_string();
  std::array<char, 16> text;
  char* at = text.data();
  for (const std::uint8_t byte : address.bytes()) {
    if (at != text.data()) *at++ = '.';
    at = std::to_chars(at, text.data() + text.size(), byte).ptr;
  }
  return {text.data(), at};
}

void add_x_forwarded(Fields& fields, const ClientIdentity& client) {
  // Nothing is left of what an untrusted client has said.
  const bool may_be_set = client.is_trusted;
  if (client.address && may_be_set) {
    append_to_list(fields, "X-Forwarded-For", text_of(*client.address));
  } else if (client.address) {
    static_cast<void>(fields.add("X-Forwarded-For", text_of(*client.address)));
  }
  if (!may_be_set || !fields.contains("X-Forwarded-Proto"))
    static_cast<void>(fields.add("X-Forwarded-Proto", client.is_secure ? "https" : "http"));
  if (!client.authority.empty() && !(may_be_set && fields.contains("X-Forwarded-Host")))
    static_cast<void>(fields.add("X-Forwarded-Host", client.authority));
}

/// RFC 7239, section 4: a value that is no token is quoted, as IPv6 addresses and ports are.
void add_forwarded(Fields& fields, const ClientIdentity& client) {
  std::string element = "for=";
  if (!client.address) {
    element += "unknown";
  } else if (client.address->is_v4()) {
    element += client.address->to_string();
  } else {
    element.append("\"[").append(client.address->without_zone().to_string()).append("]\"");
  }
  element.append(";proto=").append(client.is_secure ? "https" : "http");
  // The authority was checked by the parser: it contains no quotation marks.
  if (!client.authority.empty()) element.append(";host=\"").append(client.authority).append("\"");
  append_to_list(fields, "Forwarded", element);
}

}  // namespace

void remove_hop_by_hop(Fields& fields, bool keeps_upgrade) {
  bool has_options = false;
  bool has_te = false;
  bool has_upgrade = false;
  for (const Field field : fields) {
    const std::string_view name = field.name;
    has_options = has_options || (name.size() == 10 && equal_ignoring_case(name, "Connection") &&
                                  !is_usual_option(field.value));
    has_te = has_te || (name.size() == 2 && equal_ignoring_case(name, "TE"));
    has_upgrade = has_upgrade || (name.size() == 7 && equal_ignoring_case(name, "Upgrade"));
  }
  if (has_options) remove_named_by_connection(fields);
  const bool has_trailers = has_te && fields.has_token("TE", "trailers");
  if (has_te) fields.remove("TE");
  if (has_upgrade && !keeps_upgrade) fields.remove("Upgrade");
  for (std::size_t i = 0; i < fields.size();) {
    if (is_hop_by_hop(fields[i].name)) {
      fields.remove(std::string(fields[i].name));
    } else {
      ++i;
    }
  }
  if (has_trailers) static_cast<void>(fields.add("TE", "trailers"));
}

void set_forwarded(Fields& fields, const ClientIdentity& client, ForwardedFields kind) {
  if (!client.is_trusted) remove_about_client(fields);
  if (kind == ForwardedFields::x_forwarded || kind == ForwardedFields::both)
    add_x_forwarded(fields, client);
  if (kind == ForwardedFields::forwarded || kind == ForwardedFields::both)
    add_forwarded(fields, client);
}

std::size_t hops_of(const Fields& fields) noexcept {
  std::size_t hops = 0;
  for (std::size_t i = fields.find("Via"); i < fields.size(); i = fields.find("Via", i + 1))
    hops += 1 + static_cast<std::size_t>(std::ranges::count(fields[i].value, ','));
  return hops;
}

}  // namespace tambour::http::detail::proxy
