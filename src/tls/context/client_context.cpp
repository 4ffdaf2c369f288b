// The contexts of clients.
#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <exception>
#include <new>
#include <utility>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ocsp.h>

#include "tls/context/context.h"
#include "tls/filter.h"
#include "tls/host_name.h"
#include "tls/outcome.h"
#include "tls/resumption/ticket_note.h"

namespace tambour::tls::detail {
namespace {

using ResponsePointer = std::unique_ptr<OCSP_RESPONSE, Release<OCSP_RESPONSE_free>>;
using StatusPointer = std::unique_ptr<OCSP_BASICRESP, Release<OCSP_BASICRESP_free>>;
using CertificateIdPointer = std::unique_ptr<OCSP_CERTID, Release<OCSP_CERTID_free>>;

/// The difference of clocks that is tolerated, in seconds.
constexpr long clock_tolerance_s = 300;

enum class Status : std::uint8_t { good, revoked, missing };

/// Returns the status that the stapled response proves.
Status stapled_status(SSL* ssl, X509_STORE* authorities) noexcept {
  const unsigned char* bytes = nullptr;
  const long size = SSL_get_tlsext_status_ocsp_resp(ssl, static_cast<void*>(&bytes));
  STACK_OF(X509)* const chain = SSL_get0_verified_chain(ssl);
  if (bytes == nullptr || size <= 0 || chain == nullptr || sk_X509_num(chain) == 0)
    return Status::missing;
  const ResponsePointer response(d2i_OCSP_RESPONSE(nullptr, &bytes, size));
  if (response == nullptr ||
      OCSP_response_status(response.get()) != OCSP_RESPONSE_STATUS_SUCCESSFUL)
    return Status::missing;
  const StatusPointer basic(OCSP_response_get1_basic(response.get()));
  if (basic == nullptr || OCSP_basic_verify(basic.get(), chain, authorities, 0) != 1)
    return Status::missing;
  X509* const certificate = sk_X509_value(chain, 0);
  X509* const issuer = sk_X509_num(chain) > 1 ? sk_X509_value(chain, 1) : certificate;
  // The identifier has to be made with the digest that the responder has used.
  for (const EVP_MD* digest : {EVP_sha1(), EVP_sha256()}) {
    const CertificateIdPointer id(OCSP_cert_to_id(digest, certificate, issuer));
    int status = 0;
    int reason = 0;
    ASN1_GENERALIZEDTIME* revoked = nullptr;
    ASN1_GENERALIZEDTIME* updated = nullptr;
    ASN1_GENERALIZEDTIME* next = nullptr;
    if (id == nullptr || OCSP_resp_find_status(basic.get(), id.get(), &status, &reason, &revoked,
                                               &updated, &next) != 1)
      continue;
    if (OCSP_check_validity(updated, next, clock_tolerance_s, -1) != 1) return Status::missing;
    if (status == V_OCSP_CERTSTATUS_REVOKED) return Status::revoked;
    // Without the time of the next update, the response would be valid for ever: a server whose
    // certificate is revoked later could staple it as long as it likes.
    if (status == V_OCSP_CERTSTATUS_GOOD && next != nullptr) return Status::good;
  }
  return Status::missing;
}

/// Whether OpenSSL reports that the certificate is not valid for the host, and it is: OpenSSL
/// refuses wildcards for labels with underscores, and all names if memory runs out while it decodes
/// them.
bool is_wrong_mismatch(X509_STORE_CTX* state) noexcept {
  const char* const host = X509_VERIFY_PARAM_get0_host(X509_STORE_CTX_get0_param(state), 0);
  return X509_STORE_CTX_get_error(state) == X509_V_ERR_HOSTNAME_MISMATCH &&
         X509_STORE_CTX_get_error_depth(state) == 0 && host != nullptr &&
         is_valid_for(X509_STORE_CTX_get0_cert(state), host);
}

/// The callback of verification. OpenSSL 3.0 copies the expected name or address of the connection
/// for each verification. If there is no memory for the copy, it goes on without, and would accept
/// the certificate of any host.
int verify_server(int valid, X509_STORE_CTX* state) noexcept {
  X509_VERIFY_PARAM* const expected = X509_STORE_CTX_get0_param(state);
  if (valid == 1 && X509_VERIFY_PARAM_get0_host(expected, 0) == nullptr &&
      TextPointer(X509_VERIFY_PARAM_get1_ip_asc(expected)) == nullptr) {
    X509_STORE_CTX_set_error(state, X509_V_ERR_OUT_OF_MEM);
    valid = 0;
  }
  if (valid == 0 && is_wrong_mismatch(state)) {
    X509_STORE_CTX_set_error(state, X509_V_OK);
    valid = 1;
  }
  return note_verification(valid, state);
}

}  // namespace

Loaded<std::shared_ptr<ClientGeneration>> ClientGeneration::load(tls::ClientOptions options,
                                                                 const ClientGeneration* former) {
  std::shared_ptr<ClientGeneration> client_generation(
      new ClientGeneration(options.sessions_max, former));
  client_generation->options_ = std::move(options);
  const tls::ClientOptions& mode = client_generation->options_;
  if (mode.identities.size() > 1)
    return failure(tls::ErrorCode::bad_configuration, "a TLS client has at most one certificate");
  if (!mode.pinned_keys.empty() && mode.revocation == tls::Revocation::required)
    return failure(
        tls::ErrorCode::bad_configuration,
        "pinned_keys cannot be combined with tls::Revocation::required: without a chain, "
        "no OCSP response can be verified");
  if (auto done = client_generation->load_common(mode, mode.identities); !done)
    return std::unexpected(std::move(done.error()));
  auto store = load_authorities(mode.authorities);
  if (!store) return std::unexpected(std::move(store.error()));
  client_generation->set_authorities(std::move(*store));
  if (auto done = client_generation->load_pinned_keys(); !done)
    return std::unexpected(std::move(done.error()));
  if (auto done = client_generation->try_context(); !done)
    return std::unexpected(std::move(done.error()));
  return client_generation;
}

Loaded<> ClientGeneration::load_pinned_keys() {
  for (const std::string& pinned_key : options_.pinned_keys) {
    // 43 digits and one "=" are 32 bytes; the decoder counts the padding as a byte.
    constexpr std::size_t digits = 44;
    std::array<unsigned char, digits / 4 * 3> decoded{};
    const auto* const text = reinterpret_cast<const unsigned char*>(pinned_key.data());
    const bool is_digest =
        pinned_key.size() == digits && pinned_key.ends_with('=') && !pinned_key.ends_with("==") &&
        EVP_DecodeBlock(decoded.data(), text, static_cast<int>(digits)) == int(decoded.size());
    if (!is_digest)
      return failure(tls::ErrorCode::bad_configuration,
                     "pinned key \"" + pinned_key + "\" is not a SHA-256 digest in base64");
    KeyDigest& digest = pinned_keys_.emplace_back();
    std::copy_n(decoded.begin(), digest.size(), digest.begin());
  }
  return {};
}

/// Called instead of the verification of the chain. Returns 1 if the server has a pinned key. The
/// handshake proves that it has the private key as well.
int ClientGeneration::check_pinned_key(X509_STORE_CTX* state, void* self) noexcept {
  const auto& pinned = static_cast<const ClientGeneration*>(self)->pinned_keys_;
  const X509* const certificate = X509_STORE_CTX_get0_cert(state);
  unsigned char* bytes = nullptr;
  const int size =
      certificate != nullptr ? i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &bytes) : 0;
  KeyDigest digest{};
  const bool is_known = size > 0 && EVP_Digest(bytes, static_cast<std::size_t>(size), digest.data(),
                                               nullptr, EVP_sha256(), nullptr) == 1;
  OPENSSL_free(bytes);
  if (is_known && std::ranges::find(pinned, digest) != pinned.end()) return 1;
  X509_STORE_CTX_set_error(state, X509_V_ERR_CERT_UNTRUSTED);
  const auto* const ssl = static_cast<const SSL*>(
      X509_STORE_CTX_get_ex_data(state, SSL_get_ex_data_X509_STORE_CTX_idx()));
  if (ssl == nullptr) return 0;
  std::string text;
  try {
    if (certificate != nullptr) text = describe(certificate) + ": its key is not a pinned one";
  } catch (const std::exception&) {
    text.clear();
  }
  Filter::of(ssl).note_failure(outcome_of(tls::ErrorCode::certificate_unknown_issuer),
                               std::move(text));
  return 0;
}

bool ClientGeneration::configure(SSL_CTX* context) noexcept {
  if (options_.insecure_skip_verify) {
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nullptr);
  } else {
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, &verify_server);
    if (!pinned_keys_.empty()) SSL_CTX_set_cert_verify_callback(context, &check_pinned_key, this);
    if (options_.revocation != tls::Revocation::off) {
      SSL_CTX_set_tlsext_status_type(context, TLSEXT_STATUSTYPE_ocsp);
      SSL_CTX_set_tlsext_status_cb(context, &check_status);
    }
  }
  SSL_CTX_set_client_cert_cb(context, &note_certificate_missing);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  if (options_.sessions_max > 0) {
    SSL_CTX_sess_set_new_cb(context, &keep_session);
  } else {
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  }
  // Unlike other functions of OpenSSL, it returns 0 on success.
  return alpn().empty() ||
         SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>(alpn().data()),
                                 static_cast<unsigned>(alpn().size())) == 0;
}

/// Called if no certificate fits the request of the server. Returns 0: there is no other.
int ClientGeneration::note_certificate_missing(SSL* ssl, X509** /*certificate*/,
                                               EVP_PKEY** /*key*/) noexcept {
  Filter::of(ssl).note_certificate_missing();
  return 0;
}

/// Returns 1 if it has taken ownership of the session.
int ClientGeneration::keep_session(SSL* ssl, SSL_SESSION* session) noexcept {
  const Filter& filter = Filter::of(ssl);
  if (filter.session_key().empty() || SSL_SESSION_is_resumable(session) != 1) return 0;
  // A session that follows a resumption is a copy of the former one, with its note.
  const TicketNote note{.verified_s = std::time(nullptr)};
  if (!TicketNote::of(session) && !note.write_to(session)) return 0;
  SessionPointer owned(session);
  static_cast<ClientGeneration&>(of(ssl)).sessions_.put(filter.session_key(), std::move(owned));
  return 1;
}

/// Called after the certificate was verified, and in TLS 1.3 also in a resumption, in which a
/// server sends neither its certificate nor the status.
int ClientGeneration::check_status(SSL* ssl, void* /*unused*/) noexcept {
  if (SSL_session_reused(ssl) == 1) return 1;
  const auto& self = static_cast<ClientGeneration&>(of(ssl));
  const Status status = stapled_status(ssl, self.authorities());
  ERR_clear_error();
  if (status == Status::good) return 1;
  if (status == Status::missing && self.options_.revocation != tls::Revocation::required) return 1;
  const tls::ErrorCode error = status == Status::revoked
                                   ? tls::ErrorCode::certificate_revoked
                                   : tls::ErrorCode::certificate_status_missing;
  std::string text;
  try {
    const X509* const certificate = SSL_get0_peer_certificate(ssl);
    if (certificate != nullptr) text = describe(certificate) + ": ";
    text += status == Status::revoked ? "certificate is revoked"
                                      : "the server has sent no valid OCSP response";
  } catch (const std::bad_alloc&) {
    text.clear();
  }
  Filter::of(ssl).note_failure(outcome_of(error), std::move(text));
  return 0;
}

}  // namespace tambour::tls::detail
