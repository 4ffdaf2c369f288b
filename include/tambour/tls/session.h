// What TLS has negotiated for a stream or connection.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/base/cxx23.h>
#include <tambour/detail/namespaces.h>

#pragma GCC visibility push(default)

namespace tambour::tls {

/// TLS 1.2 (RFC 5246) or TLS 1.3 (RFC 8446). There are no older ones.
enum class Version : std::uint8_t { tls12, tls13 };

/// What happened to early data (0-RTT).
enum class EarlyData : std::uint8_t {
  none,      ///< The client has sent none.
  accepted,  ///< The server has read it.
  rejected,  ///< The server has ignored it, as if it had not been sent.
};

/// A certificate, decoded. Names are in the format of RFC 2253: "CN=example.org,O=Example".
struct Certificate {
  std::string subject{};
  std::string common_name{};  ///< Of the subject; empty if it has none.
  std::string issuer{};
  std::string serial_number{};           ///< Hexadecimal digits.
  std::vector<std::string> dns_names{};  ///< Subject alternative names, wildcards included.
  std::vector<std::string> addresses{};  ///< IP addresses among these names, as text.
  std::vector<std::string> emails{};
  std::vector<std::string> uris{};  ///< For example SPIFFE identities.
  std::chrono::sys_seconds not_before{};
  std::chrono::sys_seconds not_after{};
  std::string sha256_fingerprint{};  ///< Of the whole certificate: 64 hexadecimal digits.
  std::vector<std::byte> der{};      ///< The certificate itself.
};

/// The state of a TLS connection: its version, protocol and peer. Obtained from Stream::tls() or
/// Connection::tls().
///
/// Lifetime: owned by the stream or connection. Views are valid as long as it is.
/// Thread: that of the stream or connection.
class Session {
 public:
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// The version that was negotiated.
  [[nodiscard]] virtual Version version() const noexcept = 0;
  /// The IANA name, for example "TLS_AES_128_GCM_SHA256".
  [[nodiscard]] virtual std::string_view cipher() const noexcept = 0;
  /// The application protocol, for example "h2"; empty if none was negotiated.
  [[nodiscard]] virtual std::string_view alpn() const noexcept = 0;
  /// The name that the client sent (SNI), in lower case and without a final dot; empty if it sent
  /// none. A server must expect any bytes.
  [[nodiscard]] virtual std::string_view server_name() const noexcept = 0;
  /// True if the session continues an earlier one, without certificates being sent.
  [[nodiscard]] virtual bool is_resumed() const noexcept = 0;
  /// On a client, final when the handshake is complete.
  [[nodiscard]] virtual EarlyData early_data() const noexcept = 0;
  /// False only on a server that has not received the whole handshake, see tls/early_data.h: an
  /// attacker may have recorded and replayed what was read so far.
  [[nodiscard]] virtual bool is_handshake_complete() const noexcept = 0;
  /// The certificate of the peer, which was verified unless the context verifies nothing; nullopt
  /// if the peer sent none. Decodes it with each call. Throws std::bad_alloc.
  [[nodiscard]] virtual std::optional<Certificate> peer_certificate() const = 0;
  /// Why TLS failed after the handshake, in words, with the alert of the peer; empty if it did not.
  /// Throws std::bad_alloc.
  [[nodiscard]] virtual std::string failure() const = 0;

 protected:
  Session() = default;
  ~Session() = default;
};

}  // namespace tambour::tls

#pragma GCC visibility pop
