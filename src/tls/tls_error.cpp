// The error category of TlsError, with the text of each error.
#include <tambour/tls_error.h>

namespace tambour {
namespace {

const char* text_of(TlsError error) noexcept {
  switch (error) {
    case TlsError::protocol:
      return "TLS protocol error";
    case TlsError::not_tls:
      return "The peer does not speak TLS";
    case TlsError::not_supported:
      return "The library was built without TLS";
    case TlsError::truncated:
      return "End of stream without close_notify";
    case TlsError::no_common_version:
      return "No common version of TLS";
    case TlsError::no_common_cipher:
      return "No common cipher, group or signature algorithm";
    case TlsError::no_common_alpn:
      return "No common application protocol (ALPN)";
    case TlsError::unknown_server_name:
      return "No certificate for the server name";
    case TlsError::unread_plaintext:
      return "Unread plaintext before TLS";
    case TlsError::too_many_key_updates:
      return "Too many key updates";
    case TlsError::too_many_handshakes:
      return "Too many unfinished TLS handshakes";
    case TlsError::peer_refused:
      return "The peer ended TLS with an alert";
    case TlsError::peer_refused_certificate:
      return "The peer does not accept the certificate";
    case TlsError::peer_requires_certificate:
      return "The server requires a certificate";
    case TlsError::certificate_missing:
      return "The peer sent no certificate";
    case TlsError::certificate_expired:
      return "Certificate has expired";
    case TlsError::certificate_not_yet_valid:
      return "Certificate is not yet valid";
    case TlsError::certificate_self_signed:
      return "Self-signed certificate is not trusted";
    case TlsError::certificate_unknown_issuer:
      return "Certificate of an unknown issuer";
    case TlsError::certificate_wrong_host:
      return "Certificate is not valid for the host";
    case TlsError::certificate_wrong_purpose:
      return "Certificate does not permit this use";
    case TlsError::certificate_revoked:
      return "Certificate is revoked";
    case TlsError::certificate_status_missing:
      return "No proof that the certificate is not revoked";
    case TlsError::certificate_invalid:
      return "Invalid certificate";
    case TlsError::file_unreadable:
      return "Unreadable certificate or key";
    case TlsError::key_mismatch:
      return "Private key does not belong to the certificate";
    case TlsError::bad_configuration:
      return "Invalid TLS configuration";
  }
  return "Unknown TLS error";
}

class TlsCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "tambour tls"; }
  [[nodiscard]] std::string message(int value) const override { return text_of(TlsError(value)); }
};

}  // namespace

const std::error_category& tls_category() noexcept {
  static const TlsCategory category;
  return category;
}

}  // namespace tambour
