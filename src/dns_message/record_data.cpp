// Reads, checks and writes the data of each type of record.
#include "dns_message/record_data.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace tambour::dns::detail {
namespace {

constexpr std::size_t string_max = 255;

/// Types whose data depends on the class are those of the Internet; the others are the same in all
/// classes.
bool is_of_internet_only(dns::Type type) noexcept {
  switch (type) {
    case dns::Type::a:
    case dns::Type::aaaa:
    case dns::Type::srv:
    case dns::Type::naptr:
    case dns::Type::svcb:
    case dns::Type::https:
      return true;
    default:
      return false;
  }
}

template <class Address>
Address read_address(Reader& reader) {
  Address read;
  const std::string_view bytes = reader.text(read.address.size());
  if (!reader.has_failed()) std::ranges::copy(bytes, read.address.begin());
  return read;
}

dns::Soa read_soa(Reader& reader) {
  dns::Soa soa;
  soa.server = reader.name();
  soa.mailbox = reader.name();
  soa.serial = reader.u32();
  soa.refresh = reader.u32();
  soa.retry = reader.u32();
  soa.expire = reader.u32();
  soa.minimum = reader.u32();
  return soa;
}

dns::Mx read_mx(Reader& reader) {
  dns::Mx mx;
  mx.preference = reader.u16();
  mx.exchange = reader.name();
  return mx;
}

dns::Txt read_txt(Reader& reader) {
  dns::Txt txt;
  do txt.strings.emplace_back(reader.counted_text());
  while (reader.left() != 0);
  return txt;
}

dns::Srv read_srv(Reader& reader) {
  dns::Srv srv;
  srv.priority = reader.u16();
  srv.weight = reader.u16();
  srv.port = reader.u16();
  srv.target = reader.name();
  return srv;
}

dns::Naptr read_naptr(Reader& reader) {
  dns::Naptr naptr;
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

dns::Caa read_caa(Reader& reader) {
  dns::Caa caa;
  caa.flags = reader.u8();
  caa.tag = reader.counted_text();
  caa.value = reader.rest();
  if (!is_tag(caa.tag)) reader.fail(dns::ErrorCode::bad_record);
  return caa;
}

dns::Tlsa read_tlsa(Reader& reader) {
  dns::Tlsa tlsa;
  tlsa.usage = reader.u8();
  tlsa.selector = reader.u8();
  tlsa.matching = reader.u8();
  tlsa.data = reader.rest();
  return tlsa;
}

/// Names that the writer of a message may not compress are read without pointers where RFC 9460
/// says so; older types are read as RFC 3597, section 4, recommends.
dns::Name read_plain_name(Reader& reader) {
  const std::size_t begin = reader.position();
  dns::Name name = reader.name();
  if (reader.position() - begin != name.wire().size()) reader.fail(dns::ErrorCode::bad_record);
  return name;
}

/// The forms of RFC 9460, section 7 and 8. A value of an unknown key may be anything.
bool is_value_of(std::uint16_t key, std::string_view value) noexcept {
  switch (key) {
    case dns::SvcParam::mandatory: {
      if (value.empty() || value.size() % 2 != 0) return false;
      int last = 0;  // Which must not list itself: keys begin with 1.
      for (std::size_t i = 0; i < value.size(); i += 2) {
        const int entry =
            static_cast<std::uint8_t>(value[i]) << 8 | static_cast<std::uint8_t>(value[i + 1]);
        if (entry <= last) return false;
        last = entry;
      }
      return true;
    }
    case dns::SvcParam::alpn: {
      if (value.empty()) return false;
      while (!value.empty()) {
        const auto length = static_cast<std::uint8_t>(value[0]);
        if (length == 0 || length >= value.size()) return false;
        value.remove_prefix(length + 1U);
      }
      return true;
    }
    case dns::SvcParam::no_default_alpn:
      return value.empty();
    case dns::SvcParam::port:
      return value.size() == 2;
    case dns::SvcParam::ipv4hint:
      return !value.empty() && value.size() % 4 == 0;
    case dns::SvcParam::ipv6hint:
      return !value.empty() && value.size() % 16 == 0;
    default:
      return true;
  }
}

const dns::SvcParam* find_param(const std::vector<dns::SvcParam>& params,
                                std::uint16_t key) noexcept {
  const auto found = std::ranges::find(params, key, &dns::SvcParam::key);
  return found == params.end() ? nullptr : &*found;
}

bool are_params(const std::vector<dns::SvcParam>& params) noexcept {
  int last = -1;
  for (const dns::SvcParam& param : params) {
    if (param.key <= last || !is_value_of(param.key, param.value)) return false;
    if (param.value.size() > UINT16_MAX) return false;
    last = param.key;
  }
  if (const dns::SvcParam* const mandatory = find_param(params, dns::SvcParam::mandatory)) {
    auto at = params.begin();  // Both lists ascend.
    for (std::size_t i = 0; i < mandatory->value.size(); i += 2) {
      const auto key =
          static_cast<std::uint16_t>(static_cast<std::uint8_t>(mandatory->value[i]) << 8 |
                                     static_cast<std::uint8_t>(mandatory->value[i + 1]));
      at = std::ranges::find(at, params.end(), key, &dns::SvcParam::key);
      if (at == params.end()) return false;
    }
  }
  return find_param(params, dns::SvcParam::no_default_alpn) == nullptr ||
         find_param(params, dns::SvcParam::alpn) != nullptr;
}

dns::Svcb read_svcb(Reader& reader) {
  dns::Svcb svcb;
  svcb.priority = reader.u16();
  svcb.target = read_plain_name(reader);
  while (reader.left() != 0) {
    dns::SvcParam param;
    param.key = reader.u16();
    param.value = reader.text(reader.u16());
    svcb.params.push_back(std::move(param));
  }
  if (!are_params(svcb.params)) reader.fail(dns::ErrorCode::bad_record);
  return svcb;
}

dns::Data read_typed(Reader& reader, dns::Type type) {
  switch (type) {
    case dns::Type::a:
      return read_address<dns::A>(reader);
    case dns::Type::aaaa:
      return read_address<dns::Aaaa>(reader);
    case dns::Type::cname:
      return dns::Cname{reader.name()};
    case dns::Type::ptr:
      return dns::Ptr{reader.name()};
    case dns::Type::ns:
      return dns::Ns{reader.name()};
    case dns::Type::soa:
      return read_soa(reader);
    case dns::Type::mx:
      return read_mx(reader);
    case dns::Type::txt:
      return read_txt(reader);
    case dns::Type::srv:
      return read_srv(reader);
    case dns::Type::naptr:
      return read_naptr(reader);
    case dns::Type::caa:
      return read_caa(reader);
    case dns::Type::tlsa:
      return read_tlsa(reader);
    case dns::Type::svcb:
    case dns::Type::https:
      return read_svcb(reader);
    default:
      return dns::UnknownData{std::string(reader.rest())};
  }
}

/// The index of the alternative of dns::Data that a record of this type has.
template <class T>
constexpr std::size_t index_of = [] {
  std::size_t index = 0;
  [&]<class... Each>(std::type_identity<std::variant<Each...>>) {
    static_cast<void>(((std::is_same_v<T, Each> || (++index, false)) || ...));
  }(std::type_identity<dns::Data>());
  return index;
}();

std::size_t alternative_of(dns::Type type) noexcept {
  switch (type) {
    case dns::Type::a:
      return index_of<dns::A>;
    case dns::Type::aaaa:
      return index_of<dns::Aaaa>;
    case dns::Type::cname:
      return index_of<dns::Cname>;
    case dns::Type::ptr:
      return index_of<dns::Ptr>;
    case dns::Type::ns:
      return index_of<dns::Ns>;
    case dns::Type::soa:
      return index_of<dns::Soa>;
    case dns::Type::mx:
      return index_of<dns::Mx>;
    case dns::Type::txt:
      return index_of<dns::Txt>;
    case dns::Type::srv:
      return index_of<dns::Srv>;
    case dns::Type::naptr:
      return index_of<dns::Naptr>;
    case dns::Type::caa:
      return index_of<dns::Caa>;
    case dns::Type::tlsa:
      return index_of<dns::Tlsa>;
    case dns::Type::svcb:
    case dns::Type::https:
      return index_of<dns::Svcb>;
    default:
      return index_of<dns::UnknownData>;
  }
}

/// Writes the data of each type; false if it exceeds a limit.
struct Write {
  Writer& writer;

  bool operator()(const dns::UnknownData& data) const {
    writer.text(data.data);
    return data.data.size() <= UINT16_MAX;
  }
  bool operator()(const dns::A& data) const { return address(data.address); }
  bool operator()(const dns::Aaaa& data) const { return address(data.address); }
  // RFC 3597, section 4: only the types of RFC 1035 may have compressed names.
  bool operator()(const dns::Cname& data) const { return compressed(data.target); }
  bool operator()(const dns::Ptr& data) const { return compressed(data.target); }
  bool operator()(const dns::Ns& data) const { return compressed(data.server); }
  bool operator()(const dns::Soa& data) const {
    compressed(data.server);
    compressed(data.mailbox);
    for (const std::uint32_t value :
         {data.serial, data.refresh, data.retry, data.expire, data.minimum})
      writer.u32(value);
    return true;
  }
  bool operator()(const dns::Mx& data) const {
    writer.u16(data.preference);
    return compressed(data.exchange);
  }
  bool operator()(const dns::Txt& data) const {
    for (const std::string& string_entry : data.strings) {
      if (!string(string_entry)) return false;
    }
    return !data.strings.empty();
  }
  bool operator()(const dns::Srv& data) const {
    writer.u16(data.priority);
    writer.u16(data.weight);
    writer.u16(data.port);
    writer.name(data.target.wire());
    return true;
  }
  bool operator()(const dns::Naptr& data) const {
    writer.u16(data.order);
    writer.u16(data.preference);
    if (!string(data.flags) || !string(data.services) || !string(data.regexp)) return false;
    writer.name(data.replacement.wire());
    return true;
  }
  bool operator()(const dns::Caa& data) const {
    if (!is_tag(data.tag)) return false;
    writer.u8(data.flags);
    writer.counted_text(data.tag);
    writer.text(data.value);
    return true;
  }
  bool operator()(const dns::Tlsa& data) const {
    writer.u8(data.usage);
    writer.u8(data.selector);
    writer.u8(data.matching);
    writer.text(data.data);
    return true;
  }
  bool operator()(const dns::Svcb& data) const {
    if (!are_params(data.params)) return false;
    writer.u16(data.priority);
    writer.name(data.target.wire());
    for (const dns::SvcParam& param : data.params) {
      writer.u16(param.key);
      writer.u16(static_cast<std::uint16_t>(param.value.size()));
      writer.text(param.value);
    }
    return true;
  }

 private:
  template <class Address>
  bool address(const Address& bytes) const {
    for (const std::uint8_t byte : bytes) writer.u8(byte);
    return true;
  }
  bool compressed(const dns::Name& name) const {
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

dns::Data read_data(Reader& reader, const RecordHead& head, bool may_be_empty) {
  const std::size_t former_end = reader.enter(head.size);
  dns::Data data;
  if (reader.has_failed()) return data;
  const bool is_opaque = head.record_class != dns::Class::in && is_of_internet_only(head.type);
  if (is_opaque || (may_be_empty && head.size == 0)) {
    data = dns::UnknownData{std::string(reader.rest())};
  } else {
    data = read_typed(reader, head.type);
  }
  reader.leave(former_end);
  return data;
}

dns::ErrorCode write_data(Writer& writer, const dns::Record& record) {
  const auto* const opaque = record.as<dns::UnknownData>();
  const bool is_typed = record.data.index() == alternative_of(record.type);
  const bool is_of_other_class =
      record.record_class != dns::Class::in && is_of_internet_only(record.type);
  const bool fits = opaque != nullptr ? is_typed || is_of_other_class || opaque->data.empty()
                                      : is_typed && !is_of_other_class;
  return fits && std::visit(Write{writer}, record.data) ? no_error : dns::ErrorCode::bad_record;
}

}  // namespace tambour::dns::detail
