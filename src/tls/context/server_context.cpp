// The contexts of servers.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>
#include <ranges>
#include <span>
#include <utility>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/ascii.h"
#include "tls/context/context.h"
#include "tls/filter.h"
#include "tls/outcome.h"
#include "tls/resumption/ticket_note.h"

namespace tambour::tls::detail {
namespace {

constexpr std::chrono::seconds lifetime_max = std::chrono::hours(24 * 7);

}  // namespace

Loaded<std::shared_ptr<ServerGeneration>> ServerGeneration::load(tls::ServerOptions options,
                                                                 const ServerGeneration* former) {
  auto server_generation = std::make_shared<ServerGeneration>(former);
  server_generation->options_ = std::move(options);
  const tls::ServerOptions& mode = server_generation->options_;
  if (mode.identities.empty())
    return failure(tls::ErrorCode::bad_configuration,
                   "a TLS server needs at least one certificate");
  if (mode.session_lifetime < std::chrono::seconds::zero() || mode.session_lifetime > lifetime_max)
    return failure(tls::ErrorCode::bad_configuration,
                   "session_lifetime must be between 0 and 7 days");
  if (!mode.ticket_secret.empty() && mode.ticket_secret.size() < TicketKeys::secret_bytes_min)
    return failure(tls::ErrorCode::bad_configuration, "ticket_secret must have at least 32 bytes");
  if (mode.early_data_bytes_max > tls::ServerOptions::early_data_bytes_limit)
    return failure(tls::ErrorCode::bad_configuration, "early_data_bytes_max must be at most 16384");
  if (former != nullptr) server_generation->strikes_ = former->strikes_;
  if (server_generation->strikes_ == nullptr && mode.early_data_bytes_max > 0)
    server_generation->strikes_ = std::make_shared<StrikeRegister>();
  const bool keeps_keys =
      former != nullptr && former->ticket_keys_->has(mode.session_lifetime, mode.ticket_secret);
  server_generation->ticket_keys_ =
      keeps_keys ? former->ticket_keys_
                 : std::make_shared<TicketKeys>(mode.session_lifetime, mode.ticket_secret);
  std::string& inherited = server_generation->options_.inherited_ticket_keys;
  const bool loaded = former != nullptr || server_generation->ticket_keys_->load(inherited);
  OPENSSL_cleanse(inherited.data(), inherited.size());
  inherited.clear();
  if (!loaded)
    return failure(tls::ErrorCode::bad_configuration, "inherited_ticket_keys is malformed");
  if (auto done = server_generation->load_common(mode, mode.identities); !done)
    return std::unexpected(std::move(done.error()));
  for (const Identity& identity : server_generation->identities()) {
    server_generation->table_.add(identity);
    if (!identity.ocsp_response.empty())
      server_generation->stapled_.emplace(identity.certificate.get(), &identity);
  }
  if (mode.client_certificate != tls::PeerCertificate::none) {
    if (mode.authorities.empty())
      return failure(tls::ErrorCode::bad_configuration,
                     "a server that verifies clients needs `authorities`: the authorities of the "
                     "system issue certificates to everyone");
    auto store = load_authorities(mode.authorities);
    if (!store) return std::unexpected(std::move(store.error()));
    server_generation->set_authorities(std::move(*store));
  }
  if (!server_generation->compute_session_context())
    return queue_failure(tls::ErrorCode::bad_configuration, "the hash of the authorities");
  if (auto done = server_generation->try_context(); !done)
    return std::unexpected(std::move(done.error()));
  return server_generation;
}

bool ServerGeneration::compute_session_context() noexcept {
  static_assert(SSL_MAX_SID_CTX_LENGTH == 32);
  const DigestPointer digest(EVP_MD_CTX_new());
  const auto mode = static_cast<unsigned char>(options_.client_certificate);
  if (digest == nullptr || EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr) != 1 ||
      EVP_DigestUpdate(digest.get(), &mode, 1) != 1)
    return false;
  STACK_OF(X509_OBJECT)* const objects =
      authorities() != nullptr ? X509_STORE_get0_objects(authorities()) : nullptr;
  for (int i = 0; i < sk_X509_OBJECT_num(objects); ++i) {
    const X509* const authority = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));
    std::array<unsigned char, EVP_MAX_MD_SIZE> entry{};
    unsigned size = 0;
    if (authority == nullptr) continue;
    if (X509_digest(authority, EVP_sha256(), entry.data(), &size) != 1 ||
        EVP_DigestUpdate(digest.get(), entry.data(), size) != 1)
      return false;
  }
  return EVP_DigestFinal_ex(digest.get(), session_context_.data(), nullptr) == 1;
}

ServerGeneration::~ServerGeneration() {
  erase_secrets(options_.identities);
  SecretText::erase(options_.ticket_secret);
}

bool ServerGeneration::configure(SSL_CTX* context) noexcept {
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_timeout(context, static_cast<long>(options_.session_lifetime.count()));
  SSL_CTX_set_tlsext_servername_callback(context, &choose_identity);
  if (!alpn().empty()) SSL_CTX_set_alpn_select_cb(context, &choose_protocol, nullptr);
  if (!stapled_.empty()) SSL_CTX_set_tlsext_status_cb(context, &staple);
  if (SSL_CTX_set_session_id_context(context, session_context_.data(),
                                     static_cast<unsigned>(session_context_.size())) != 1)
    return false;
  if (options_.session_lifetime > std::chrono::seconds::zero()) {
    if (SSL_CTX_set_tlsext_ticket_key_evp_cb(context, &use_ticket_key) != 1 ||
        SSL_CTX_set_session_ticket_cb(context, &write_note, &judge_ticket, nullptr) != 1)
      return false;
  } else {
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    if (SSL_CTX_set_num_tickets(context, 0) != 1) return false;
  }
  return configure_early_data(context) && configure_clients(context);
}

/// OpenSSL's own guard against replays would keep each session in memory, so that other loops and
/// processes could not resume it.
bool ServerGeneration::configure_early_data(SSL_CTX* context) noexcept {
  if (options_.early_data_bytes_max == 0) return true;
  SSL_CTX_set_options(context, SSL_OP_NO_ANTI_REPLAY);
  SSL_CTX_set_allow_early_data_cb(context, &accept_early_data, nullptr);
  const auto bytes_max = static_cast<std::uint32_t>(options_.early_data_bytes_max);
  return SSL_CTX_set_max_early_data(context, bytes_max) == 1;
}

bool ServerGeneration::configure_clients(SSL_CTX* context) noexcept {
  if (options_.client_certificate == tls::PeerCertificate::none) return true;
  const int required = options_.client_certificate == tls::PeerCertificate::required
                           ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT
                           : 0;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | required, &note_verification);
  // Clients choose their certificate by the names of the authorities. Other threads may verify with
  // the same store; the first verification sorts its objects.
  if (X509_STORE_lock(authorities()) != 1) return false;
  STACK_OF(X509_OBJECT)* const objects = X509_STORE_get0_objects(authorities());
  bool added = true;
  for (int i = 0; i < sk_X509_OBJECT_num(objects) && added; ++i) {
    X509* const authority = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));
    added = authority == nullptr || SSL_CTX_add_client_CA(context, authority) == 1;
  }
  X509_STORE_unlock(authorities());
  return added;
}

/// The SSL_CTX has the identities of the first name of the first one, so nothing has to be done for
/// that name.
int ServerGeneration::choose_identity(SSL* ssl, int* alert, void* /*unused*/) noexcept {
  const ServerGeneration& self = of(ssl);
  Filter& filter = Filter::of(ssl);
  const char* const sent = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (sent == nullptr) return SSL_TLSEXT_ERR_NOACK;
  std::span<const Identity* const> found;
  try {
    std::string name = base::lower_case(sent);
    if (name.ends_with('.')) name.pop_back();
    found = self.table_.find(name);
    if (found.empty() && self.options_.refuse_unknown_names)
      filter.note_failure(outcome_of(tls::ErrorCode::unknown_server_name),
                          "no certificate for the name " + printable(name));
    filter.set_host(std::move(name));
  } catch (const std::bad_alloc&) {
    filter.note_failure(-ENOMEM, {});
    *alert = SSL_AD_INTERNAL_ERROR;
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  if (found.empty()) {
    if (!self.options_.refuse_unknown_names) return SSL_TLSEXT_ERR_NOACK;
    *alert = SSL_AD_UNRECOGNIZED_NAME;
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  if (const Identity& first = self.identities().front();
      found.front() == &first && found.data() == self.table_.find(first.names.front()).data())
    return SSL_TLSEXT_ERR_OK;
  // Keys of other types of the default identity must not be offered for this name.
  SSL_certs_clear(ssl);
  for (const Identity* const identity : found | std::views::reverse) {
    if (use_identity(ssl, *identity)) continue;
    *alert = SSL_AD_INTERNAL_ERROR;
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  return SSL_TLSEXT_ERR_OK;
}

int ServerGeneration::choose_protocol(SSL* ssl, const unsigned char** chosen, unsigned char* size,
                                      const unsigned char* offered, unsigned offered_size,
                                      void* /*unused*/) noexcept {
  const std::string& own_text = of(ssl).alpn();
  unsigned char* found = nullptr;
  const int answer =
      SSL_select_next_proto(&found, size, reinterpret_cast<const unsigned char*>(own_text.data()),
                            static_cast<unsigned>(own_text.size()), offered, offered_size);
  if (answer == OPENSSL_NPN_NEGOTIATED) {
    *chosen = found;
    return SSL_TLSEXT_ERR_OK;
  }
  Filter::of(ssl).note_failure(outcome_of(tls::ErrorCode::no_common_alpn), {});
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

int ServerGeneration::staple(SSL* ssl, void* /*unused*/) noexcept {
  const ServerGeneration& self = of(ssl);
  const auto found = self.stapled_.find(SSL_get_certificate(ssl));
  if (found == self.stapled_.end()) return SSL_TLSEXT_ERR_NOACK;
  const auto& response = found->second->ocsp_response;
  auto* const copy = static_cast<unsigned char*>(OPENSSL_memdup(response.data(), response.size()));
  if (copy == nullptr) return SSL_TLSEXT_ERR_NOACK;
  SSL_set_tlsext_status_ocsp_resp(ssl, copy, static_cast<long>(response.size()));
  return SSL_TLSEXT_ERR_OK;
}

int ServerGeneration::use_ticket_key(SSL* ssl, unsigned char* name, unsigned char* iv,
                                     EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac,
                                     int encrypt) noexcept {
  const int answer = of(ssl).ticket_keys_->use(name, iv, cipher, mac, encrypt == 1);
  // 2: the client gets a new ticket. A client of TLS 1.3 uses each ticket once (RFC 8446, appendix
  // C.4), so without a new one it could resume only once.
  const bool needs_ticket = answer == 1 && encrypt == 0 && SSL_version(ssl) == TLS1_3_VERSION;
  return needs_ticket ? 2 : answer;
}

int ServerGeneration::write_note(SSL* ssl, void* /*unused*/) noexcept {
  const ServerGeneration& self = of(ssl);
  SSL_SESSION* const session = SSL_get_session(ssl);
  // That of the session that was resumed.
  TicketNote note = TicketNote::of(session).value_or(TicketNote{.verified_s = std::time(nullptr)});
  note.strikes = {};
  if (self.options_.early_data_bytes_max > 0) note.strikes = self.strikes_->identifier();
  return note.write_to(session) ? 1 : 0;
}

/// Called for the ticket of a client. If it is ignored, the handshake is a full one.
SSL_TICKET_RETURN ServerGeneration::judge_ticket(SSL* ssl, SSL_SESSION* session,
                                                 const unsigned char* /*name*/,
                                                 std::size_t /*name_size*/,
                                                 SSL_TICKET_STATUS status,
                                                 void* /*unused*/) noexcept {
  const bool is_valid = status == SSL_TICKET_SUCCESS || status == SSL_TICKET_SUCCESS_RENEW;
  if (!is_valid || !is_still_verified(session, of(ssl).options_.session_lifetime.count()))
    return SSL_TICKET_RETURN_IGNORE_RENEW;
  return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

/// Called when OpenSSL would accept early data. Returns 1 to accept it.
int ServerGeneration::accept_early_data(SSL* ssl, void* /*unused*/) noexcept {
  StrikeRegister& strikes = *of(ssl).strikes_;
  std::array<unsigned char, SSL3_RANDOM_SIZE> random{};
  const auto note = TicketNote::of(SSL_get_session(ssl));
  if (!note || note->strikes != strikes.identifier() ||
      SSL_get_client_random(ssl, random.data(), random.size()) != random.size())
    return 0;
  return strikes.accept(random) ? 1 : 0;
}

}  // namespace tambour::tls::detail
