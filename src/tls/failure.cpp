// Translates errors of OpenSSL and of the verification of certificates, and describes certificates.
#include "tls/failure.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <span>
#include <utility>

#include <openssl/err.h>
#include <openssl/sslerr.h>

#include "base/ascii.h"
#include "tls/outcome.h"

namespace tambour::tls::detail {
namespace {

/// Maps reasons of the SSL library. Those from 1000 on are the alerts that the peer has sent.
tls::ErrorCode error_of_reason(int reason, tls::ErrorCode otherwise) noexcept {
  switch (reason) {
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_RECORD_LENGTH_MISMATCH:
      return tls::ErrorCode::not_tls;
    case SSL_R_UNEXPECTED_EOF_WHILE_READING:
      return tls::ErrorCode::truncated;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_VERSION_TOO_HIGH:
    case SSL_R_UNKNOWN_PROTOCOL:
    case SSL_R_WRONG_SSL_VERSION:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
      return tls::ErrorCode::no_common_version;
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_SUITABLE_KEY_SHARE:
    case SSL_R_NO_SUITABLE_GROUPS:
    case SSL_R_NO_SHARED_GROUPS:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    case SSL_R_TLSV1_ALERT_INSUFFICIENT_SECURITY:
      return tls::ErrorCode::no_common_cipher;
    case SSL_R_NO_APPLICATION_PROTOCOL:
    case SSL_AD_NO_APPLICATION_PROTOCOL + SSL_AD_REASON_OFFSET:
      return tls::ErrorCode::no_common_alpn;
    case SSL_R_TLSV1_UNRECOGNIZED_NAME:
      return tls::ErrorCode::unknown_server_name;
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return tls::ErrorCode::certificate_missing;
    case SSL_R_INVALID_STATUS_RESPONSE:
      return tls::ErrorCode::certificate_status_missing;
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
    case SSL_R_CA_KEY_TOO_SMALL:
    case SSL_R_EE_KEY_TOO_SMALL:
    case SSL_R_CA_MD_TOO_WEAK:
      return tls::ErrorCode::certificate_invalid;
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return tls::ErrorCode::peer_requires_certificate;
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_BAD_CERTIFICATE_STATUS_RESPONSE:
      return tls::ErrorCode::peer_refused_certificate;
    default:
      return reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256
                 ? tls::ErrorCode::peer_refused
                 : otherwise;
  }
}

std::string text_of_bio(const BioPointer& bio) {
  char* data = nullptr;
  const long size = bio != nullptr ? BIO_get_mem_data(bio.get(), &data) : 0;
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

std::string bytes_of(const ASN1_STRING* string) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(string)),
          static_cast<std::size_t>(std::max(ASN1_STRING_length(string), 0))};
}

std::string address_text(const ASN1_STRING* address) {
  const unsigned char* const bytes = ASN1_STRING_get0_data(address);
  std::string text;
  if (ASN1_STRING_length(address) == 4) {
    for (int i = 0; i < 4; ++i) {
      if (i > 0) text += '.';
      text += std::to_string(bytes[i]);
    }
    return text;
  }
  constexpr std::string_view digits = "0123456789abcdef";
  for (int i = 0; i < ASN1_STRING_length(address); ++i) {
    if (i > 0 && i % 2 == 0) text += ':';
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

std::chrono::sys_seconds time_of(const ASN1_TIME* time) noexcept {
  tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return std::chrono::sys_seconds(std::chrono::seconds(::timegm(&parts)));
}

std::string hexadecimal(std::span<const unsigned char> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

NamesPointer names_of(const X509* certificate) noexcept {
  return NamesPointer(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
}

std::string common_name_of(const X509* certificate) {
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return {};
  return bytes_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string shown;
  for (const char entry : text) {
    if (entry >= ' ' && entry <= '~') {
      shown += entry;
      continue;
    }
    const auto byte = static_cast<unsigned char>(entry);
    shown += "\\x";
    shown += digits[byte >> 4];
    shown += digits[byte & 15];
  }
  return shown;
}

std::unexpected<tls::Failure> failure(Error error, std::string message) {
  return std::unexpected(tls::Failure{.error = error, .message = std::move(message)});
}

std::int32_t outcome_of_queue(tls::ErrorCode otherwise) noexcept {
  const unsigned long first = ERR_peek_error();
  if (ERR_GET_REASON(first) == ERR_R_MALLOC_FAILURE) return -ENOMEM;
  if (ERR_GET_LIB(first) != ERR_LIB_SSL) return outcome_of(otherwise);
  return outcome_of(error_of_reason(ERR_GET_REASON(first), otherwise));
}

std::string take_queue_text() {
  std::string text;
  while (const unsigned long value = ERR_get_error()) {
    const char* const reason = ERR_reason_error_string(value);
    if (!text.empty()) text += "; ";
    text += reason != nullptr ? reason : "error " + std::to_string(value);
  }
  return text;
}

tls::ErrorCode verification_error(long error) noexcept {
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CRL_HAS_EXPIRED:
      return tls::ErrorCode::certificate_expired;
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return tls::ErrorCode::certificate_not_yet_valid;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return tls::ErrorCode::certificate_self_signed;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_UNTRUSTED:
      return tls::ErrorCode::certificate_unknown_issuer;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return tls::ErrorCode::certificate_wrong_host;
    case X509_V_ERR_INVALID_PURPOSE:
    case X509_V_ERR_CERT_REJECTED:
    case X509_V_ERR_INVALID_CA:
      return tls::ErrorCode::certificate_wrong_purpose;
    case X509_V_ERR_CERT_REVOKED:
      return tls::ErrorCode::certificate_revoked;
    default:
      return tls::ErrorCode::certificate_invalid;
  }
}

std::unexpected<tls::Failure> queue_failure(tls::ErrorCode error, std::string_view message) {
  const bool no_memory = ERR_GET_REASON(ERR_peek_error()) == ERR_R_MALLOC_FAILURE;
  std::string text(message);
  const std::string reason = take_queue_text();
  if (!reason.empty()) text += ": " + reason;
  return failure(no_memory ? system_error(ENOMEM) : Error(error), std::move(text));
}

std::string text_of(const X509_NAME* name) {
  const BioPointer bio(BIO_new(BIO_s_mem()));
  constexpr unsigned long format =
      XN_FLAG_RFC2253 & ~static_cast<unsigned long>(ASN1_STRFLGS_ESC_MSB);
  if (bio == nullptr || X509_NAME_print_ex(bio.get(), name, 0, format) < 0) return {};
  return text_of_bio(bio);
}

std::string describe(const X509* certificate) {
  return "certificate " + text_of(X509_get_subject_name(certificate)) + ", issued by " +
         text_of(X509_get_issuer_name(certificate));
}

std::string time_text(const ASN1_TIME* time) {
  tm parts{};
  std::array<char, 32> text{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "an unreadable time";
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return {text.data(), size};
}

std::vector<std::string> dns_names_of(const X509* certificate) {
  std::vector<std::string> found;
  const NamesPointer names = names_of(certificate);
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) found.push_back(base::lower_case(bytes_of(name->d.dNSName)));
  }
  if (!found.empty()) return found;
  std::string common_name = common_name_of(certificate);
  if (!common_name.empty()) found.push_back(base::lower_case(std::move(common_name)));
  return found;
}

tls::Certificate decode(const X509* certificate) {
  tls::Certificate decoded{.subject = text_of(X509_get_subject_name(certificate)),
                           .common_name = common_name_of(certificate),
                           .issuer = text_of(X509_get_issuer_name(certificate)),
                           .not_before = time_of(X509_get0_notBefore(certificate)),
                           .not_after = time_of(X509_get0_notAfter(certificate))};
  const ASN1_INTEGER* const serial = X509_get0_serialNumber(certificate);
  decoded.serial_number = hexadecimal(
      {ASN1_STRING_get0_data(serial), static_cast<std::size_t>(ASN1_STRING_length(serial))});
  const NamesPointer names = names_of(certificate);
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) decoded.dns_names.push_back(bytes_of(name->d.dNSName));
    if (name->type == GEN_IPADD) decoded.addresses.push_back(address_text(name->d.iPAddress));
    if (name->type == GEN_EMAIL) decoded.emails.push_back(bytes_of(name->d.rfc822Name));
    if (name->type == GEN_URI) decoded.uris.push_back(bytes_of(name->d.uniformResourceIdentifier));
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned digest_size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest.data(), &digest_size) == 1)
    decoded.sha256_fingerprint = hexadecimal(std::span(digest).first(digest_size));
  if (const int size = i2d_X509(certificate, nullptr); size > 0) {
    decoded.der.resize(static_cast<std::size_t>(size));
    auto* into = reinterpret_cast<unsigned char*>(decoded.der.data());
    static_cast<void>(i2d_X509(certificate, &into));
  }
  return decoded;
}

}  // namespace tambour::tls::detail
