// The fields that a proxy removes and adds. One pass over the hashes of the names, which the parser
// has computed, finds those that are not passed on.
#include "http/proxy/fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>

#include "http/coding/lists.h"
#include "http_message/characters.h"
#include "http_message/field_hash.h"
#include "http_message/field_writer.h"

namespace tambour::http::detail::proxy {
namespace {

/// How fields are treated. `dropped`: never passed on. Those that frame the message are set by the
/// library.
enum class Kind : std::uint8_t {
  other,
  dropped,
  connection,
  te,
  upgrade,
  host,
  expect,
  max_forwards,
  via,
};

Kind kind_of(std::string_view name, std::uint32_t hash) noexcept {
  const auto kind_if = [name](std::string_view known, Kind kind) {
    return equal_ignoring_case(name, known) ? kind : Kind::other;
  };
  switch (hash) {
    case hash_of_name("Connection"):
      return kind_if("Connection", Kind::connection);
    case hash_of_name("Content-Length"):
      return kind_if("Content-Length", Kind::dropped);
    case hash_of_name("Expect"):
      return kind_if("Expect", Kind::expect);
    case hash_of_name("Host"):
      return kind_if("Host", Kind::host);
    case hash_of_name("HTTP2-Settings"):
      return kind_if("HTTP2-Settings", Kind::dropped);
    case hash_of_name("Keep-Alive"):
      return kind_if("Keep-Alive", Kind::dropped);
    case hash_of_name("Max-Forwards"):
      return kind_if("Max-Forwards", Kind::max_forwards);
    case hash_of_name("Proxy-Authenticate"):
      return kind_if("Proxy-Authenticate", Kind::dropped);
    case hash_of_name("Proxy-Authorization"):
      return kind_if("Proxy-Authorization", Kind::dropped);
    case hash_of_name("Proxy-Connection"):
      return kind_if("Proxy-Connection", Kind::dropped);
    case hash_of_name("TE"):
      return kind_if("TE", Kind::te);
    case hash_of_name("Transfer-Encoding"):
      return kind_if("Transfer-Encoding", Kind::dropped);
    case hash_of_name("Upgrade"):
      return kind_if("Upgrade", Kind::upgrade);
    case hash_of_name("Via"):
      return kind_if("Via", Kind::via);
    default:
      return Kind::other;
  }
}

/// Collects what one pass over fields finds in those that are not passed on.
struct ConnectionOptions {
  std::string named;  ///< Fields that Connection names, each with a comma at its end.
  bool names_upgrade = false;
  bool has_trailers = false;  ///< "TE: trailers".

  void read_connection(std::string_view value) {
    for (const std::string_view option : coding::ListElements(value)) {
      const bool is_upgrade = equal_ignoring_case(option, "Upgrade");
      names_upgrade = names_upgrade || is_upgrade;
      if (!is_upgrade && !equal_ignoring_case(option, "close") &&
          !equal_ignoring_case(option, "keep-alive") && !equal_ignoring_case(option, "TE"))
        named.append(option).append(",");
    }
  }
  void read_te(std::string_view value) {
    for (const std::string_view coding : coding::ListElements(value))
      has_trailers = has_trailers || equal_ignoring_case(coding, "trailers");
  }
  /// RFC 9110, section 7.6.1.
  void apply(Fields& fields) const {
    for (const std::string_view name : coding::ListElements(named)) fields.remove(name);
    if (has_trailers) FieldWriter::append(fields, "TE", "trailers");
  }
};

/// Compares like programs that get fields as variables (RFC 3875, section 4.1.18).
bool is_same_variable(std::string_view name, std::string_view other) noexcept {
  return std::ranges::equal(name, other, [](char a, char b) {
    return base::to_lower(a == '_' ? '-' : a) == base::to_lower(b);
  });
}

bool is_about_client(std::string_view name) noexcept {
  constexpr std::string_view prefix = "X-Forwarded-";
  if (name.size() < 9) return false;
  const char first = base::to_lower(name.front());
  if (first != 'x' && first != 'f') return false;
  if (name.size() == 9)
    return equal_ignoring_case(name, "Forwarded") || is_same_variable(name, "X-Real-IP");
  return name.size() > prefix.size() && is_same_variable(name.substr(0, prefix.size()), prefix);
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
    FieldWriter::append(fields, "X-Forwarded-For", text_of(*client.address));
  }
  if (!may_be_set || !fields.contains("X-Forwarded-Proto"))
    FieldWriter::append(fields, "X-Forwarded-Proto", client.is_secure ? "https" : "http");
  // The authority was checked by the parser.
  if (!client.authority.empty() && !(may_be_set && fields.contains("X-Forwarded-Host")))
    FieldWriter::append(fields, "X-Forwarded-Host", client.authority);
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

RequestTraits copy_request_fields(Fields& to, const Fields& from, bool is_trusted) {
  RequestTraits traits;
  ConnectionOptions options;
  FieldWriter::copy_if(to, from, [&](const Field& field, std::uint32_t hash) {
    switch (kind_of(field.name, hash)) {
      case Kind::other:
        return is_trusted || !is_about_client(field.name);
      case Kind::via:
        traits.hops += 1 + static_cast<std::size_t>(std::ranges::count(field.value, ','));
        return true;
      case Kind::upgrade:
        return traits.has_upgrade = true;
      case Kind::expect:
        return traits.has_expect = true;
      case Kind::max_forwards:
        return traits.has_max_forwards = true;
      case Kind::connection:
        options.read_connection(field.value);
        return false;
      case Kind::te:
        options.read_te(field.value);
        return false;
      case Kind::host:
      case Kind::dropped:
        break;
    }
    return false;
  });
  options.apply(to);
  traits.names_upgrade = options.names_upgrade;
  return traits;
}

void remove_hop_by_hop(Fields& fields, bool keeps_upgrade) {
  ConnectionOptions options;
  FieldWriter::remove_if(fields, [&](const Field& field, std::uint32_t hash) {
    switch (kind_of(field.name, hash)) {
      case Kind::connection:
        options.read_connection(field.value);
        return true;
      case Kind::te:
        options.read_te(field.value);
        return true;
      case Kind::upgrade:
        return !keeps_upgrade;
      case Kind::dropped:
        return true;
      default:
        return false;
    }
  });
  options.apply(fields);
}

void add_forwarded_fields(Fields& fields, const ClientIdentity& client, ForwardedFields kind) {
  if (kind == ForwardedFields::x_forwarded || kind == ForwardedFields::both)
    add_x_forwarded(fields, client);
  if (kind == ForwardedFields::forwarded || kind == ForwardedFields::both)
    add_forwarded(fields, client);
}

}  // namespace tambour::http::detail::proxy
