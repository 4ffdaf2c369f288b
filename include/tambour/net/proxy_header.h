// The header that a proxy sends at the start of a stream: the connection that it forwards. See
// <tambour/net/proxy_protocol.h>.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/net/endpoint.h>

#pragma GCC visibility push(default)

namespace tambour {

/// An extension field (TLV) of a version 2 header: a type, and a value whose meaning depends on the
/// type.
struct ProxyField {
  /// The registered types: proxy-protocol.txt of HAProxy, section 2.2.
  enum Type : std::uint8_t {
    alpn = 0x01,       ///< The application protocol, as negotiated by TLS (RFC 7301).
    authority = 0x02,  ///< The host name requested by the client, in UTF-8: SNI.
    checksum = 0x03,   ///< CRC32c of the header. Never in a ProxyHeader: see has_checksum.
    padding = 0x04,    ///< Ignored; never in a ProxyHeader.
    unique_id = 0x05,  ///< Identifies the connection in logs; at most 128 bytes.
    tls = 0x20,        ///< See ProxyTls.
    network_namespace = 0x30,
    // Only within a `tls` field.
    tls_version = 0x21,
    tls_common_name = 0x22,
    tls_cipher = 0x23,
    tls_signature_algorithm = 0x24,
    tls_key_algorithm = 0x25,
  };

  std::uint8_t type = 0;
  std::string value{};

  bool operator==(const ProxyField&) const = default;
};

/// The value of a `tls` field: the TLS properties of the connection between client and proxy.
struct ProxyTls {
  bool used = true;  ///< The client used TLS.
  /// The client presented a certificate on this connection.
  bool certificate_on_connection = false;
  bool certificate_in_session = false;  ///< The client presented a certificate in this TLS session.
  std::uint32_t verify = 0;             ///< 0: a certificate was presented and verified.
  std::vector<ProxyField> fields{};     ///< Fields of type tls_version and the following types.

  /// Fails with EBADMSG if the bytes are malformed.
  [[nodiscard]] static Result<ProxyTls> parse(std::string_view value);
  /// Fails with EMSGSIZE if a field exceeds 65535 bytes.
  [[nodiscard]] Result<std::string> to_value() const;
  [[nodiscard]] std::optional<std::string_view> find(std::uint8_t type) const noexcept;

  bool operator==(const ProxyTls&) const = default;
};

/// A PROXY protocol header.
struct ProxyHeader {
  int version = 2;  ///< 1 (text) or 2 (binary).
  /// The proxy itself is the client (LOCAL in version 2), for example for a health check.
  bool is_local = false;
  /// The client's type of socket: SOCK_STREAM or SOCK_DGRAM.
  int socket_type = SOCK_STREAM;
  /// The client's endpoint, and the endpoint that it connected to. Both are set and have the same
  /// address family, or neither is set; the endpoints of the stream itself then apply.
  std::optional<Endpoint> source{};
  std::optional<Endpoint> destination{};
  /// Extension fields in the order of the header. Version 2 only, and not with is_local.
  std::vector<ProxyField> fields{};
  /// Parsing: the header had a valid checksum. Writing: a checksum is added. Version 2 only.
  bool has_checksum = false;

  /// The value of the first field of this type.
  [[nodiscard]] std::optional<std::string_view> find(std::uint8_t type) const noexcept;

  bool operator==(const ProxyHeader&) const = default;
};

}  // namespace tambour

#pragma GCC visibility pop
