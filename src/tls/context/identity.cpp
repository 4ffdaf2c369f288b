// Loads certificates and keys, erases the text of keys, and finds the identity for a server name.
#include "tls/context/identity.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <openssl/err.h>
#include <openssl/pem.h>

#include <tambour/base/unique_fd.h>

#include "base/ascii.h"

namespace tambour::tls::detail {
namespace {

constexpr std::size_t file_bytes_max = std::size_t{16} * 1024 * 1024;
/// Longer names are not names: RFC 1035, section 2.3.4.
constexpr std::size_t name_bytes_max = 255;

std::string name_of(const tls::Pem& pem) { return pem.path.empty() ? "a PEM text" : pem.path; }

Loaded<SecretText> read_file(const std::string& path) {
  const auto failed = [&] {
    const int error = errno;
    return failure(system_error(error), path + ": " + std::strerror(error));
  };
  // For open(2), the path would end at its first null byte, and name another file.
  errno = EINVAL;
  if (path.contains('\0')) return failed();
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return failed();
  SecretText text(std::string(16384, '\0'));
  std::size_t size = 0;
  for (;;) {
    if (size == text.text().size()) {
      // Not with resize(), which would leave a copy in freed memory.
      SecretText larger(std::string(2 * size, '\0'));
      std::ranges::copy(text.text(), larger.text().begin());
      text = std::move(larger);
    }
    const ssize_t got = ::read(file.get(), text.text().data() + size, text.text().size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed();
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
    if (size > file_bytes_max) return failure(tls::ErrorCode::file_unreadable, path + ": too long");
  }
  text.text().resize(size);
  return text;
}

/// Never asks the terminal for a password.
int give_password(char* into, int size, int /*writes*/, void* password) noexcept {
  const auto& text = *static_cast<const std::string*>(password);
  if (text.empty() || text.size() > static_cast<std::size_t>(size)) return -1;
  std::ranges::copy(text, into);
  return static_cast<int>(text.size());
}

BioPointer bio_of(const std::string& text) noexcept {
  return BioPointer(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Loaded<> load_certificates(Identity& into, const std::string& text, const std::string& name) {
  const BioPointer bio = bio_of(text);
  if (bio != nullptr)
    into.certificate.reset(PEM_read_bio_X509_AUX(bio.get(), nullptr, nullptr, nullptr));
  if (into.certificate == nullptr)
    return queue_failure(tls::ErrorCode::file_unreadable, name + ": no certificate in PEM format");
  into.chain.reset(sk_X509_new_null());
  if (into.chain == nullptr) return failure(system_error(ENOMEM), "out of memory");
  while (X509* const next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    if (sk_X509_push(into.chain.get(), next) > 0) continue;
    X509_free(next);
    return failure(system_error(ENOMEM), "out of memory");
  }
  // The end of the text is not an error.
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
    return queue_failure(tls::ErrorCode::file_unreadable,
                         name + ": unreadable certificate in the chain");
  ERR_clear_error();
  return {};
}

Loaded<> validate_time(const X509* certificate) {
  const ASN1_TIME* const begin = X509_get0_notBefore(certificate);
  const ASN1_TIME* const end = X509_get0_notAfter(certificate);
  if (X509_cmp_current_time(begin) > 0)
    return failure(tls::ErrorCode::certificate_not_yet_valid,
                   describe(certificate) + ": not valid before " + time_text(begin));
  if (X509_cmp_current_time(end) < 0)
    return failure(tls::ErrorCode::certificate_expired,
                   describe(certificate) + ": has expired on " + time_text(end));
  return {};
}

/// Each certificate of the chain must have issued the one before it.
Loaded<> validate(const Identity& identity, const std::string& name) {
  if (X509_check_private_key(identity.certificate.get(), identity.key.get()) != 1) {
    ERR_clear_error();
    return failure(
        tls::ErrorCode::key_mismatch,
        name + ": the private key does not belong to the " + describe(identity.certificate.get()));
  }
  X509* last = identity.certificate.get();
  if (auto valid = validate_time(last); !valid) return valid;
  for (int i = 0; i < sk_X509_num(identity.chain.get()); ++i) {
    X509* const next = sk_X509_value(identity.chain.get(), i);
    if (auto valid = validate_time(next); !valid) return valid;
    if (X509_check_issued(next, last) != X509_V_OK)
      return failure(tls::ErrorCode::certificate_invalid,
                     name + ": the chain is not in order: " + describe(last) + ", is followed by " +
                         describe(next));
    last = next;
  }
  return {};
}

}  // namespace

void SecretText::erase(std::string& text) noexcept { OPENSSL_cleanse(text.data(), text.size()); }

void erase_secrets(std::vector<tls::Identity>& identities) noexcept {
  for (tls::Identity& identity : identities) {
    SecretText::erase(identity.certificate.text);
    SecretText::erase(identity.key.text);
    SecretText::erase(identity.key_password);
  }
}

Loaded<SecretText> read_pem(const tls::Pem& pem) {
  if (!pem.path.empty()) return read_file(pem.path);
  return SecretText(pem.text);
}

Loaded<Identity> load_identity(const tls::Identity& source) {
  ERR_clear_error();
  if (source.certificate.empty())
    return failure(tls::ErrorCode::bad_configuration, "an identity has no certificate");
  auto certificates = read_pem(source.certificate);
  if (!certificates) return std::unexpected(std::move(certificates.error()));
  Identity loaded;
  if (auto done = load_certificates(loaded, certificates->text(), name_of(source.certificate));
      !done)
    return std::unexpected(std::move(done.error()));
  const tls::Pem& key_source = source.key.empty() ? source.certificate : source.key;
  auto key = source.key.empty() ? std::move(certificates) : read_pem(source.key);
  if (!key) return std::unexpected(std::move(key.error()));
  const BioPointer bio = bio_of(key->text());
  auto* const password = const_cast<std::string*>(&source.key_password);
  if (bio != nullptr)
    loaded.key.reset(PEM_read_bio_PrivateKey(bio.get(), nullptr, give_password, password));
  if (loaded.key == nullptr)
    return queue_failure(tls::ErrorCode::file_unreadable,
                         name_of(key_source) + ": no readable private key in PEM format");
  if (auto valid = validate(loaded, name_of(source.certificate)); !valid)
    return std::unexpected(std::move(valid.error()));
  loaded.names = dns_names_of(loaded.certificate.get());
  if (!source.server_names.empty()) {
    loaded.names.clear();
    for (const std::string& server_name : source.server_names)
      loaded.names.push_back(base::lower_case(server_name));
  }
  if (!source.ocsp_response_path.empty()) {
    auto response = read_file(source.ocsp_response_path);
    if (!response) return std::unexpected(std::move(response.error()));
    loaded.ocsp_response.assign(response->text().begin(), response->text().end());
  }
  return loaded;
}

Loaded<StorePointer> load_authorities(const tls::Pem& pem) {
  ERR_clear_error();
  StorePointer store(X509_STORE_new());
  if (store == nullptr) return failure(system_error(ENOMEM), "out of memory");
  if (pem.empty()) {
    if (X509_STORE_set_default_paths(store.get()) != 1)
      return queue_failure(tls::ErrorCode::file_unreadable,
                           "the certificates of the system's authorities");
    ERR_clear_error();
    return store;
  }
  auto text = read_pem(pem);
  if (!text) return std::unexpected(std::move(text.error()));
  const BioPointer bio = bio_of(text->text());
  if (bio == nullptr) return failure(system_error(ENOMEM), "out of memory");
  std::size_t count = 0;
  while (const CertificatePointer next{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    if (X509_STORE_add_cert(store.get(), next.get()) != 1)
      return queue_failure(tls::ErrorCode::file_unreadable, name_of(pem));
    ++count;
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (count == 0 || !at_end)
    return queue_failure(tls::ErrorCode::file_unreadable,
                         name_of(pem) + ": no readable certificates in PEM format");
  ERR_clear_error();
  return store;
}

void IdentityTable::add(const Identity& identity) {
  for (const std::string& name : identity.names)
    by_name_[name.starts_with("*.") ? name.substr(1) : name].push_back(&identity);
}

std::span<const Identity* const> IdentityTable::find(std::string_view name) const noexcept {
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty() || name.size() > name_bytes_max || name.front() == '.') return {};
  std::array<char, name_bytes_max> place;
  std::ranges::transform(name, place.begin(), base::to_lower);
  const std::string_view lowered(place.data(), name.size());
  auto found = by_name_.find(lowered);
  if (found == by_name_.end()) {
    const std::size_t dot = lowered.find('.');
    if (dot == std::string_view::npos) return {};
    found = by_name_.find(lowered.substr(dot));
  }
  if (found == by_name_.end()) return {};
  return found->second;
}

}  // namespace tambour::tls::detail
