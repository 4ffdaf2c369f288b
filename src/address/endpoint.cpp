// Endpoint: parsing, formatting and comparing socket addresses, and their conversion from and to
// sockaddr.
#include <tambour/net/endpoint.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/failure.h"
#include "base/parse_number.h"

namespace tambour {
namespace {

constexpr std::string_view unix_scheme = "unix:";
constexpr std::size_t unix_header = offsetof(sockaddr_un, sun_path);
// A path ends with a null byte; an abstract name begins with one. Either takes one byte.
constexpr std::size_t unix_name_max = sizeof(sockaddr_un::sun_path) - 1;

bool has_null(std::string_view text) { return text.find('\0') != std::string_view::npos; }

}  // namespace

Endpoint::Endpoint() noexcept : storage_{}, size_(sizeof(sockaddr_in)) {
  storage_.v4.sin_family = AF_INET;
}

Endpoint::Endpoint(const IpAddress& address, std::uint16_t port) noexcept : Endpoint() {
  if (address.is_v4()) {
    std::memcpy(&storage_.v4.sin_addr, address.bytes().data(), sizeof(in_addr));
    storage_.v4.sin_port = htons(port);
    return;
  }
  storage_.v6 = {};
  storage_.v6.sin6_family = AF_INET6;
  storage_.v6.sin6_port = htons(port);
  storage_.v6.sin6_scope_id = address.zone();
  std::memcpy(&storage_.v6.sin6_addr, address.bytes().data(), sizeof(in6_addr));
  size_ = sizeof(sockaddr_in6);
}

Result<Endpoint> Endpoint::parse(std::string_view text) {
  if (text.starts_with(unix_scheme)) return unix_name(text.substr(unix_scheme.size()));

  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return detail::base::failure(EINVAL);
  const auto port = detail::base::parse_number<std::uint16_t>(text.substr(colon + 1));
  if (!port) return std::unexpected(port.error());

  std::string_view host = text.substr(0, colon);
  if (host.empty() || host == "*") return any_v6(*port);
  const bool in_brackets = host.starts_with('[') && host.ends_with(']');
  if (in_brackets) host = host.substr(1, host.size() - 2);
  auto endpoint = parse(host, *port);
  // "::1:80" would be ambiguous: IPv6 addresses must be in brackets, and no others may be.
  if (endpoint && (endpoint->family() == AF_INET6) != in_brackets)
    return detail::base::failure(EINVAL);
  return endpoint;
}

Result<Endpoint> Endpoint::parse(std::string_view address, std::uint16_t port) {
  const auto parsed = IpAddress::parse(address);
  if (!parsed) return std::unexpected(parsed.error());
  return Endpoint(*parsed, port);
}

Result<Endpoint> Endpoint::unix_name(std::string_view name) {
  if (name.empty()) return detail::base::failure(EINVAL);
  const bool is_abstract = name.front() == '@' || name.front() == '\0';
  if (is_abstract) name.remove_prefix(1);
  // A path ends at its first null byte: the kernel would silently ignore the rest.
  if (!is_abstract && has_null(name)) return detail::base::failure(EINVAL);
  if (name.size() > unix_name_max) return detail::base::failure(ENAMETOOLONG);
  Endpoint endpoint;
  endpoint.storage_.local = {};
  endpoint.storage_.local.sun_family = AF_UNIX;
  name.copy(endpoint.storage_.local.sun_path + (is_abstract ? 1 : 0), name.size());
  endpoint.size_ = static_cast<socklen_t>(unix_header + name.size() + 1);
  return endpoint;
}

Endpoint Endpoint::any_v4(std::uint16_t port) noexcept { return {IpAddress::any_v4(), port}; }
Endpoint Endpoint::any_v6(std::uint16_t port) noexcept { return {IpAddress::any_v6(), port}; }
Endpoint Endpoint::loopback_v4(std::uint16_t port) noexcept {
  return {IpAddress::loopback_v4(), port};
}
Endpoint Endpoint::loopback_v6(std::uint16_t port) noexcept {
  return {IpAddress::loopback_v6(), port};
}

Result<Endpoint> Endpoint::from(const sockaddr* address, socklen_t size) noexcept {
  if (address == nullptr || size < sizeof(sa_family_t)) return detail::base::failure(EINVAL);
  sa_family_t family;
  std::memcpy(&family, address, sizeof(family));
  std::size_t size_min = 0;
  std::size_t size_max = 0;
  switch (family) {
    case AF_INET:
      size_min = size_max = sizeof(sockaddr_in);
      break;
    case AF_INET6:
      size_min = size_max = sizeof(sockaddr_in6);
      break;
    case AF_UNIX:
      size_min = unix_header, size_max = sizeof(sockaddr_un);
      break;
    default:
      return detail::base::failure(EAFNOSUPPORT);
  }
  // For a path that fills sun_path, the kernel may report one byte more than sockaddr_un has.
  if (family == AF_UNIX && size == size_max + 1) --size;
  if (size < size_min || size > size_max) return detail::base::failure(EINVAL);
  Endpoint endpoint;
  endpoint.storage_ = {};
  std::memcpy(&endpoint.storage_, address, size);
  endpoint.size_ = size;
  return endpoint;
}

std::optional<IpAddress> Endpoint::ip_address() const noexcept {
  switch (family()) {
    case AF_INET:
      return IpAddress(std::bit_cast<IpAddress::V4Bytes>(storage_.v4.sin_addr));
    case AF_INET6:
      return IpAddress(std::bit_cast<IpAddress::V6Bytes>(storage_.v6.sin6_addr),
                       storage_.v6.sin6_scope_id);
    default:
      return std::nullopt;
  }
}

std::uint16_t Endpoint::port() const noexcept {
  switch (family()) {
    case AF_INET:
      return ntohs(storage_.v4.sin_port);
    case AF_INET6:
      return ntohs(storage_.v6.sin6_port);
    default:
      return 0;
  }
}

Endpoint Endpoint::with_port(std::uint16_t port) const noexcept {
  Endpoint changed = *this;
  if (family() == AF_INET) changed.storage_.v4.sin_port = htons(port);
  if (family() == AF_INET6) changed.storage_.v6.sin6_port = htons(port);
  return changed;
}

std::string_view Endpoint::unix_bytes() const noexcept {
  const std::string_view bytes(storage_.local.sun_path, size_ - unix_header);
  // The size may or may not include the terminator of a path. It always includes the first byte of
  // an abstract name.
  if (bytes.empty() || bytes.front() == '\0') return bytes;
  return bytes.substr(0, bytes.find('\0'));
}

std::string Endpoint::address() const {
  if (family() == AF_UNIX) {
    std::string name(unix_bytes());
    if (!name.empty() && name.front() == '\0') name.front() = '@';
    return name;
  }
  return ip_address()->to_string();
}

std::string Endpoint::to_string() const {
  if (family() == AF_UNIX) return std::string(unix_scheme) + address();
  const std::string host = family() == AF_INET6 ? '[' + address() + ']' : address();
  return host + ':' + std::to_string(port());
}

bool Endpoint::operator==(const Endpoint& other) const noexcept {
  if (family() != other.family()) return false;
  switch (family()) {
    case AF_INET:
      return storage_.v4.sin_port == other.storage_.v4.sin_port &&
             storage_.v4.sin_addr.s_addr == other.storage_.v4.sin_addr.s_addr;
    case AF_INET6:
      return storage_.v6.sin6_port == other.storage_.v6.sin6_port &&
             storage_.v6.sin6_scope_id == other.storage_.v6.sin6_scope_id &&
             std::memcmp(&storage_.v6.sin6_addr, &other.storage_.v6.sin6_addr, sizeof(in6_addr)) ==
                 0;
    default:
      return unix_bytes() == other.unix_bytes();
  }
}

}  // namespace tambour
