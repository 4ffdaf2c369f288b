// The error category of TlsError, with the text of each error.
#include <tambour/tls_error.h>

#include "base/error_table.h"

namespace tambour {
namespace {

constexpr base::ErrorText<TlsError> texts[] = {
    {TlsError::protocol, "TLS protocol error"},
    {TlsError::not_tls, "The peer does not speak TLS"},
    {TlsError::not_supported, "The library was built without TLS"},
    {TlsError::truncated, "End of stream without close_notify"},
    {TlsError::no_common_version, "No common version of TLS"},
    {TlsError::no_common_cipher, "No common cipher, group or signature algorithm"},
    {TlsError::no_common_alpn, "No common application protocol (ALPN)"},
    {TlsError::unknown_server_name, "No certificate for the server name"},
    {TlsError::unread_plaintext, "Unread plaintext before TLS"},
    {TlsError::too_many_key_updates, "Too many key updates"},
    {TlsError::too_many_handshakes, "Too many unfinished TLS handshakes"},
    {TlsError::peer_refused, "The peer ended TLS with an alert"},
    {TlsError::peer_refused_certificate, "The peer does not accept the certificate"},
    {TlsError::peer_requires_certificate, "The server requires a certificate"},
    {TlsError::certificate_missing, "The peer sent no certificate"},
    {TlsError::certificate_expired, "Certificate has expired"},
    {TlsError::certificate_not_yet_valid, "Certificate is not yet valid"},
    {TlsError::certificate_self_signed, "Self-signed certificate is not trusted"},
    {TlsError::certificate_unknown_issuer, "Certificate of an unknown issuer"},
    {TlsError::certificate_wrong_host, "Certificate is not valid for the host"},
    {TlsError::certificate_wrong_purpose, "Certificate does not permit this use"},
    {TlsError::certificate_revoked, "Certificate is revoked"},
    {TlsError::certificate_status_missing, "No proof that the certificate is not revoked"},
    {TlsError::certificate_invalid, "Invalid certificate"},
    {TlsError::file_unreadable, "Unreadable certificate or key"},
    {TlsError::key_mismatch, "Private key does not belong to the certificate"},
    {TlsError::bad_configuration, "Invalid TLS configuration"},
};

}  // namespace

const std::error_category& tls_category() noexcept {
  static constinit const base::ErrorTable category("tambour.tls", "Unknown TLS error", texts);
  return category;
}

}  // namespace tambour
