#include "tls/certificate.h"

#include <cstdio>
#include <memory>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "common/program.h"

namespace bench {
namespace {

constexpr long day_s = 24L * 60 * 60;

X509* make_certificate(EVP_PKEY* key) {
  X509* const created = X509_new();
  if (created == nullptr) return nullptr;
  X509_NAME* const name = X509_get_subject_name(created);
  const auto* const host = reinterpret_cast<const unsigned char*>("localhost");
  const bool done = X509_set_version(created, X509_VERSION_3) == 1 &&
                    ASN1_INTEGER_set(X509_get_serialNumber(created), 1) == 1 &&
                    X509_gmtime_adj(X509_getm_notBefore(created), -day_s) != nullptr &&
                    X509_gmtime_adj(X509_getm_notAfter(created), day_s) != nullptr &&
                    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, host, -1, -1, 0) == 1 &&
                    X509_set_issuer_name(created, name) == 1 &&
                    X509_set_pubkey(created, key) == 1 && X509_sign(created, key, EVP_sha256()) > 0;
  if (done) return created;
  X509_free(created);
  return nullptr;
}

}  // namespace

void write_certificate(const std::string& path) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                &EVP_PKEY_free);
  if (key == nullptr) fail("cannot create a key");
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(make_certificate(key.get()),
                                                                &X509_free);
  if (certificate == nullptr) fail("cannot create a certificate");
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) fail_errno(path);
  const bool written =
      PEM_write_X509(file, certificate.get()) == 1 &&
      PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1;
  if (std::fclose(file) != 0 || !written) fail("cannot write " + path);
}

}  // namespace bench
