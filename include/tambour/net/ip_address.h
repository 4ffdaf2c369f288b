// IP addresses and networks, without ports: net/netip of Go, asio's ip::address.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <tambour/base/result.h>

#pragma GCC visibility push(default)

namespace tambour {

/// IPv4, IPv6, or either of them for lookups: an address is of one family.
enum class AddressFamily : std::uint8_t { any, v4, v6 };

/// An IPv4 or IPv6 address as a value type, the latter with a zone (RFC 4007). Host names are not
/// addresses. IPv4 addresses that are mapped to IPv6 (::ffff:192.0.2.1), which sockets for both
/// families report for IPv4 peers, are other addresses than the IPv4 addresses: see unmapped().
class IpAddress {
 public:
  /// The bytes of an address in network byte order.
  using V4Bytes = std::array<std::uint8_t, 4>;
  using V6Bytes = std::array<std::uint8_t, 16>;

  /// 0.0.0.0.
  constexpr IpAddress() noexcept = default;
  /// The bytes are in network byte order, the order in which they are written.
  constexpr explicit IpAddress(const V4Bytes& bytes) noexcept
      : bytes_{bytes[0], bytes[1], bytes[2], bytes[3]} {}
  /// `zone` is the index of the network interface to which a link-local address belongs; 0: none.
  constexpr explicit IpAddress(const V6Bytes& bytes, std::uint32_t zone = 0) noexcept
      : bytes_(bytes), zone_(zone), family_(AddressFamily::v6) {}

  /// Parses "192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1" (RFC 4291, section 2.2), and a zone by
  /// name or index: "fe80::1%eth0", "fe80::1%2". Numbers of IPv4 addresses are decimal, without
  /// leading zeros. Fails with EINVAL if the text has another form, and with ENODEV if the machine
  /// has no interface with the name of the zone.
  [[nodiscard]] static Result<IpAddress> parse(std::string_view text) noexcept;

  /// Makes an address of its bytes in network byte order. Fails with EINVAL unless there are 4 or
  /// 16.
  [[nodiscard]] static Result<IpAddress> from_bytes(std::span<const std::uint8_t> bytes) noexcept;

  /// 0.0.0.0 and ::, for listening on all addresses; 127.0.0.1 and ::1.
  static constexpr IpAddress any_v4() noexcept { return {}; }
  static constexpr IpAddress any_v6() noexcept { return IpAddress(V6Bytes{}); }
  static constexpr IpAddress loopback_v4() noexcept { return IpAddress(V4Bytes{127, 0, 0, 1}); }
  static constexpr IpAddress loopback_v6() noexcept {
    return IpAddress(V6Bytes{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  }

  /// v4 or v6.
  [[nodiscard]] constexpr AddressFamily family() const noexcept { return family_; }
  [[nodiscard]] constexpr bool is_v4() const noexcept { return family_ == AddressFamily::v4; }
  [[nodiscard]] constexpr bool is_v6() const noexcept { return family_ == AddressFamily::v6; }

  /// 4 or 16 bytes in network byte order, which belong to this object.
  [[nodiscard]] constexpr std::span<const std::uint8_t> bytes() const noexcept {
    return std::span(bytes_).first(is_v4() ? 4 : 16);
  }
  /// The 16 bytes of an IPv6 address; of an IPv4 address, those of the mapped one.
  [[nodiscard]] V6Bytes mapped_bytes() const noexcept;

  /// 0: none.
  [[nodiscard]] constexpr std::uint32_t zone() const noexcept { return zone_; }
  [[nodiscard]] constexpr IpAddress without_zone() const noexcept {
    IpAddress address = *this;
    address.zone_ = 0;
    return address;
  }

  /// ::ffff:0:0/96.
  [[nodiscard]] bool is_v4_mapped() const noexcept;
  /// The IPv4 address that is mapped to this one, or this one.
  [[nodiscard]] IpAddress unmapped() const noexcept;

  // The properties of a mapped address are those of the IPv4 address.
  [[nodiscard]] bool is_unspecified() const noexcept;  ///< 0.0.0.0 and ::.
  [[nodiscard]] bool is_loopback() const noexcept;     ///< 127.0.0.0/8 and ::1.
  [[nodiscard]] bool is_multicast() const noexcept;    ///< 224.0.0.0/4 and ff00::/8.
  [[nodiscard]] bool is_link_local() const noexcept;   ///< 169.254.0.0/16 and fe80::/10.
  /// Addresses of private networks: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 (RFC 1918) and
  /// fc00::/7 (RFC 4193).
  [[nodiscard]] bool is_private() const noexcept;

  /// The recommended notation (RFC 5952), with the name of the zone if it has one.
  [[nodiscard]] std::string to_string() const;

  /// IPv4 addresses are less than IPv6 addresses.
  constexpr std::strong_ordering operator<=>(const IpAddress& other) const noexcept {
    if (family_ != other.family_) return family_ <=> other.family_;
    if (const auto order = bytes_ <=> other.bytes_; order != 0) return order;
    return zone_ <=> other.zone_;
  }
  constexpr bool operator==(const IpAddress& other) const noexcept = default;

 private:
  V6Bytes bytes_{};  ///< An IPv4 address is the first four, and the others are zero.
  std::uint32_t zone_ = 0;
  AddressFamily family_ = AddressFamily::v4;
};

/// The addresses that begin with the same bits: CIDR notation, RFC 4632.
class IpNetwork {
 public:
  /// 0.0.0.0/0: all IPv4 addresses.
  constexpr IpNetwork() noexcept = default;

  /// Parses "10.0.0.0/8", "2001:db8::/32", or one address. Bits behind the prefix are ignored:
  /// "10.1.2.3/8" is 10.0.0.0/8. A mapped network of at least 96 bits is that of IPv4. Fails with
  /// EINVAL if the text has another form or a zone, and with ERANGE if the prefix is longer than
  /// the address.
  [[nodiscard]] static Result<IpNetwork> parse(std::string_view text) noexcept;
  /// Fails with ERANGE if the prefix is longer than the address. The zone is ignored.
  [[nodiscard]] static Result<IpNetwork> make(const IpAddress& address,
                                              unsigned prefix_bits) noexcept;

  /// The first address.
  [[nodiscard]] constexpr const IpAddress& address() const noexcept { return address_; }
  [[nodiscard]] constexpr unsigned prefix_bits() const noexcept { return prefix_bits_; }

  /// A mapped address counts as the IPv4 address, so that the result does not depend on the kind of
  /// socket that has reported it: 0.0.0.0/0 contains it, and ::/0 does not. The zone is ignored.
  [[nodiscard]] bool contains(const IpAddress& address) const noexcept;

  /// "10.0.0.0/8".
  [[nodiscard]] std::string to_string() const;

  constexpr bool operator==(const IpNetwork& other) const noexcept = default;

 private:
  IpAddress address_;
  unsigned prefix_bits_ = 0;
};

}  // namespace tambour

template <>
struct std::hash<tambour::IpAddress> {
  std::size_t operator()(const tambour::IpAddress& address) const noexcept;
};

#pragma GCC visibility pop
