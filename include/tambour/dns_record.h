// Resource records with typed data: RFC 1035 and the RFCs named below.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tambour/dns_name.h>
#include <tambour/result.h>

#pragma GCC visibility push(default)

namespace tambour {

/// Types of records. A value that is not listed is valid: `DnsType(65280)`.
enum class DnsType : std::uint16_t {
  a = 1,
  ns = 2,
  cname = 5,
  soa = 6,
  ptr = 12,
  mx = 15,
  txt = 16,
  aaaa = 28,
  srv = 33,
  naptr = 35,
  opt = 41,  ///< Not a record: see DnsMessage::edns.
  tlsa = 52,
  svcb = 64,
  https = 65,
  ixfr = 251,  ///< Only in questions, as the next two.
  axfr = 252,
  any = 255,
  caa = 257,
};

/// "AAAA", or "TYPE65280" for a type without a name (RFC 3597).
[[nodiscard]] std::string to_string(DnsType type);
/// The inverse, without regard to case. Fails with EINVAL.
[[nodiscard]] Result<DnsType> parse_dns_type(std::string_view text);

enum class DnsClass : std::uint16_t { in = 1, chaos = 3, none = 254, any = 255 };

struct DnsA {
  std::array<std::uint8_t, 4> address{};
  bool operator==(const DnsA&) const = default;
};
struct DnsAaaa {
  std::array<std::uint8_t, 16> address{};
  bool operator==(const DnsAaaa&) const = default;
};
struct DnsCname {
  DnsName target;
  bool operator==(const DnsCname&) const = default;
};
struct DnsPtr {
  DnsName target;
  bool operator==(const DnsPtr&) const = default;
};
struct DnsNs {
  DnsName server;
  bool operator==(const DnsNs&) const = default;
};
struct DnsSoa {
  DnsName server;   ///< MNAME: the primary server.
  DnsName mailbox;  ///< RNAME.
  std::uint32_t serial = 0;
  // In seconds.
  std::uint32_t refresh = 0;
  std::uint32_t retry = 0;
  std::uint32_t expire = 0;
  std::uint32_t minimum = 0;  ///< The time to live of negative answers: RFC 2308.
  bool operator==(const DnsSoa&) const = default;
};
struct DnsMx {
  std::uint16_t preference = 0;
  DnsName exchange;
  bool operator==(const DnsMx&) const = default;
};
/// At least one string, each of at most 255 bytes.
struct DnsTxt {
  std::vector<std::string> strings;
  bool operator==(const DnsTxt&) const = default;
};
/// RFC 2782.
struct DnsSrv {
  std::uint16_t priority = 0;
  std::uint16_t weight = 0;
  std::uint16_t port = 0;
  DnsName target;
  bool operator==(const DnsSrv&) const = default;
};
/// RFC 3403. The strings have at most 255 bytes each.
struct DnsNaptr {
  std::uint16_t order = 0;
  std::uint16_t preference = 0;
  std::string flags;
  std::string services;
  std::string regexp;
  DnsName replacement;
  bool operator==(const DnsNaptr&) const = default;
};
/// RFC 8659. The tag has 1 to 255 bytes.
struct DnsCaa {
  std::uint8_t flags = 0;
  std::string tag;
  std::string value;
  bool operator==(const DnsCaa&) const = default;
};
/// RFC 6698.
struct DnsTlsa {
  std::uint8_t usage = 0;
  std::uint8_t selector = 0;
  std::uint8_t matching = 0;
  std::string data;
  bool operator==(const DnsTlsa&) const = default;
};
/// A parameter of a service; the value is as in the message: RFC 9460, section 14.3.2.
struct DnsSvcParam {
  enum Key : std::uint16_t {
    mandatory = 0,
    alpn = 1,
    no_default_alpn = 2,
    port = 3,
    ipv4hint = 4,
    ech = 5,
    ipv6hint = 6,
  };
  std::uint16_t key = 0;
  std::string value;
  bool operator==(const DnsSvcParam&) const = default;
};
/// SVCB and HTTPS: RFC 9460. Priority 0 (AliasMode): use `target` instead. The parameters are
/// sorted by their keys, which differ.
struct DnsSvcb {
  std::uint16_t priority = 0;
  DnsName target;
  std::vector<DnsSvcParam> params;
  bool operator==(const DnsSvcb&) const = default;

  /// The values of "alpn"; empty if there are none or they are malformed.
  [[nodiscard]] std::vector<std::string> alpn() const;
  /// The value of "port", or 0.
  [[nodiscard]] std::uint16_t port() const noexcept;
};
/// The data of a type that this library does not know: RFC 3597.
struct DnsUnknown {
  std::string data;
  bool operator==(const DnsUnknown&) const = default;
};

/// The alternative follows from DnsRecord::type; DnsSvcb for both SVCB and HTTPS. Records of
/// classes other than IN, and records without data in dynamic updates, have DnsUnknown.
using DnsData = std::variant<DnsUnknown, DnsA, DnsAaaa, DnsCname, DnsPtr, DnsNs, DnsSoa, DnsMx,
                             DnsTxt, DnsSrv, DnsNaptr, DnsCaa, DnsTlsa, DnsSvcb>;

struct DnsRecord {
  DnsName name;
  DnsType type = DnsType::a;
  DnsClass record_class = DnsClass::in;
  std::uint32_t ttl = 0;  ///< In seconds; below 2^31 (RFC 2181, section 8).
  DnsData data;
  bool operator==(const DnsRecord&) const = default;

  /// The data if it is a T, otherwise null.
  template <class T>
  [[nodiscard]] const T* as() const noexcept {
    return std::get_if<T>(&data);
  }

  /// One line of a zone file: "example.org. 300 IN MX 10 mail.example.org.". Data without a
  /// presentation format here is written as in RFC 3597: "\# 2 0a0b".
  [[nodiscard]] std::string to_string() const;
};

}  // namespace tambour

#pragma GCC visibility pop
