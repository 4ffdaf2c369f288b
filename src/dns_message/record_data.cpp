// Reads, checks and writes the data of each type of record.
#include "dns_message/record_data.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace tambour::dns {
namespace {

constexpr std::size_t string_max = 255;

/// Types whose data depends on the class are those of the Internet; the others are the same in all
/// classes.
bool is_of_internet_only(DnsType type) noexcept {
  switch (type) {
    case DnsType::a:
    case DnsType::aaaa:
    case DnsType::srv:
    case DnsType::naptr:
    case DnsType::svcb:
    case DnsType::https:
      return true;
    default:
      return false;
  }
}

template <class Address>
Address read_address(Reader& reader) {
  Address read;
  const std::string_view bytes = reader.text(read.address.size());
  if (!reader.failed()) std::ranges::copy(bytes, read.address.begin());
  return read;
}

DnsSoa read_soa(Reader& reader) {
  DnsSoa soa;
  soa.server = reader.name();
  soa.mailbox = reader.name();
  soa.serial = reader.u32();
  soa.refresh = reader.u32();
  soa.retry = reader.u32();
  soa.expire = reader.u32();
  soa.minimum = reader.u32();
  return soa;
}

DnsMx read_mx(Reader& reader) {
  DnsMx mx;
  mx.preference = reader.u16();
  mx.exchange = reader.name();
  return mx;
}

DnsTxt read_txt(Reader& reader) {
  DnsTxt txt;
  do txt.strings.emplace_back(reader.counted_text());
  while (reader.left() != 0);
  return txt;
}

DnsSrv read_srv(Reader& reader) {
  DnsSrv srv;
  srv.priority = reader.u16();
  srv.weight = reader.u16();
  srv.port = reader.u16();
  srv.target = reader.name();
  return srv;
}

DnsNaptr read_naptr(Reader& reader) {
  DnsNaptr naptr;
  naptr.order = reader.u16();
  naptr.preference = reader.u16();
  naptr.flags = reader.counted_text();
  naptr.services = reader.counted_text();
  naptr.regexp = reader.counted_text();
  naptr.replacement = reader.name();
  return naptr;
}

/// RFC 8659, section 4.1: letters and digits, at least one.
bool is_tag(std::string_view tag) noexcept {
  const auto is_alphanumeric = [](char byte) {
    return (byte >= '0' && byte <= '9') || (to_lower(byte) >= 'a' && to_lower(byte) <= 'z');
  };
  return !tag.empty() && tag.size() <= string_max && std::ranges::all_of(tag, is_alphanumeric);
}

DnsCaa read_caa(Reader& reader) {
  DnsCaa caa;
  caa.flags = reader.u8();
  caa.tag = reader.counted_text();
  caa.value = reader.rest();
  if (!is_tag(caa.tag)) reader.fail(DnsError::bad_record);
  return caa;
}

DnsTlsa read_tlsa(Reader& reader) {
  DnsTlsa tlsa;
  tlsa.usage = reader.u8();
  tlsa.selector = reader.u8();
  tlsa.matching = reader.u8();
  tlsa.data = reader.rest();
  return tlsa;
}

/// Names that the writer of a message may not compress are read without pointers where RFC 9460
/// says so; older types are read as RFC 3597, section 4, recommends.
DnsName read_plain_name(Reader& reader) {
  const std::size_t begin = reader.position();
  DnsName name = reader.name();
  if (reader.position() - begin != name.wire().size()) reader.fail(DnsError::bad_record);
  return name;
}

/// The forms of RFC 9460, section 7 and 8. A value of an unknown key may be anything.
bool is_value_of(std::uint16_t key, std::string_view value) noexcept {
  switch (key) {
    case DnsSvcParam::mandatory: {
      if (value.empty() || value.size() % 2 != 0) return false;
      int last = 0;  // Which must not list itself: keys begin with 1.
      for (std::size_t i = 0; i < value.size(); i += 2) {
        const int each =
            static_cast<std::uint8_t>(value[i]) << 8 | static_cast<std::uint8_t>(value[i + 1]);
        if (each <= last) return false;
        last = each;
      }
      return true;
    }
    case DnsSvcParam::alpn: {
      if (value.empty()) return false;
      while (!value.empty()) {
        const auto length = static_cast<std::uint8_t>(value[0]);
        if (length == 0 || length >= value.size()) return false;
        value.remove_prefix(length + 1U);
      }
      return true;
    }
    case DnsSvcParam::no_default_alpn:
      return value.empty();
    case DnsSvcParam::port:
      return value.size() == 2;
    case DnsSvcParam::ipv4hint:
      return !value.empty() && value.size() % 4 == 0;
    case DnsSvcParam::ipv6hint:
      return !value.empty() && value.size() % 16 == 0;
    default:
      return true;
  }
}

const DnsSvcParam* find_param(const std::vector<DnsSvcParam>& params, std::uint16_t key) noexcept {
  const auto found = std::ranges::find(params, key, &DnsSvcParam::key);
  return found == params.end() ? nullptr : &*found;
}

bool are_params(const std::vector<DnsSvcParam>& params) noexcept {
  int last = -1;
  for (const DnsSvcParam& each : params) {
    if (each.key <= last || !is_value_of(each.key, each.value)) return false;
    if (each.value.size() > UINT16_MAX) return false;
    last = each.key;
  }
  if (const DnsSvcParam* const mandatory = find_param(params, DnsSvcParam::mandatory)) {
    for (std::size_t i = 0; i < mandatory->value.size(); i += 2) {
      const auto key =
          static_cast<std::uint16_t>(static_cast<std::uint8_t>(mandatory->value[i]) << 8 |
                                     static_cast<std::uint8_t>(mandatory->value[i + 1]));
      if (find_param(params, key) == nullptr) return false;
    }
  }
  return find_param(params, DnsSvcParam::no_default_alpn) == nullptr ||
         find_param(params, DnsSvcParam::alpn) != nullptr;
}

DnsSvcb read_svcb(Reader& reader) {
  DnsSvcb svcb;
  svcb.priority = reader.u16();
  svcb.target = read_plain_name(reader);
  while (reader.left() != 0) {
    DnsSvcParam param;
    param.key = reader.u16();
    param.value = reader.text(reader.u16());
    svcb.params.push_back(std::move(param));
  }
  if (!are_params(svcb.params)) reader.fail(DnsError::bad_record);
  return svcb;
}

DnsData read_typed(Reader& reader, DnsType type) {
  switch (type) {
    case DnsType::a:
      return read_address<DnsA>(reader);
    case DnsType::aaaa:
      return read_address<DnsAaaa>(reader);
    case DnsType::cname:
      return DnsCname{reader.name()};
    case DnsType::ptr:
      return DnsPtr{reader.name()};
    case DnsType::ns:
      return DnsNs{reader.name()};
    case DnsType::soa:
      return read_soa(reader);
    case DnsType::mx:
      return read_mx(reader);
    case DnsType::txt:
      return read_txt(reader);
    case DnsType::srv:
      return read_srv(reader);
    case DnsType::naptr:
      return read_naptr(reader);
    case DnsType::caa:
      return read_caa(reader);
    case DnsType::tlsa:
      return read_tlsa(reader);
    case DnsType::svcb:
    case DnsType::https:
      return read_svcb(reader);
    default:
      return DnsUnknown{std::string(reader.rest())};
  }
}

/// The index of the alternative of DnsData that a record of this type has.
template <class T>
constexpr std::size_t index_of = [] {
  std::size_t index = 0;
  [&]<class... Each>(std::type_identity<std::variant<Each...>>) {
    static_cast<void>(((std::is_same_v<T, Each> || (++index, false)) || ...));
  }(std::type_identity<DnsData>());
  return index;
}();

std::size_t alternative_of(DnsType type) noexcept {
  switch (type) {
    case DnsType::a:
      return index_of<DnsA>;
    case DnsType::aaaa:
      return index_of<DnsAaaa>;
    case DnsType::cname:
      return index_of<DnsCname>;
    case DnsType::ptr:
      return index_of<DnsPtr>;
    case DnsType::ns:
      return index_of<DnsNs>;
    case DnsType::soa:
      return index_of<DnsSoa>;
    case DnsType::mx:
      return index_of<DnsMx>;
    case DnsType::txt:
      return index_of<DnsTxt>;
    case DnsType::srv:
      return index_of<DnsSrv>;
    case DnsType::naptr:
      return index_of<DnsNaptr>;
    case DnsType::caa:
      return index_of<DnsCaa>;
    case DnsType::tlsa:
      return index_of<DnsTlsa>;
    case DnsType::svcb:
    case DnsType::https:
      return index_of<DnsSvcb>;
    default:
      return index_of<DnsUnknown>;
  }
}

/// Writes the data of each type; false if it exceeds a limit.
struct Write {
  Writer& writer;

  bool operator()(const DnsUnknown& data) const {
    writer.text(data.data);
    return data.data.size() <= UINT16_MAX;
  }
  bool operator()(const DnsA& data) const { return address(data.address); }
  bool operator()(const DnsAaaa& data) const { return address(data.address); }
  // RFC 3597, section 4: only the types of RFC 1035 may have compressed names.
  bool operator()(const DnsCname& data) const { return compressed(data.target); }
  bool operator()(const DnsPtr& data) const { return compressed(data.target); }
  bool operator()(const DnsNs& data) const { return compressed(data.server); }
  bool operator()(const DnsSoa& data) const {
    compressed(data.server);
    compressed(data.mailbox);
    for (const std::uint32_t each :
         {data.serial, data.refresh, data.retry, data.expire, data.minimum})
      writer.u32(each);
    return true;
  }
  bool operator()(const DnsMx& data) const {
    writer.u16(data.preference);
    return compressed(data.exchange);
  }
  bool operator()(const DnsTxt& data) const {
    for (const std::string& each : data.strings) {
      if (!string(each)) return false;
    }
    return !data.strings.empty();
  }
  bool operator()(const DnsSrv& data) const {
    writer.u16(data.priority);
    writer.u16(data.weight);
    writer.u16(data.port);
    writer.name(data.target.wire());
    return true;
  }
  bool operator()(const DnsNaptr& data) const {
    writer.u16(data.order);
    writer.u16(data.preference);
    if (!string(data.flags) || !string(data.services) || !string(data.regexp)) return false;
    writer.name(data.replacement.wire());
    return true;
  }
  bool operator()(const DnsCaa& data) const {
    if (!is_tag(data.tag)) return false;
    writer.u8(data.flags);
    writer.counted_text(data.tag);
    writer.text(data.value);
    return true;
  }
  bool operator()(const DnsTlsa& data) const {
    writer.u8(data.usage);
    writer.u8(data.selector);
    writer.u8(data.matching);
    writer.text(data.data);
    return true;
  }
  bool operator()(const DnsSvcb& data) const {
    if (!are_params(data.params)) return false;
    writer.u16(data.priority);
    writer.name(data.target.wire());
    for (const DnsSvcParam& each : data.params) {
      writer.u16(each.key);
      writer.u16(static_cast<std::uint16_t>(each.value.size()));
      writer.text(each.value);
    }
    return true;
  }

 private:
  template <class Address>
  bool address(const Address& bytes) const {
    for (const std::uint8_t byte : bytes) writer.u8(byte);
    return true;
  }
  bool compressed(const DnsName& name) const {
    writer.compressed_name(name.wire());
    return true;
  }
  bool string(const std::string& text) const {
    if (text.size() > string_max) return false;
    writer.counted_text(text);
    return true;
  }
};

}  // namespace

DnsData read_data(Reader& reader, const RecordHead& head, bool may_be_empty) {
  const std::size_t former_end = reader.enter(head.size);
  DnsData data;
  if (reader.failed()) return data;
  const bool is_opaque = head.record_class != DnsClass::in && is_of_internet_only(head.type);
  if (is_opaque || (may_be_empty && head.size == 0)) {
    data = DnsUnknown{std::string(reader.rest())};
  } else {
    data = read_typed(reader, head.type);
  }
  reader.leave(former_end);
  return data;
}

DnsError write_data(Writer& writer, const DnsRecord& record) {
  const auto* const opaque = record.as<DnsUnknown>();
  const bool is_typed = record.data.index() == alternative_of(record.type);
  const bool is_of_other_class =
      record.record_class != DnsClass::in && is_of_internet_only(record.type);
  const bool fits = opaque != nullptr ? is_typed || is_of_other_class || opaque->data.empty()
                                      : is_typed && !is_of_other_class;
  return fits && std::visit(Write{writer}, record.data) ? no_error : DnsError::bad_record;
}

}  // namespace tambour::dns
