// Generation: makes an SSL_CTX from options: versions, ciphers, ALPN, authorities, tickets and the
// key log.
#include "tls/context/context.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/err.h>

#include "base/log/log_site.h"
#include "tls/filter.h"
#include "tls/outcome.h"

namespace tambour::tls::detail {
namespace {

constexpr const char* ciphers_tls12 = "ECDHE+AESGCM:ECDHE+CHACHA20";
/// AES-128 before AES-256: it is as secure here, and takes less time.
constexpr const char* ciphers_tls13 =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
constexpr const char* groups = "X25519:P-256:P-384";

int number_of(tls::Version version) noexcept {
  switch (version) {
    case tls::Version::tls12:
      return TLS1_2_VERSION;
    case tls::Version::tls13:
      return TLS1_3_VERSION;
  }
  return TLS1_3_VERSION;
}

/// Which of the shared objects the calling thread uses.
std::size_t number_of_thread() noexcept {
  static std::atomic<std::size_t> threads{0};
  static thread_local const std::size_t number = threads++;
  return number;
}

/// The files that reload() reads.
std::vector<std::string> paths_of(const tls::Options& options,
                                  const std::vector<tls::Identity>& identities) {
  std::vector<std::string> paths;
  const auto add = [&](const std::string& path) {
    if (!path.empty()) paths.push_back(path);
  };
  for (const tls::Identity& identity : identities) {
    add(identity.certificate.path);
    add(identity.key.path);
    add(identity.ocsp_response_path);
  }
  add(options.authorities.path);
  return paths;
}

/// Returns whether both are the same, or certificates for one name with keys of different types.
bool share_name(const Identity& a, const Identity& b) noexcept {
  return &a == &b ||
         (!b.names.empty() && std::ranges::find(a.names, b.names.front()) != a.names.end());
}

}  // namespace

void log_reload(const tls::Failure* failure) noexcept {
  static constinit base::LogSite loaded(LogLevel::info, "tls", "certificates were loaded again");
  static constinit base::LogSite failed(LogLevel::error, "tls",
                                        "certificates could not be loaded again");
  if (failure == nullptr) {
    loaded.write({});
  } else {
    failed.write({{"reason", failure->message}});
  }
}

Loaded<std::string> encode_alpn(const std::vector<std::string>& protocols) {
  std::string encoded;
  for (const std::string& protocol : protocols) {
    if (protocol.empty() || protocol.size() > 255)
      return failure(tls::ErrorCode::bad_configuration,
                     "ALPN protocol '" + protocol + "' must have 1 to 255 bytes");
    encoded += static_cast<char>(protocol.size());
    encoded += protocol;
  }
  return encoded;
}

bool use_identity(SSL_CTX* context, const Identity& identity) noexcept {
  return SSL_CTX_use_cert_and_key(context, identity.certificate.get(), identity.key.get(),
                                  identity.chain.get(), 1) == 1;
}

bool use_identity(SSL* ssl, const Identity& identity) noexcept {
  return SSL_use_cert_and_key(ssl, identity.certificate.get(), identity.key.get(),
                              identity.chain.get(), 1) == 1;
}

int note_verification(int valid, X509_STORE_CTX* state) noexcept {
  if (valid == 1) return 1;
  const auto* const ssl = static_cast<const SSL*>(
      X509_STORE_CTX_get_ex_data(state, SSL_get_ex_data_X509_STORE_CTX_idx()));
  if (ssl == nullptr) return 0;
  Filter& filter = Filter::of(ssl);
  const int error = X509_STORE_CTX_get_error(state);
  std::string text;
  try {
    if (const X509* const certificate = X509_STORE_CTX_get_current_cert(state)) {
      text = describe(certificate) + ": " + X509_verify_cert_error_string(error);
      if (error == X509_V_ERR_CERT_HAS_EXPIRED)
        text += " on " + time_text(X509_get0_notAfter(certificate));
      if (error == X509_V_ERR_CERT_NOT_YET_VALID)
        text += " before " + time_text(X509_get0_notBefore(certificate));
      if (verification_error(error) == tls::ErrorCode::certificate_wrong_host) {
        const tls::Certificate decoded = decode(certificate);
        const bool has_names = !decoded.dns_names.empty() || !decoded.addresses.empty();
        text += ": it is not valid for " + filter.host();
        text += has_names ? ", but for" : ": it has no subject alternative names";
        for (const std::string& dns_name : decoded.dns_names)
          text.append(" ").append(printable(dns_name));
        for (const std::string& address : decoded.addresses) text.append(" ").append(address);
      }
    } else {
      text = X509_verify_cert_error_string(error);
    }
  } catch (const std::exception&) {
    text.clear();
  }
  const bool no_memory = error == X509_V_ERR_OUT_OF_MEM;
  filter.note_failure(no_memory ? -ENOMEM : outcome_of(verification_error(error)), std::move(text));
  return 0;
}

SSL_CTX* Generation::context() noexcept {
  const std::scoped_lock lock(mutex_);
  ContextPointer& mine = contexts_[number_of_thread() % contexts_.size()];
  if (mine == nullptr) mine = make_context();
  return mine.get();
}

ContextPointer Generation::make_context() noexcept {
  ERR_clear_error();
  ContextPointer context(SSL_CTX_new(method()));
  if (context == nullptr || !configure_common(context.get()) || !configure(context.get()))
    return nullptr;
  return context;
}

bool Generation::configure_common(SSL_CTX* context) noexcept {
  const tls::Options& options = common();
  if (SSL_CTX_set_app_data(context, this) != 1) return false;
  SSL_CTX_set_security_level(context, 2);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_clear_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context, 1);
  const char* const ciphers =
      options.ciphers_tls12.empty() ? ciphers_tls12 : options.ciphers_tls12.c_str();
  if (SSL_CTX_set_min_proto_version(context, number_of(options.version_min)) != 1 ||
      SSL_CTX_set_max_proto_version(context, number_of(options.version_max)) != 1 ||
      SSL_CTX_set_cipher_list(context, ciphers) != 1 ||
      SSL_CTX_set_ciphersuites(context, ciphers_tls13) != 1 ||
      SSL_CTX_set1_groups_list(context, groups) != 1)
    return false;
  // The last one becomes the default, so the first identity is set last.
  for (auto entry = identities_.rbegin(); entry != identities_.rend(); ++entry) {
    if (share_name(*entry, identities_.front()) && !use_identity(context, *entry)) return false;
  }
  if (key_log_.is_open()) SSL_CTX_set_keylog_callback(context, &log_key);
  if (authorities_ != nullptr) SSL_CTX_set1_cert_store(context, authorities_.get());
  return true;
}

Loaded<> Generation::load_common(const tls::Options& options,
                                 const std::vector<tls::Identity>& identities) {
  if (options.version_min > options.version_max)
    return failure(tls::ErrorCode::bad_configuration, "version_min is greater than version_max");
  auto encoded = encode_alpn(options.alpn);
  if (!encoded) return std::unexpected(std::move(encoded.error()));
  alpn_ = std::move(*encoded);
  files_.start(paths_of(options, identities));
  identities_.reserve(identities.size());
  for (const tls::Identity& identity : identities) {
    auto loaded = load_identity(identity);
    if (!loaded) return std::unexpected(std::move(loaded.error()));
    identities_.push_back(std::move(*loaded));
  }
  if (options.key_log_path.empty()) return {};
  constexpr int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  key_log_ = UniqueFd(::open(options.key_log_path.c_str(), flags, S_IRUSR | S_IWUSR));
  if (!key_log_.is_open()) {
    const int error = errno;
    return failure(system_error(error), options.key_log_path + ": " + std::strerror(error));
  }
  return {};
}

Loaded<> Generation::try_context() {
  if (context() != nullptr) return {};
  return queue_failure(tls::ErrorCode::bad_configuration, "the options of TLS");
}

/// One write for each line, so that lines of several threads do not mix.
void Generation::log_key(const SSL* ssl, const char* line) noexcept {
  const Generation& self = of(ssl);
  std::array<char, 512> text;
  const std::size_t size = std::strlen(line);
  if (size >= text.size()) return;
  std::memcpy(text.data(), line, size);
  text[size] = '\n';
  // There is no caller to whom an error could be reported.
  static_cast<void>(::write(self.key_log_.get(), text.data(), size + 1) < 0);
}

}  // namespace tambour::tls::detail
