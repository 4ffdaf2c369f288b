// Serializes PROXY protocol headers.
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <tambour/net/proxy_protocol.h>

#include "base/failure.h"
#include "framing/crc32c.h"
#include "framing/proxy_header.h"

namespace tambour {
namespace {

using detail::framing::ProxyFamily;
using detail::framing::ProxyTransport;

constexpr std::size_t block_bytes_max = 65535;

template <class Address>
Address address_of(const Endpoint& endpoint) noexcept {
  Address address{};
  std::memcpy(&address, endpoint.data(), std::min<std::size_t>(endpoint.size(), sizeof(address)));
  return address;
}

bool has_zone(const Endpoint& endpoint) noexcept {
  return endpoint.family() == AF_INET6 && address_of<sockaddr_in6>(endpoint).sin6_scope_id != 0;
}

/// Returns whether both addresses are set or neither, they are of one family, and the protocol can
/// represent them.
bool are_sound(const ProxyHeader& header) noexcept {
  if (header.source.has_value() != header.destination.has_value()) return false;
  if (!header.source) return true;
  return header.source->family() == header.destination->family() && !has_zone(*header.source) &&
         !has_zone(*header.destination);
}

void append_number(std::string& to, std::size_t number, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) to += char(number >> shift & 0xFF);
}

Result<> append_field(std::string& to, const ProxyField& field) {
  if (field.value.size() > block_bytes_max) return detail::base::failure(EMSGSIZE);
  to += char(field.type);
  append_number(to, field.value.size(), 2);
  to += field.value;
  return {};
}

Result<std::string> version_1(const ProxyHeader& header) {
  if (header.is_local || !header.fields.empty() || header.has_checksum)
    return detail::base::failure(EINVAL);
  std::string line(detail::framing::proxy_v1_start);
  if (!header.source) return line + "UNKNOWN\r\n";
  const Endpoint& source = *header.source;
  const Endpoint& destination = *header.destination;
  if (!source.is_ip() || header.socket_type != SOCK_STREAM) return detail::base::failure(EINVAL);
  line += source.family() == AF_INET ? "TCP4 " : "TCP6 ";
  line += source.address() + ' ' + destination.address() + ' ';
  line += std::to_string(source.port()) + ' ' + std::to_string(destination.port()) + "\r\n";
  return line;
}

template <class Value>
void append_bytes(std::string& to, const Value& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

/// Returns false for an abstract name that ends with a null byte: the reader could not find its
/// end.
bool append_unix_name(std::string& to, const Endpoint& endpoint) {
  const auto address = address_of<sockaddr_un>(endpoint);
  const std::size_t size = endpoint.size() - offsetof(sockaddr_un, sun_path);
  append_bytes(to, address.sun_path);
  const bool is_abstract = size > 0 && address.sun_path[0] == '\0';
  return !is_abstract || address.sun_path[size - 1] != '\0';
}

ProxyFamily family_of(const ProxyHeader& header) noexcept {
  if (!header.source) return ProxyFamily::unspecified;
  switch (header.source->family()) {
    case AF_INET:
      return ProxyFamily::ip_4;
    case AF_INET6:
      return ProxyFamily::ip_6;
    default:
      return ProxyFamily::local;
  }
}

bool append_addresses(std::string& to, const ProxyHeader& header) {
  const Endpoint& source = *header.source;
  const Endpoint& destination = *header.destination;
  if (!source.is_ip()) return append_unix_name(to, source) && append_unix_name(to, destination);
  for (const Endpoint& endpoint : {source, destination}) {
    if (endpoint.family() == AF_INET) {
      append_bytes(to, address_of<sockaddr_in>(endpoint).sin_addr);
    } else {
      append_bytes(to, address_of<sockaddr_in6>(endpoint).sin6_addr);
    }
  }
  append_number(to, source.port(), 2);
  append_number(to, destination.port(), 2);
  return true;
}

Result<> append_fields(std::string& to, const ProxyHeader& header) {
  for (const ProxyField& field : header.fields) {
    if (field.type == ProxyField::checksum || field.type == ProxyField::padding)
      return detail::base::failure(EINVAL);
    if (field.type == ProxyField::unique_id &&
        field.value.size() > detail::framing::unique_id_bytes_max)
      return detail::base::failure(EMSGSIZE);
    if (auto appended = append_field(to, field); !appended) return appended;
  }
  if (!header.has_checksum) return {};
  return append_field(to, {.type = ProxyField::checksum, .value = std::string(4, '\0')});
}

Result<std::string> version_2(const ProxyHeader& header) {
  if (header.is_local && (header.source || !header.fields.empty() || header.has_checksum))
    return detail::base::failure(EINVAL);
  const ProxyFamily family = family_of(header);
  ProxyTransport transport = ProxyTransport::unspecified;
  if (header.socket_type == SOCK_STREAM) transport = ProxyTransport::stream;
  if (header.socket_type == SOCK_DGRAM) transport = ProxyTransport::datagram;
  if (transport == ProxyTransport::unspecified) return detail::base::failure(EINVAL);
  if (family == ProxyFamily::unspecified) transport = ProxyTransport::unspecified;

  std::string block;
  if (header.source && !append_addresses(block, header)) return detail::base::failure(EINVAL);
  if (auto appended = append_fields(block, header); !appended)
    return std::unexpected(appended.error());
  if (block.size() > block_bytes_max) return detail::base::failure(EMSGSIZE);

  std::string whole(detail::framing::proxy_v2_signature);
  whole += char(0x20 | (header.is_local ? 0 : 1));
  whole += char(int(family) << 4 | int(transport));
  append_number(whole, block.size(), 2);
  whole += block;
  if (header.has_checksum) {
    const std::uint32_t sum = detail::framing::crc32c(whole);
    whole.resize(whole.size() - 4);
    append_number(whole, sum, 4);
  }
  return whole;
}

}  // namespace

Result<> append_proxy_header(Buffer& to, const ProxyHeader& header) {
  if (!are_sound(header) || (header.version != 1 && header.version != 2))
    return detail::base::failure(EINVAL);
  const auto bytes = header.version == 1 ? version_1(header) : version_2(header);
  if (!bytes) return std::unexpected(bytes.error());
  to.append(*bytes);
  return {};
}

Result<std::string> ProxyTls::to_value() const {
  std::string value;
  value +=
      char((used ? 1 : 0) | (certificate_on_connection ? 2 : 0) | (certificate_in_session ? 4 : 0));
  append_number(value, verify, 4);
  for (const ProxyField& field : fields) {
    if (auto appended = append_field(value, field); !appended)
      return std::unexpected(appended.error());
  }
  return value;
}

}  // namespace tambour
