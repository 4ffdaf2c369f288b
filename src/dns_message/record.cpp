// Records as text.
#include <tambour/dns/record.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <tambour/net/ip_address.h>

#include "base/failure.h"
#include "base/parse_number.h"
#include "dns_message/record_data.h"
#include "dns_message/wire_name.h"

namespace tambour::dns {

namespace {

struct NamedType {
  Type type;
  std::string_view name;
};
constexpr std::array type_names{
    NamedType{Type::a, "A"},         NamedType{Type::ns, "NS"},
    NamedType{Type::cname, "CNAME"}, NamedType{Type::soa, "SOA"},
    NamedType{Type::ptr, "PTR"},     NamedType{Type::mx, "MX"},
    NamedType{Type::txt, "TXT"},     NamedType{Type::aaaa, "AAAA"},
    NamedType{Type::srv, "SRV"},     NamedType{Type::naptr, "NAPTR"},
    NamedType{Type::opt, "OPT"},     NamedType{Type::tlsa, "TLSA"},
    NamedType{Type::svcb, "SVCB"},   NamedType{Type::https, "HTTPS"},
    NamedType{Type::ixfr, "IXFR"},   NamedType{Type::axfr, "AXFR"},
    NamedType{Type::any, "ANY"},     NamedType{Type::caa, "CAA"},
};
constexpr std::string_view unknown_prefix = "TYPE";

std::string hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += digits[static_cast<std::uint8_t>(byte) >> 4U];
    text += digits[static_cast<std::uint8_t>(byte) & 0xfU];
  }
  return text;
}

/// A character-string of a zone file: RFC 1035, section 5.1.
std::string quoted(std::string_view bytes) {
  std::string text = "\"";
  for (const char byte : bytes) {
    if (byte == '"' || byte == '\\') text += '\\';
    if (byte >= ' ' && byte < '\x7f') {
      text += byte;
    } else {
      const std::string number = std::to_string(static_cast<unsigned char>(byte));
      text += '\\' + std::string(3 - number.size(), '0') + number;
    }
  }
  return text + '"';
}

std::string generic(std::string_view bytes) {
  std::string text = "\\# " + std::to_string(bytes.size());
  if (!bytes.empty()) text += ' ' + hex(bytes);
  return text;
}

std::string joined(std::initializer_list<std::string> words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

/// The presentation format of each type.
struct Present {
  std::string operator()(const UnknownData& data) const { return generic(data.data); }
  std::string operator()(const A& data) const { return IpAddress(data.address).to_string(); }
  std::string operator()(const Aaaa& data) const { return IpAddress(data.address).to_string(); }
  std::string operator()(const Cname& data) const { return data.target.to_string(); }
  std::string operator()(const Ptr& data) const { return data.target.to_string(); }
  std::string operator()(const Ns& data) const { return data.server.to_string(); }
  std::string operator()(const Soa& data) const {
    return joined({data.server.to_string(), data.mailbox.to_string(), std::to_string(data.serial),
                   std::to_string(data.refresh), std::to_string(data.retry),
                   std::to_string(data.expire), std::to_string(data.minimum)});
  }
  std::string operator()(const Mx& data) const {
    return joined({std::to_string(data.preference), data.exchange.to_string()});
  }
  std::string operator()(const Txt& data) const {
    std::string text;
    for (const std::string& string_entry : data.strings) {
      if (!text.empty()) text += ' ';
      text += quoted(string_entry);
    }
    return text;
  }
  std::string operator()(const Srv& data) const {
    return joined({std::to_string(data.priority), std::to_string(data.weight),
                   std::to_string(data.port), data.target.to_string()});
  }
  std::string operator()(const Naptr& data) const {
    return joined({std::to_string(data.order), std::to_string(data.preference), quoted(data.flags),
                   quoted(data.services), quoted(data.regexp), data.replacement.to_string()});
  }
  std::string operator()(const Caa& data) const {
    return joined({std::to_string(data.flags), data.tag, quoted(data.value)});
  }
  std::string operator()(const Tlsa& data) const {
    return joined({std::to_string(data.usage), std::to_string(data.selector),
                   std::to_string(data.matching), hex(data.data)});
  }
  std::string operator()(const Svcb& data) const {
    // The values of keys have formats of their own; this one is valid for each: RFC 9460, section
    // 2.1.
    std::string text = joined({std::to_string(data.priority), data.target.to_string()});
    for (const SvcParam& param : data.params) {
      text += " key" + std::to_string(param.key);
      if (!param.value.empty()) text += '=' + quoted(param.value);
    }
    return text;
  }
};

std::string class_name(Class record_class) {
  switch (record_class) {
    case Class::in:
      return "IN";
    case Class::chaos:
      return "CH";
    case Class::none:
      return "NONE";
    case Class::any:
      return "ANY";
  }
  return "CLASS" + std::to_string(static_cast<unsigned>(record_class));
}

}  // namespace

std::string to_string(Type type) {
  const auto* const named = std::ranges::find(type_names, type, &NamedType::type);
  if (named != type_names.end()) return std::string(named->name);
  return std::string(unknown_prefix) + std::to_string(static_cast<unsigned>(type));
}

Result<Type> parse_type(std::string_view text) {
  for (const NamedType& type_name : type_names) {
    if (detail::equal_ignoring_case(type_name.name, text)) return type_name.type;
  }
  if (!detail::equal_ignoring_case(text.substr(0, unknown_prefix.size()), unknown_prefix))
    return detail::base::failure(EINVAL);
  const auto number = detail::base::parse_number<std::uint16_t>(text.substr(unknown_prefix.size()));
  if (!number) return detail::base::failure(EINVAL);
  return Type(*number);
}

std::vector<std::string> Svcb::alpn() const {
  std::vector<std::string> found;
  const auto param = std::ranges::find(params, SvcParam::alpn, &SvcParam::key);
  if (param == params.end()) return found;
  detail::Reader reader(detail::as_bytes(param->value));
  while (reader.left() != 0) found.emplace_back(reader.counted_text());
  if (reader.has_failed()) found.clear();
  return found;
}

std::uint16_t Svcb::port() const noexcept {
  const auto param = std::ranges::find(params, SvcParam::port, &SvcParam::key);
  if (param == params.end()) return 0;
  return detail::Reader(detail::as_bytes(param->value)).u16();
}

std::string Record::to_string() const {
  const std::string text = std::visit(Present(), data);
  return joined({name.to_string(), std::to_string(ttl), class_name(record_class),
                 tambour::dns::to_string(type), text});
}

}  // namespace tambour::dns
