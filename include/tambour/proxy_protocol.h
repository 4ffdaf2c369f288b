// The PROXY protocol, versions 1 and 2: what a proxy says in front of a stream about the connection
// that it passes on. Written by the makers of haproxy: doc/proxy-protocol.txt there.
//
// A server either requires a header or has none (ListenOptions::proxy_protocol); whether there is
// one cannot be guessed. The trap: whoever may connect to a server that requires it can say that he
// is anybody. Only proxies must reach it.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/buffer.h>
#include <tambour/endpoint.h>
#include <tambour/result.h>
#include <tambour/stream.h>
#include <tambour/task.h>

namespace tambour {

/// What else a header of version 2 says: a type, and bytes that mean what the type says.
struct ProxyField {
  enum Type : std::uint8_t {
    alpn = 0x01,       ///< The protocol inside the stream, as TLS negotiates it (RFC 7301).
    authority = 0x02,  ///< The host that the client named, in UTF-8: SNI.
    checksum = 0x03,   ///< Of the header, CRC32c. Never in a ProxyHeader: see has_checksum.
    padding = 0x04,    ///< Ignored; never in a ProxyHeader.
    unique_id = 0x05,  ///< Names the connection in all logs; at most 128 bytes.
    tls = 0x20,        ///< See ProxyTls.
    network_namespace = 0x30,
    // Within the one above, and there only.
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

/// How the client was connected to the proxy, where that was by TLS: the value of a field `tls`.
struct ProxyTls {
  bool used = true;                        ///< The client spoke TLS.
  bool certificate_on_connection = false;  ///< It has shown a certificate here,
  bool certificate_in_session = false;     ///< or earlier in its session.
  std::uint32_t verify = 0;                ///< 0: a certificate was shown, and is good.
  std::vector<ProxyField> fields{};        ///< tls_version and what follows that.

  /// EBADMSG where the bytes are not that.
  static Result<ProxyTls> parse(std::string_view value);
  /// EMSGSIZE where a field is longer than 65535 bytes.
  [[nodiscard]] Result<std::string> to_value() const;
  [[nodiscard]] std::optional<std::string_view> find(std::uint8_t type) const noexcept;

  bool operator==(const ProxyTls&) const = default;
};

/// One header.
struct ProxyHeader {
  int version = 2;  ///< 1, in text, or 2.
  /// The proxy speaks for itself (version 2's LOCAL): to see whether the server is well, say.
  bool is_local = false;
  /// SOCK_STREAM or SOCK_DGRAM: what the client speaks.
  int socket_type = SOCK_STREAM;
  /// Who has connected, and to what: both, of one family, or neither where the proxy does not say.
  /// Then the endpoints of the stream itself count.
  std::optional<Endpoint> source{};
  std::optional<Endpoint> destination{};
  /// In the order in which they came. Version 2, not local.
  std::vector<ProxyField> fields{};
  bool has_checksum = false;  ///< It had one, which was right; or shall be given one. Version 2.

  /// The first field of the type.
  [[nodiscard]] std::optional<std::string_view> find(std::uint8_t type) const noexcept;

  bool operator==(const ProxyHeader&) const = default;
};

/// The longest header that the protocol allows: 107 bytes in version 1, this in version 2.
inline constexpr std::size_t proxy_header_bytes_limit = 65551;

/// Takes a header off the front. Nothing: the header is incomplete. EPROTO: the bytes are no
/// header; EMSGSIZE: it has version 2 and is longer than `bytes_max`; both as soon as that is
/// known. EBADMSG: it contradicts itself, or its checksum is wrong. After an error `from` is
/// unchanged. Throws std::bad_alloc.
Result<std::optional<ProxyHeader>> take_proxy_header(
    Buffer& from, std::size_t bytes_max = proxy_header_bytes_limit);

/// Appends a header, for proxies and for clients of servers that require one. EINVAL where the
/// version has no way to say what `header` says: version 1 knows TCP over IPv4 and IPv6, and
/// nothing; a zone of an address is in neither. EMSGSIZE where its fields are too long. Then
/// nothing has changed. Throws std::bad_alloc.
Result<> append_proxy_header(Buffer& to, const ProxyHeader& header);

/// Waits for a header; bytes that were received behind it stay in the buffer. Fails with the errors
/// of take_proxy_header() and of the stream, with StreamError::end if the stream ends before the
/// first byte, and with StreamError::truncated if it ends within the header. For a time limit:
/// timeout(5s, read_proxy_header(stream, buffer)).
Task<Result<ProxyHeader>> read_proxy_header(Stream& stream, Buffer& buffer,
                                            std::size_t bytes_max = proxy_header_bytes_limit);

/// The same without a buffer: takes the bytes of the header off the stream, and none behind it.
Task<Result<ProxyHeader>> read_proxy_header(Stream& stream,
                                            std::size_t bytes_max = proxy_header_bytes_limit);

}  // namespace tambour
