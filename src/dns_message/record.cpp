// Records as text.
#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <tambour/dns_record.h>
#include <tambour/ip_address.h>

#include "base/failure.h"
#include "base/parse_number.h"
#include "dns_message/record_data.h"
#include "dns_message/wire_name.h"

namespace tambour {
namespace {

struct NamedType {
  DnsType type;
  std::string_view name;
};
constexpr std::array type_names{
    NamedType{DnsType::a, "A"},         NamedType{DnsType::ns, "NS"},
    NamedType{DnsType::cname, "CNAME"}, NamedType{DnsType::soa, "SOA"},
    NamedType{DnsType::ptr, "PTR"},     NamedType{DnsType::mx, "MX"},
    NamedType{DnsType::txt, "TXT"},     NamedType{DnsType::aaaa, "AAAA"},
    NamedType{DnsType::srv, "SRV"},     NamedType{DnsType::naptr, "NAPTR"},
    NamedType{DnsType::opt, "OPT"},     NamedType{DnsType::tlsa, "TLSA"},
    NamedType{DnsType::svcb, "SVCB"},   NamedType{DnsType::https, "HTTPS"},
    NamedType{DnsType::ixfr, "IXFR"},   NamedType{DnsType::axfr, "AXFR"},
    NamedType{DnsType::any, "ANY"},     NamedType{DnsType::caa, "CAA"},
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
  for (const std::string& each : words) {
    if (!text.empty()) text += ' ';
    text += each;
  }
  return text;
}

/// The presentation format of each type.
struct Present {
  std::string operator()(const DnsUnknown& data) const { return generic(data.data); }
  std::string operator()(const DnsA& data) const { return IpAddress(data.address).to_string(); }
  std::string operator()(const DnsAaaa& data) const { return IpAddress(data.address).to_string(); }
  std::string operator()(const DnsCname& data) const { return data.target.to_string(); }
  std::string operator()(const DnsPtr& data) const { return data.target.to_string(); }
  std::string operator()(const DnsNs& data) const { return data.server.to_string(); }
  std::string operator()(const DnsSoa& data) const {
    return joined({data.server.to_string(), data.mailbox.to_string(), std::to_string(data.serial),
                   std::to_string(data.refresh), std::to_string(data.retry),
                   std::to_string(data.expire), std::to_string(data.minimum)});
  }
  std::string operator()(const DnsMx& data) const {
    return joined({std::to_string(data.preference), data.exchange.to_string()});
  }
  std::string operator()(const DnsTxt& data) const {
    std::string text;
    for (const std::string& each : data.strings) {
      if (!text.empty()) text += ' ';
      text += quoted(each);
    }
    return text;
  }
  std::string operator()(const DnsSrv& data) const {
    return joined({std::to_string(data.priority), std::to_string(data.weight),
                   std::to_string(data.port), data.target.to_string()});
  }
  std::string operator()(const DnsNaptr& data) const {
    return joined({std::to_string(data.order), std::to_string(data.preference), quoted(data.flags),
                   quoted(data.services), quoted(data.regexp), data.replacement.to_string()});
  }
  std::string operator()(const DnsCaa& data) const {
    return joined({std::to_string(data.flags), data.tag, quoted(data.value)});
  }
  std::string operator()(const DnsTlsa& data) const {
    return joined({std::to_string(data.usage), std::to_string(data.selector),
                   std::to_string(data.matching), hex(data.data)});
  }
  std::string operator()(const DnsSvcb& data) const {
    // The values of keys have formats of their own; this one is valid for each: RFC 9460, section
    // 2.1.
    std::string text = joined({std::to_string(data.priority), data.target.to_string()});
    for (const DnsSvcParam& each : data.params) {
      text += " key" + std::to_string(each.key);
      if (!each.value.empty()) text += '=' + quoted(each.value);
    }
    return text;
  }
};

std::string class_name(DnsClass record_class) {
  switch (record_class) {
    case DnsClass::in:
      return "IN";
    case DnsClass::chaos:
      return "CH";
    case DnsClass::none:
      return "NONE";
    case DnsClass::any:
      return "ANY";
  }
  return "CLASS" + std::to_string(static_cast<unsigned>(record_class));
}

}  // namespace

std::string to_string(DnsType type) {
  const auto* const named = std::ranges::find(type_names, type, &NamedType::type);
  if (named != type_names.end()) return std::string(named->name);
  return std::string(unknown_prefix) + std::to_string(static_cast<unsigned>(type));
}

Result<DnsType> parse_dns_type(std::string_view text) {
  for (const NamedType& each : type_names) {
    if (dns::equal_ignoring_case(each.name, text)) return each.type;
  }
  if (!dns::equal_ignoring_case(text.substr(0, unknown_prefix.size()), unknown_prefix))
    return base::failure(EINVAL);
  const auto number = base::parse_number<std::uint16_t>(text.substr(unknown_prefix.size()));
  if (!number) return base::failure(EINVAL);
  return DnsType(*number);
}

std::vector<std::string> DnsSvcb::alpn() const {
  std::vector<std::string> found;
  const auto param = std::ranges::find(params, DnsSvcParam::alpn, &DnsSvcParam::key);
  if (param == params.end()) return found;
  dns::Reader reader(dns::as_bytes(param->value));
  while (reader.left() != 0) found.emplace_back(reader.counted_text());
  if (reader.failed()) found.clear();
  return found;
}

std::uint16_t DnsSvcb::port() const noexcept {
  const auto param = std::ranges::find(params, DnsSvcParam::port, &DnsSvcParam::key);
  if (param == params.end()) return 0;
  return dns::Reader(dns::as_bytes(param->value)).u16();
}

std::string DnsRecord::to_string() const {
  const std::string text = std::visit(Present(), data);
  return joined({name.to_string(), std::to_string(ttl), class_name(record_class),
                 tambour::to_string(type), text});
}

}  // namespace tambour
