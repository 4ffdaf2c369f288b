// Makes the filters of clients and servers, and the message of a failed handshake.
#include "tls/handshake_parts.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>
#include <utility>

#include <openssl/err.h>

#include "address/ip_literal.h"
#include "base/ascii.h"
#include "base/check.h"
#include "tls/resumption/ticket_note.h"

namespace tambour::tls::detail {
namespace {

/// After this time a client verifies the server again: its certificate may have been revoked.
constexpr std::int64_t verified_age_s_max = 24 * std::int64_t{3600};

std::string seconds_text(Duration time) {
  return std::to_string(std::chrono::duration<double>(time).count()) + " s";
}

std::unique_ptr<Filter> make_filter(const std::shared_ptr<Generation>& generation,
                                    bool is_server) noexcept {
  SSL_CTX* const context = generation->context();
  std::unique_ptr<Filter> filter;
  if (context != nullptr) filter = Filter::create(context, is_server, generation);
  if (filter == nullptr) ERR_clear_error();
  return filter;
}

/// Names are not checked further: a name that no certificate contains is not accepted. But OpenSSL
/// would accept each subdomain for a name that begins with a dot.
bool is_host(const std::string& host) noexcept {
  return !host.empty() && host.size() <= 255 && host.front() != '.' &&
         host.find('\0') == std::string::npos;
}

/// Returns the address as a certificate contains it: without its zone ("fe80::1%eth0"), which means
/// something to this machine only. Empty if `host` is a name.
std::string address_in(const std::string& host) {
  const auto address = parse_ignoring_zone(host);
  return address ? address->to_string() : std::string();
}

/// Sets what the client expects. Returns false if memory runs out or OpenSSL refuses the name.
/// Throws std::bad_alloc.
bool expect_host(Filter& filter, const std::string& host) {
  X509_VERIFY_PARAM* const expected = SSL_get0_param(filter.ssl());
  if (const std::string address = address_in(host); !address.empty())
    return X509_VERIFY_PARAM_set1_ip_asc(expected, address.c_str()) == 1;
  // RFC 9525: only DNS names in the certificate count, not its common name.
  X509_VERIFY_PARAM_set_hostflags(
      expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  return X509_VERIFY_PARAM_set1_host(expected, host.data(), host.size()) == 1 &&
         SSL_set_tlsext_host_name(filter.ssl(), host.c_str()) == 1;
}

/// What tells the servers of one host apart: the port, or the endpoint of another kind. Empty if it
/// is not known.
std::string session_scope_of(std::uint16_t port, const Result<Endpoint>& peer) {
  if (port != 0) return std::to_string(port);
  if (!peer) return {};
  return peer->is_ip() ? std::to_string(peer->port()) : peer->to_string();
}

bool offer_alpn(const Filter& filter, const AlpnList* list) noexcept {
  if (list == nullptr) return true;
  return SSL_set_alpn_protos(filter.ssl(),
                             reinterpret_cast<const unsigned char*>(list->encoded.data()),
                             static_cast<unsigned>(list->encoded.size())) == 0;
}

/// `list` is in the format of the protocol.
bool contains_protocol(std::string_view list, std::string_view protocol) noexcept {
  while (!list.empty()) {
    const auto size = static_cast<unsigned char>(list.front());
    if (list.substr(1, size) == protocol) return true;
    list.remove_prefix(std::min<std::size_t>(size + std::size_t{1}, list.size()));
  }
  return false;
}

/// Early data is in the protocol that the session has negotiated: RFC 8446, section 4.2.10. If the
/// client does not offer it any more, OpenSSL would fail the handshake.
bool offers_protocol_of(const SSL_SESSION* session, std::string_view alpn) noexcept {
  const unsigned char* bytes = nullptr;
  std::size_t size = 0;
  SSL_SESSION_get0_alpn_selected(session, &bytes, &size);
  return size == 0 || contains_protocol(alpn, {reinterpret_cast<const char*>(bytes), size});
}

void offer_session(ClientGeneration& generation, Filter& filter, const std::string& scope,
                   std::string_view alpn, std::string early_data) {
  if (scope.empty()) return;
  filter.set_session_key(filter.host() + " " + scope);
  SessionPointer session = generation.sessions().take(filter.session_key());
  // OpenSSL marks the session of a connection that fails later, also by truncation. It would not
  // resume it, and fail to send early data.
  if (session == nullptr || SSL_SESSION_is_resumable(session.get()) != 1 ||
      !is_still_verified(session.get(), verified_age_s_max))
    return;
  const bool is_offered = SSL_set_session(filter.ssl(), session.get()) == 1;
  if (is_offered && !early_data.empty() &&
      early_data.size() <= SSL_SESSION_get_max_early_data(session.get()) &&
      offers_protocol_of(session.get(), alpn))
    filter.send_early(std::move(early_data));
  // A server of TLS 1.3 sends new tickets with each connection; one of TLS 1.2 does not.
  if (SSL_SESSION_get_protocol_version(session.get()) == TLS1_2_VERSION)
    generation.sessions().put(filter.session_key(), std::move(session));
}

std::string message_of(const Result<Endpoint>& peer, const tls::Options& options,
                       const Error& error, const tls::Session& session) {
  std::string message = "TLS handshake with ";
  message += peer ? peer->to_string() : "the peer";
  message += ": " + error.message();
  const std::string text = error == system_error(ETIMEDOUT)
                               ? "not complete within " + seconds_text(options.handshake_timeout)
                               : session.failure();
  if (!text.empty()) message += ": " + text;
  return message;
}

}  // namespace

void check_context(bool exists) noexcept {
  base::check(exists,
              "tls::accept() or tls::connect() was called with an empty context; create one with "
              "tls::ServerContext::create() or tls::ClientContext::create()");
}

std::unique_ptr<Filter> make_server_filter(
    const std::shared_ptr<ServerGeneration>& generation) noexcept {
  return make_filter(generation, true);
}

std::unique_ptr<Filter> make_client_filter(const tls::ClientContext& context,
                                           const std::shared_ptr<ClientGeneration>& generation,
                                           Host host, const Result<Endpoint>& peer,
                                           std::string early_data) {
  std::unique_ptr<Filter> filter = make_filter(generation, false);
  if (filter == nullptr) return nullptr;
  std::string& name = host.name;
  if (name.ends_with('.')) name.pop_back();
  if (!is_host(name)) {
    filter->note_failure(-EINVAL, '"' + printable(name) + "\" is neither a name nor an address");
    return filter;
  }
  const AlpnList* const alpn = ContextAccess::alpn(context);
  if (!expect_host(*filter, name) || !offer_alpn(*filter, alpn)) return nullptr;
  filter->set_host(base::lower_case(std::move(name)));
  offer_session(*generation, *filter, session_scope_of(host.port, peer),
                alpn != nullptr ? alpn->encoded : generation->alpn(), std::move(early_data));
  return filter;
}

void report(const Result<Endpoint>& peer, const Generation& generation, const Error& error,
            const tls::Session& session) noexcept {
  if (error == system_error(ECANCELED)) return;
  generation.counters().count_failed();
  const tls::Options& options = generation.common();
  if (!options.on_failure) return;
  tls::Failure failure{.error = error};
  try {
    failure.message = message_of(peer, options, error, session);
  } catch (const std::bad_alloc&) {
    failure.message.clear();  // The text is missing; the error is not.
  }
  try {
    options.on_failure(failure);
  } catch (const std::bad_alloc&) {
    return;  // It has no memory to report the failure, which is counted.
  }
}

}  // namespace tambour::tls::detail
