// Resource records with typed data: RFC 1035 and the RFCs named below.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/dns/name.h>

#pragma GCC visibility push(default)

namespace tambour::dns {

/// Types of records. A value that is not listed is valid: `dns::Type(65280)`.
enum class Type : std::uint16_t {
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
  opt = 41,  ///< Not a record: see dns::Message::edns.
  tlsa = 52,
  svcb = 64,
  https = 65,
  ixfr = 251,  ///< Only in questions, as the next two.
  axfr = 252,
  any = 255,
  caa = 257,
};

/// The name of a type: "AAAA", or "TYPE65280" for a type without a name (RFC 3597).
[[nodiscard]] std::string to_string(Type type);
/// The type with this name, without regard to case. Fails with EINVAL.
[[nodiscard]] Result<Type> parse_type(std::string_view text);

/// The class of a record: RFC 1035, section 3.2.4. Programs need `in` only.
enum class Class : std::uint16_t { in = 1, chaos = 3, none = 254, any = 255 };

/// An IPv4 address in network byte order: RFC 1035, section 3.4.1.
struct A {
  std::array<std::uint8_t, 4> address{};
  bool operator==(const A&) const = default;
};
/// An IPv6 address in network byte order: RFC 3596.
struct Aaaa {
  std::array<std::uint8_t, 16> address{};
  bool operator==(const Aaaa&) const = default;
};
/// The name that this name is an alias of: RFC 1035, section 3.3.1.
struct Cname {
  Name target;
  bool operator==(const Cname&) const = default;
};
/// Another name, for example the host of an address: RFC 1035, section 3.3.12.
struct Ptr {
  Name target;
  bool operator==(const Ptr&) const = default;
};
/// A server of the zone: RFC 1035, section 3.3.11.
struct Ns {
  Name server;
  bool operator==(const Ns&) const = default;
};
/// The start of a zone, whose times are in seconds: RFC 1035, section 3.3.13.
struct Soa {
  Name server;   ///< MNAME: the primary server.
  Name mailbox;  ///< RNAME.
  std::uint32_t serial = 0;
  // In seconds.
  std::uint32_t refresh = 0;
  std::uint32_t retry = 0;
  std::uint32_t expire = 0;
  std::uint32_t minimum = 0;  ///< The time to live of negative answers: RFC 2308.
  bool operator==(const Soa&) const = default;
};
/// A server for the mail of a domain: RFC 1035, section 3.3.9. The lowest preference comes first.
struct Mx {
  std::uint16_t preference = 0;
  Name exchange;
  bool operator==(const Mx&) const = default;
};
/// At least one string, each of at most 255 bytes.
struct Txt {
  std::vector<std::string> strings;
  bool operator==(const Txt&) const = default;
};
/// A server of a service: RFC 2782.
struct Srv {
  std::uint16_t priority = 0;
  std::uint16_t weight = 0;
  std::uint16_t port = 0;
  Name target;
  bool operator==(const Srv&) const = default;
};
/// A rule that rewrites a name: RFC 3403. The strings have at most 255 bytes each.
struct Naptr {
  std::uint16_t order = 0;
  std::uint16_t preference = 0;
  std::string flags;
  std::string services;
  std::string regexp;
  Name replacement;
  bool operator==(const Naptr&) const = default;
};
/// Which authorities may issue certificates for a domain: RFC 8659. The tag has 1 to 255 bytes.
struct Caa {
  std::uint8_t flags = 0;
  std::string tag;
  std::string value;
  bool operator==(const Caa&) const = default;
};
/// A certificate or key of a TLS server: RFC 6698.
struct Tlsa {
  std::uint8_t usage = 0;
  std::uint8_t selector = 0;
  std::uint8_t matching = 0;
  std::string data;
  bool operator==(const Tlsa&) const = default;
};
/// A parameter of a service; the value is as in the message: RFC 9460, section 14.3.2.
struct SvcParam {
  /// The registered keys: RFC 9460, section 14.3.2.
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
  bool operator==(const SvcParam&) const = default;
};
/// SVCB and HTTPS: RFC 9460. Priority 0 (AliasMode): use `target` instead. The parameters are
/// sorted by their keys, which differ.
struct Svcb {
  std::uint16_t priority = 0;
  Name target;
  std::vector<SvcParam> params;
  bool operator==(const Svcb&) const = default;

  /// The values of "alpn"; empty if there are none or they are malformed.
  [[nodiscard]] std::vector<std::string> alpn() const;
  /// The value of "port", or 0.
  [[nodiscard]] std::uint16_t port() const noexcept;
};
/// The data of a type that this library does not know: RFC 3597.
struct UnknownData {
  std::string data;
  bool operator==(const UnknownData&) const = default;
};

/// The data of a record. The alternative follows from dns::Record::type; dns::Svcb for both SVCB
/// and HTTPS. Records of classes other than IN, and records without data in dynamic updates, have
/// dns::UnknownData.
using Data =
    std::variant<UnknownData, A, Aaaa, Cname, Ptr, Ns, Soa, Mx, Txt, Srv, Naptr, Caa, Tlsa, Svcb>;

/// A resource record: RFC 1035, section 3.2.1.
struct Record {
  Name name;
  Type type = Type::a;
  Class record_class = Class::in;
  std::uint32_t ttl = 0;  ///< In seconds; below 2^31 (RFC 2181, section 8).
  Data data;
  bool operator==(const Record&) const = default;

  /// The data if it is a T, otherwise null.
  template <class T>
  [[nodiscard]] const T* as() const noexcept {
    return std::get_if<T>(&data);
  }

  /// One line of a zone file: "example.org. 300 IN MX 10 mail.example.org.". Data without a
  /// presentation format here is written as in RFC 3597: "\# 2 0a0b".
  [[nodiscard]] std::string to_string() const;
};

}  // namespace tambour::dns

#pragma GCC visibility pop
