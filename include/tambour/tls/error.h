// The errors of TLS.
//
// They form an error category of their own and can be compared with an Error:
// `if (error == tls::ErrorCode::truncated)`. tls::Failure (tls/context.h) adds the text that names
// the certificate and the reason.
#pragma once

#include <string>
#include <system_error>
#include <type_traits>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>

#pragma GCC visibility push(default)

namespace tambour::tls {

/// Why a handshake or a connection has failed, or a certificate or key was refused.
enum class ErrorCode : int {
  protocol = 1,   ///< The peer violated the protocol, or something changed its bytes.
  not_tls,        ///< The peer does not speak TLS: its first bytes are not a record.
  not_supported,  ///< The library was built without TLS.
  /// The stream ended without close_notify: bytes at its end may be missing. An attacker who can
  /// end the TCP connection can cause this.
  truncated,
  no_common_version,         ///< Both ends support no common version of TLS.
  no_common_cipher,          ///< Both ends support no common cipher, group or signature algorithm.
  no_common_alpn,            ///< Both ends support no common application protocol (ALPN).
  unknown_server_name,       ///< The server has no certificate for the name that the client sent.
  unread_plaintext,          ///< Bytes were received before TLS began, and not read: CVE-2011-0411.
  too_many_key_updates,      ///< The peer changes its keys too often.
  too_many_handshakes,       ///< The server closed the oldest of too many unfinished handshakes.
  peer_refused,              ///< The peer ended the handshake or the session with an alert.
  peer_refused_certificate,  ///< The peer does not accept the certificate of this end.
  peer_requires_certificate,  ///< The server requires a certificate of the client.

  // The certificate of the peer, or one of its chain.
  certificate_missing,         ///< The client has sent no certificate.
  certificate_expired,         ///< It is not valid any more.
  certificate_not_yet_valid,   ///< It is not valid yet.
  certificate_self_signed,     ///< It, or the root of its chain, is self-signed and not trusted.
  certificate_unknown_issuer,  ///< No trusted authority has issued it.
  certificate_wrong_host,      ///< It is not valid for the name or address of the server.
  certificate_wrong_purpose,   ///< It must not be used for a server, or for a client.
  certificate_revoked,         ///< Its authority has revoked it.
  certificate_status_missing,  ///< The server has not proved that it is not revoked (OCSP).
  certificate_invalid,         ///< Another defect, for example a wrong signature or a weak key.

  // The configuration of a context.
  file_unreadable,    ///< A file is missing, unreadable, or is not in PEM format.
  key_mismatch,       ///< The private key does not belong to the certificate.
  bad_configuration,  ///< Another option is invalid.
};

/// The category "tambour.tls", whose values are those of ErrorCode. Any thread.
const std::error_category& error_category() noexcept;

/// Converts to an Error, also implicitly: `error == tls::ErrorCode::not_tls`.
[[nodiscard]] inline Error make_error_code(
    ErrorCode error) noexcept {  // NOLINT: the standard's own name.
  return {static_cast<int>(error), error_category()};
}

}  // namespace tambour::tls

template <>
struct std::is_error_code_enum<tambour::tls::ErrorCode> : std::true_type {};

#pragma GCC visibility pop
