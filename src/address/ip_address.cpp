// IpAddress and IpNetwork. The library parses and formats IP literals here only.
#include <tambour/net/ip_address.h>

#include <arpa/inet.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "address/ip_literal.h"
#include "base/failure.h"
#include "base/parse_number.h"

namespace tambour {
namespace {

constexpr std::array<std::uint8_t, 12> mapped_prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr unsigned mapped_prefix_bits = 96;

/// A text for functions of C.
template <std::size_t size>
class Terminated {
 public:
  /// Returns false if the text is too long for any value, or contains a null byte.
  [[nodiscard]] bool assign(std::string_view text) noexcept {
    if (text.size() >= size || text.find('\0') != std::string_view::npos) return false;
    text.copy(bytes_.data(), text.size());
    bytes_[text.size()] = '\0';
    return true;
  }
  [[nodiscard]] const char* c_str() const noexcept { return bytes_.data(); }

 private:
  std::array<char, size> bytes_;
};

Result<std::uint32_t> parse_zone(std::string_view zone) noexcept {
  if (zone.empty() || zone.find('\0') != std::string_view::npos)
    return detail::base::failure(EINVAL);
  if (const auto number = detail::base::parse_number<std::uint32_t>(zone)) return *number;
  Terminated<IF_NAMESIZE> name;
  const unsigned index = name.assign(zone) ? ::if_nametoindex(name.c_str()) : 0;
  if (index == 0) return detail::base::failure(ENODEV);
  return index;
}

/// Without a zone.
Result<IpAddress> parse_plain(std::string_view text) noexcept {
  Terminated<INET6_ADDRSTRLEN> plain;
  if (!plain.assign(text)) return detail::base::failure(EINVAL);
  if (!text.contains(':')) {
    IpAddress::V4Bytes v4;
    if (::inet_pton(AF_INET, plain.c_str(), v4.data()) == 1) return IpAddress(v4);
    return detail::base::failure(EINVAL);
  }
  IpAddress::V6Bytes v6;
  if (::inet_pton(AF_INET6, plain.c_str(), v6.data()) == 1) return IpAddress(v6);
  return detail::base::failure(EINVAL);
}

/// Whether the first `bits` bits are the same.
bool have_same_prefix(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b,
                      unsigned bits) noexcept {
  const std::size_t whole = bits / 8;
  if (!std::ranges::equal(a.first(whole), b.first(whole))) return false;
  const unsigned rest = bits % 8;
  return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

}  // namespace

Result<IpAddress> IpAddress::parse(std::string_view text) noexcept {
  const std::size_t percent = text.find('%');
  auto address = parse_plain(text.substr(0, percent));
  if (!address || percent == std::string_view::npos) return address;
  if (address->is_v4()) return detail::base::failure(EINVAL);
  const auto zone = parse_zone(text.substr(percent + 1));
  if (!zone) return std::unexpected(zone.error());
  address->zone_ = *zone;
  return address;
}

Result<IpAddress> IpAddress::from_bytes(std::span<const std::uint8_t> bytes) noexcept {
  IpAddress address;
  if (bytes.size() == sizeof(V6Bytes)) {
    address.family_ = AddressFamily::v6;
  } else if (bytes.size() != sizeof(V4Bytes)) {
    return detail::base::failure(EINVAL);
  }
  std::ranges::copy(bytes, address.bytes_.begin());
  return address;
}

std::optional<IpAddress> parse_ignoring_zone(std::string_view text) noexcept {
  const std::size_t percent = text.find('%');
  const auto address = parse_plain(text.substr(0, percent));
  if (!address || (address->is_v4() && percent != std::string_view::npos)) return std::nullopt;
  return *address;
}

IpAddress::V6Bytes IpAddress::mapped_bytes() const noexcept {
  if (is_v6()) return bytes_;
  V6Bytes mapped{};
  std::ranges::copy(mapped_prefix, mapped.begin());
  std::ranges::copy(bytes(), mapped.begin() + mapped_prefix.size());
  return mapped;
}

bool IpAddress::is_v4_mapped() const noexcept {
  return is_v6() && std::ranges::equal(bytes().first(mapped_prefix.size()), mapped_prefix);
}

IpAddress IpAddress::unmapped() const noexcept {
  if (!is_v4_mapped()) return *this;
  return IpAddress(V4Bytes{bytes_[12], bytes_[13], bytes_[14], bytes_[15]});
}

bool IpAddress::is_unspecified() const noexcept {
  return std::ranges::all_of(unmapped().bytes_, [](std::uint8_t byte) { return byte == 0; });
}

bool IpAddress::is_loopback() const noexcept {
  const IpAddress address = unmapped();
  return address.is_v4() ? address.bytes_[0] == 127 : address.without_zone() == loopback_v6();
}

bool IpAddress::is_multicast() const noexcept {
  const IpAddress address = unmapped();
  return address.is_v4() ? address.bytes_[0] >> 4U == 14 : address.bytes_[0] == 0xff;
}

bool IpAddress::is_link_local() const noexcept {
  const IpAddress address = unmapped();
  const V6Bytes& bytes = address.bytes_;
  if (address.is_v4()) return bytes[0] == 169 && bytes[1] == 254;
  return bytes[0] == 0xfe && bytes[1] >> 6U == 2;
}

bool IpAddress::is_private() const noexcept {
  const IpAddress address = unmapped();
  const V6Bytes& bytes = address.bytes_;
  if (address.is_v6()) return bytes[0] >> 1U == 0xfc >> 1U;
  return bytes[0] == 10 || (bytes[0] == 172 && bytes[1] >> 4U == 1) ||
         (bytes[0] == 192 && bytes[1] == 168);
}

std::string IpAddress::to_string() const {
  std::array<char, INET6_ADDRSTRLEN> text;
  const int family = is_v4() ? AF_INET : AF_INET6;
  std::string address = ::inet_ntop(family, bytes_.data(), text.data(), text.size());
  if (zone_ != 0) {
    std::array<char, IF_NAMESIZE> name;
    address += '%';
    address +=
        ::if_indextoname(zone_, name.data()) != nullptr ? name.data() : std::to_string(zone_);
  }
  return address;
}

Result<IpNetwork> IpNetwork::parse(std::string_view text) noexcept {
  const std::size_t slash = text.find('/');
  const auto address = parse_plain(text.substr(0, slash));
  if (!address) return std::unexpected(address.error());
  unsigned bits = static_cast<unsigned>(address->bytes().size()) * 8;
  if (slash != std::string_view::npos) {
    const auto number = detail::base::parse_number<unsigned>(text.substr(slash + 1));
    if (!number) return std::unexpected(number.error());
    bits = *number;
  }
  return make(*address, bits);
}

Result<IpNetwork> IpNetwork::make(const IpAddress& address, unsigned prefix_bits) noexcept {
  if (prefix_bits > address.bytes().size() * 8) return detail::base::failure(ERANGE);
  if (address.is_v4_mapped() && prefix_bits >= mapped_prefix_bits)
    return make(address.unmapped(), prefix_bits - mapped_prefix_bits);
  IpAddress::V6Bytes bytes{};
  std::ranges::copy(address.bytes(), bytes.begin());
  for (unsigned bit = prefix_bits; bit < address.bytes().size() * 8; ++bit)
    bytes[bit / 8] &= static_cast<std::uint8_t>(~(0x80U >> bit % 8));
  IpNetwork network;
  network.prefix_bits_ = prefix_bits;
  network.address_ = address.is_v6()
                         ? IpAddress(bytes)
                         : IpAddress(IpAddress::V4Bytes{bytes[0], bytes[1], bytes[2], bytes[3]});
  return network;
}

bool IpNetwork::contains(const IpAddress& address) const noexcept {
  const IpAddress plain = address.unmapped();
  return plain.family() == address_.family() &&
         have_same_prefix(plain.bytes(), address_.bytes(), prefix_bits_);
}

std::string IpNetwork::to_string() const {
  return address_.to_string() + '/' + std::to_string(prefix_bits_);
}

}  // namespace tambour

std::size_t std::hash<tambour::IpAddress>::operator()(
    const tambour::IpAddress& address) const noexcept {
  const auto bytes = address.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return std::hash<std::string_view>()(text) ^ address.zone();
}
