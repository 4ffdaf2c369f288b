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

struct KnownField {
  constexpr KnownField(std::string_view field_name, Kind field_kind) noexcept
      : name(field_name), hash(hash_of_name(field_name)), kind(field_kind) {}

  std::string_view name;
  std::uint32_t hash;
  Kind kind;
};

constexpr std::array known_fields{
    KnownField("Content-Length", Kind::dropped),
    KnownField("Host", Kind::host),
    KnownField("Connection", Kind::connection),
    KnownField("Transfer-Encoding", Kind::dropped),
    KnownField("Keep-Alive", Kind::dropped),
    KnownField("Via", Kind::via),
    KnownField("Upgrade", Kind::upgrade),
    KnownField("TE", Kind::te),
    KnownField("Expect", Kind::expect),
    KnownField("Max-Forwards", Kind::max_forwards),
    KnownField("HTTP2-Settings", Kind::dropped),
    KnownField("Proxy-Authenticate", Kind::dropped),
    KnownField("Proxy-Authorization", Kind::dropped),
    KnownField("Proxy-Connection", Kind::dropped),
};

/// These bits of a hash distinguish the fields below from most others.
constexpr std::uint64_t mark_of(std::uint32_t hash) noexcept {
  return std::uint64_t{1} << ((hash >> 11U) % 64);
}

constexpr std::uint64_t known_marks = [] {
  std::uint64_t marks = 0;
  for (const KnownField& field : known_fields) marks |= mark_of(field.hash);
  return marks;
}();

Kind kind_of(std::string_view name, std::uint32_t hash) noexcept {
  if ((known_marks & mark_of(hash)) == 0) return Kind::other;
  for (const KnownField& field : known_fields) {
    if (field.hash != hash) continue;
    // Most peers write a name in the same way.
    if (field.name == name || equal_ignoring_case(field.name, name)) return field.kind;
  }
  return Kind::other;
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
    if (named.empty() && !has_trailers) return;
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
  // The field is left out if a handler has set an authority that is not a valid field value.
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
  // A handler may have changed the authority that the parser has checked.
  const bool can_be_quoted = client.authority.find_first_of("\"\\") == std::string_view::npos;
  if (!client.authority.empty() && can_be_quoted)
    element.append(";host=\"").append(client.authority).append("\"");
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
