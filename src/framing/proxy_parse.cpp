// Parses PROXY protocol headers.
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include <tambour/net/proxy_protocol.h>

#include "base/failure.h"
#include "base/parse_number.h"
#include "framing/crc32c.h"
#include "framing/proxy_header.h"

namespace tambour {
namespace {

using detail::framing::ProxyFamily;
using detail::framing::ProxyTransport;

std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Returns whether `text` is a prefix of `whole`, or begins with it.
bool may_begin_with(std::string_view text, std::string_view whole) noexcept {
  const std::size_t size = std::min(text.size(), whole.size());
  return text.substr(0, size) == whole.substr(0, size);
}

/// Removes and returns the text before the next space, and removes the space. If there is no space,
/// returns all of it.
std::string_view take_word(std::string_view& text) noexcept {
  const std::size_t end = text.find(' ');
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

std::optional<std::uint16_t> port_of(std::string_view text) noexcept {
  const auto port = detail::base::parse_number<std::uint16_t>(text);
  const bool has_zeros = text.size() > 1 && text.front() == '0';
  if (!port || has_zeros) return std::nullopt;
  return *port;
}

/// For version 1: the address must be of `family` and without a zone.
std::optional<Endpoint> endpoint_of(std::string_view address, std::string_view port, int family) {
  const auto number = port_of(port);
  if (!number || address.find('%') != std::string_view::npos) return std::nullopt;
  const auto endpoint = Endpoint::parse(address, *number);
  if (!endpoint || endpoint->family() != family) return std::nullopt;
  return *endpoint;
}

/// Parses the line between "PROXY " and CRLF.
Result<ProxyHeader> parse_line(std::string_view line) {
  ProxyHeader header{.version = 1};
  const std::string_view protocol = take_word(line);
  // The rest of an UNKNOWN line must be ignored.
  if (protocol == "UNKNOWN") return header;
  if (protocol != "TCP4" && protocol != "TCP6") return detail::base::failure(EPROTO);
  // Words are separated by exactly one space; the last has none after it.
  if (line.ends_with(' ')) return detail::base::failure(EPROTO);
  const int family = protocol == "TCP4" ? AF_INET : AF_INET6;
  const std::string_view source = take_word(line);
  const std::string_view destination = take_word(line);
  const std::string_view source_port = take_word(line);
  header.source = endpoint_of(source, source_port, family);
  header.destination = endpoint_of(destination, line, family);
  if (!header.source || !header.destination) return detail::base::failure(EPROTO);
  return header;
}

Result<std::optional<ProxyHeader>> take_version_1(Buffer& from) {
  const std::string_view text = text_of(from.peek(detail::framing::proxy_v1_bytes_max));
  const std::size_t end = text.find_first_of("\r\n");
  if (end == std::string_view::npos || end + 1 == text.size()) {
    const bool may_go_on = text.size() < detail::framing::proxy_v1_bytes_max;
    // LF must follow CR, and there is no space for an LF after the last allowed byte.
    if (!may_go_on || (end != std::string_view::npos && text[end] == '\n'))
      return detail::base::failure(EPROTO);
    return std::nullopt;
  }
  if (text[end] != '\r' || text[end + 1] != '\n') return detail::base::failure(EPROTO);
  const std::size_t start = detail::framing::proxy_v1_start.size();
  auto header = parse_line(text.substr(start, end - start));
  if (!header) return std::unexpected(header.error());
  from.consume(end + 2);
  return std::move(*header);
}

std::size_t number_of(std::string_view two_bytes) noexcept {
  return std::size_t(static_cast<unsigned char>(two_bytes[0])) << 8 |
         static_cast<unsigned char>(two_bytes[1]);
}

std::uint32_t number_of_four(std::string_view bytes) noexcept {
  return std::uint32_t(number_of(bytes.substr(0, 2)) << 16 | number_of(bytes.substr(2, 2)));
}

/// Calls `entry` with the type and the value of each field in `bytes`. Fails with EBADMSG if a
/// field extends beyond them.
template <class Each>
Result<> read_fields(std::string_view bytes, Each entry) {
  while (!bytes.empty()) {
    if (bytes.size() < detail::framing::proxy_field_bytes) return detail::base::failure(EBADMSG);
    const auto type = static_cast<std::uint8_t>(bytes[0]);
    const std::size_t size = number_of(bytes.substr(1, 2));
    bytes.remove_prefix(detail::framing::proxy_field_bytes);
    if (size > bytes.size()) return detail::base::failure(EBADMSG);
    if (auto read = entry(type, bytes.substr(0, size)); !read) return read;
    bytes.remove_prefix(size);
  }
  return {};
}

std::optional<std::string_view> find_field(const std::vector<ProxyField>& fields,
                                           std::uint8_t type) noexcept {
  const auto found = std::ranges::find(fields, type, &ProxyField::type);
  if (found == fields.end()) return std::nullopt;
  return found->value;
}

Endpoint ip_4(std::string_view address, std::string_view port) noexcept {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  std::memcpy(&place.sin_addr, address.data(), sizeof(place.sin_addr));
  std::memcpy(&place.sin_port, port.data(), sizeof(place.sin_port));
  return *Endpoint::from(reinterpret_cast<const sockaddr*>(&place), sizeof(place));
}

Endpoint ip_6(std::string_view address, std::string_view port) noexcept {
  sockaddr_in6 place{};
  place.sin6_family = AF_INET6;
  std::memcpy(&place.sin6_addr, address.data(), sizeof(place.sin6_addr));
  std::memcpy(&place.sin6_port, port.data(), sizeof(place.sin6_port));
  return *Endpoint::from(reinterpret_cast<const sockaddr*>(&place), sizeof(place));
}

/// A path ends at its first null byte. An abstract name begins with one, and the protocol does not
/// transmit its length: it is taken to end where the padding of null bytes begins.
Endpoint unix_endpoint(std::string_view field) noexcept {
  sockaddr_un place{};
  place.sun_family = AF_UNIX;
  static_assert(sizeof(place.sun_path) == 108, "the PROXY protocol specifies 108 bytes");
  std::size_t size = 0;
  if (field.front() != '\0') {
    const std::size_t end = field.find('\0');
    field = field.substr(0, end);
    size = end == std::string_view::npos ? field.size() : end + 1;
  } else {
    field = field.substr(0, field.find_last_not_of('\0') + 1);
    size = field.size();
  }
  field.copy(place.sun_path, field.size());
  const auto whole = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size);
  return *Endpoint::from(reinterpret_cast<const sockaddr*>(&place), whole);
}

void set_endpoints(ProxyHeader& header, ProxyFamily family, std::string_view bytes) noexcept {
  switch (family) {
    case ProxyFamily::ip_4:
      header.source = ip_4(bytes.substr(0, 4), bytes.substr(8, 2));
      header.destination = ip_4(bytes.substr(4, 4), bytes.substr(10, 2));
      break;
    case ProxyFamily::ip_6:
      header.source = ip_6(bytes.substr(0, 16), bytes.substr(32, 2));
      header.destination = ip_6(bytes.substr(16, 16), bytes.substr(34, 2));
      break;
    case ProxyFamily::local:
      header.source = unix_endpoint(bytes.substr(0, 108));
      header.destination = unix_endpoint(bytes.substr(108, 108));
      break;
    case ProxyFamily::unspecified:
      break;
  }
}

/// The checksum covers the whole header, with its own four bytes set to zero.
bool has_sum(std::string_view whole, std::string_view sum) noexcept {
  const std::string_view before = whole.substr(0, std::size_t(sum.data() - whole.data()));
  const std::string_view zeros("\0\0\0\0", 4);
  const std::uint32_t until = detail::framing::crc32c(zeros, detail::framing::crc32c(before));
  return detail::framing::crc32c(whole.substr(before.size() + zeros.size()), until) ==
         number_of_four(sum);
}

Result<> set_fields(ProxyHeader& header, std::string_view whole, std::string_view bytes) {
  return read_fields(bytes, [&](std::uint8_t type, std::string_view value) -> Result<> {
    if (type == ProxyField::padding) return {};
    if (type == ProxyField::checksum) {
      if (header.has_checksum || value.size() != 4 || !has_sum(whole, value))
        return detail::base::failure(EBADMSG);
      header.has_checksum = true;
      return {};
    }
    if (type == ProxyField::unique_id && value.size() > detail::framing::unique_id_bytes_max)
      return detail::base::failure(EBADMSG);
    header.fields.push_back({.type = type, .value = std::string(value)});
    return {};
  });
}

/// Parses a complete header of version 2.
Result<ProxyHeader> parse_version_2(std::string_view whole) {
  ProxyHeader header{.version = 2};
  const int command = whole[12] & 0x0F;
  const int family_number = static_cast<unsigned char>(whole[13]) >> 4;
  const int transport_number = whole[13] & 0x0F;
  header.is_local = command == 0;
  // The rest of a LOCAL header must be skipped, including the family.
  if (header.is_local) return header;
  const auto family = ProxyFamily(family_number);
  const auto transport = ProxyTransport(transport_number);
  const std::string_view block = whole.substr(detail::framing::proxy_v2_bytes);
  const std::size_t address_bytes = detail::framing::proxy_address_bytes(family);
  if (block.size() < address_bytes) return detail::base::failure(EBADMSG);
  if (transport != ProxyTransport::unspecified) set_endpoints(header, family, block);
  if (header.source && transport == ProxyTransport::datagram) header.socket_type = SOCK_DGRAM;
  auto fields = set_fields(header, whole, block.substr(address_bytes));
  if (!fields) {
    if (family != ProxyFamily::unspecified) return std::unexpected(fields.error());
    // For an unspecified family the block may contain addresses of unknown size, which cannot be
    // distinguished from fields.
    header.fields.clear();
    header.has_checksum = false;
  }
  return header;
}

Result<std::optional<ProxyHeader>> take_version_2(Buffer& from, std::size_t bytes_max) {
  const std::string_view start = text_of(from.peek(detail::framing::proxy_v2_bytes));
  if (start.size() > 12 && static_cast<unsigned char>(start[12]) >> 1 != 0x20 >> 1)
    return detail::base::failure(EPROTO);  // Another version or command.
  const bool is_local = start.size() > 12 && start[12] == 0x20;
  if (start.size() > 13 && !is_local) {
    const int family = static_cast<unsigned char>(start[13]) >> 4;
    const int transport = start[13] & 0x0F;
    if (family > int(ProxyFamily::local) || transport > int(ProxyTransport::datagram))
      return detail::base::failure(EPROTO);
  }
  if (start.size() < detail::framing::proxy_v2_bytes) return std::nullopt;
  const std::size_t size = detail::framing::proxy_v2_bytes + number_of(start.substr(14, 2));
  if (size > bytes_max) return detail::base::failure(EMSGSIZE);
  if (from.size() < size) return std::nullopt;
  auto header = parse_version_2(text_of(from.peek(size)));
  if (!header) return std::unexpected(header.error());
  from.consume(size);
  return std::move(*header);
}

}  // namespace

std::size_t detail::framing::proxy_v2_bytes_missing(Buffer& taken) {
  const std::string_view start = text_of(taken.peek(detail::framing::proxy_v2_bytes));
  if (start.size() < detail::framing::proxy_v2_bytes ||
      !start.starts_with(detail::framing::proxy_v2_signature))
    return 0;
  const std::size_t size = detail::framing::proxy_v2_bytes + number_of(start.substr(14, 2));
  return size - std::min(size, taken.size());
}

Result<std::optional<ProxyHeader>> take_proxy_header(Buffer& from, std::size_t bytes_max) {
  const std::string_view start = text_of(from.peek(detail::framing::proxy_v2_signature.size()));
  if (start.empty()) return std::nullopt;
  if (may_begin_with(start, detail::framing::proxy_v2_signature))
    return take_version_2(from, bytes_max);
  if (may_begin_with(start, detail::framing::proxy_v1_start)) return take_version_1(from);
  return detail::base::failure(EPROTO);
}

std::optional<std::string_view> ProxyHeader::find(std::uint8_t type) const noexcept {
  return find_field(fields, type);
}

Result<ProxyTls> ProxyTls::parse(std::string_view value) {
  constexpr std::size_t fixed_bytes = 5;
  if (value.size() < fixed_bytes) return detail::base::failure(EBADMSG);
  const auto bits = static_cast<std::uint8_t>(value.front());
  ProxyTls parsed{.used = (bits & 1) != 0,
                  .certificate_on_connection = (bits & 2) != 0,
                  .certificate_in_session = (bits & 4) != 0,
                  .verify = number_of_four(value.substr(1, 4))};
  auto read = read_fields(value.substr(fixed_bytes),
                          [&](std::uint8_t type, std::string_view inner) -> Result<> {
                            parsed.fields.push_back({.type = type, .value = std::string(inner)});
                            return {};
                          });
  if (!read) return std::unexpected(read.error());
  return parsed;
}

std::optional<std::string_view> ProxyTls::find(std::uint8_t type) const noexcept {
  return find_field(fields, type);
}

}  // namespace tambour
