// Socket addresses: an IPv4 or IPv6 address with a port, or a Unix-domain name.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/net/ip_address.h>

#pragma GCC visibility push(default)

namespace tambour {

/// A socket address (socket(7), ip(7), ipv6(7), unix(7)) as a value type.
class Endpoint {
 public:
  /// The IPv4 wildcard address with port 0: 0.0.0.0:0.
  Endpoint() noexcept;
  Endpoint(const IpAddress& address, std::uint16_t port) noexcept;

  /// Parses the output of to_string() and the usual notations:
  ///
  ///   127.0.0.1:80   [::1]:80   [fe80::1%eth0]:80   [fe80::1%2]:80   *:80   :80
  ///   unix:/run/server.sock   unix:@abstract
  ///
  /// `*` and an empty address mean every address of the machine: IPv6 and, if the system's
  /// bindv6only setting allows it, IPv4. Host names are not resolved. Fails with EINVAL if the text
  /// has another form, with ERANGE if the port exceeds 65535, with ENODEV if the machine has no
  /// interface with the zone's name, and with ENAMETOOLONG if a Unix name has more than 107 bytes
  /// (abstract: 107 without the @).
  [[nodiscard]] static Result<Endpoint> parse(std::string_view text);

  /// Parses an address without a port, like IpAddress::parse(): "127.0.0.1", "::1", "fe80::1%eth0".
  [[nodiscard]] static Result<Endpoint> parse(std::string_view address, std::uint16_t port);

  /// A path, or an abstract name if it begins with '@' (or with a null byte, the kernel's
  /// notation).
  [[nodiscard]] static Result<Endpoint> unix_name(std::string_view name);

  /// All addresses of this machine, for listening, or its loopback address. Port 0 lets the system
  /// choose one.
  static Endpoint any_v4(std::uint16_t port) noexcept;
  static Endpoint any_v6(std::uint16_t port) noexcept;
  static Endpoint loopback_v4(std::uint16_t port) noexcept;
  static Endpoint loopback_v6(std::uint16_t port) noexcept;

  /// Converts the result of getsockname(2), accept(2) and similar calls. Fails with EAFNOSUPPORT
  /// for other address families, and with EINVAL if `size` is too small for the family or larger
  /// than any of its addresses.
  [[nodiscard]] static Result<Endpoint> from(const sockaddr* address, socklen_t size) noexcept;

  /// AF_INET, AF_INET6 or AF_UNIX.
  [[nodiscard]] int family() const noexcept { return storage_.any.sa_family; }
  [[nodiscard]] bool is_ip() const noexcept { return family() != AF_UNIX; }

  /// Empty for Unix names.
  [[nodiscard]] std::optional<IpAddress> ip_address() const noexcept;

  /// 0 for Unix names.
  [[nodiscard]] std::uint16_t port() const noexcept;
  /// The same address with another port. No effect on Unix names.
  [[nodiscard]] Endpoint with_port(std::uint16_t port) const noexcept;

  /// The address without the port: "127.0.0.1", "fe80::1%eth0", "/run/server.sock", "@abstract";
  /// empty for a Unix socket without a name.
  [[nodiscard]] std::string address() const;
  /// The notation that parse() accepts. The bytes of Unix names are not escaped.
  [[nodiscard]] std::string to_string() const;

  /// For system calls.
  [[nodiscard]] const sockaddr* data() const noexcept { return &storage_.any; }
  [[nodiscard]] socklen_t size() const noexcept { return size_; }

  bool operator==(const Endpoint& other) const noexcept;

 private:
  [[nodiscard]] std::string_view unix_bytes() const noexcept;

  union Storage {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
    sockaddr_un local;
  } storage_;
  socklen_t size_;
};

}  // namespace tambour

#pragma GCC visibility pop
