// The error category of tls::ErrorCode, with the text of each error.
#include <tambour/tls/error.h>

#include "base/error_table.h"

namespace tambour::tls {

namespace {

constexpr detail::base::ErrorText<ErrorCode> texts[] = {
    {ErrorCode::protocol, "TLS protocol error"},
    {ErrorCode::not_tls, "The peer does not speak TLS"},
    {ErrorCode::not_supported, "The library was built without TLS"},
    {ErrorCode::truncated, "End of stream without close_notify"},
    {ErrorCode::no_common_version, "No common version of TLS"},
    {ErrorCode::no_common_cipher, "No common cipher, group or signature algorithm"},
    {ErrorCode::no_common_alpn, "No common application protocol (ALPN)"},
    {ErrorCode::unknown_server_name, "No certificate for the server name"},
    {ErrorCode::unread_plaintext, "Unread plaintext before TLS"},
    {ErrorCode::too_many_key_updates, "Too many key updates"},
    {ErrorCode::too_many_handshakes, "Too many unfinished TLS handshakes"},
    {ErrorCode::peer_refused, "The peer ended TLS with an alert"},
    {ErrorCode::peer_refused_certificate, "The peer does not accept the certificate"},
    {ErrorCode::peer_requires_certificate, "The server requires a certificate"},
    {ErrorCode::certificate_missing, "The peer sent no certificate"},
    {ErrorCode::certificate_expired, "Certificate has expired"},
    {ErrorCode::certificate_not_yet_valid, "Certificate is not yet valid"},
    {ErrorCode::certificate_self_signed, "Self-signed certificate is not trusted"},
    {ErrorCode::certificate_unknown_issuer, "Certificate of an unknown issuer"},
    {ErrorCode::certificate_wrong_host, "Certificate is not valid for the host"},
    {ErrorCode::certificate_wrong_purpose, "Certificate does not permit this use"},
    {ErrorCode::certificate_revoked, "Certificate is revoked"},
    {ErrorCode::certificate_status_missing, "No proof that the certificate is not revoked"},
    {ErrorCode::certificate_invalid, "Invalid certificate"},
    {ErrorCode::file_unreadable, "Unreadable certificate or key"},
    {ErrorCode::key_mismatch, "Private key does not belong to the certificate"},
    {ErrorCode::bad_configuration, "Invalid TLS configuration"},
};

}  // namespace

const std::error_category& error_category() noexcept {
  static constinit const detail::base::ErrorTable category("tambour.tls", "Unknown TLS error",
                                                           texts);
  return category;
}

}  // namespace tambour::tls
