// Makes authorities and certificates when a test needs them.
#include "tls/support/certificates.h"

#include <atomic>
#include <cstdlib>

#include <openssl/evp.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

namespace tambour::test {
namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

struct Key {
  explicit Key(bool rsa) : key(rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256")) {
    check(key != nullptr);
  }
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;
  ~Key() { EVP_PKEY_free(key); }
  EVP_PKEY* key;
};

struct Certificate {
  Certificate() : certificate(X509_new()) { check(certificate != nullptr); }
  explicit Certificate(const std::string& pem) {
    BIO* const bio = BIO_new_mem_buf(pem.data(), int(pem.size()));
    certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
    BIO_free(bio);
    check(certificate != nullptr);
  }
  Certificate(const Certificate&) = delete;
  Certificate& operator=(const Certificate&) = delete;
  ~Certificate() { X509_free(certificate); }
  X509* certificate;
};

template <class Write>
std::string text_of(Write&& write) {
  BIO* const bio = BIO_new(BIO_s_mem());
  check(write(bio) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, std::size_t(size));
  BIO_free(bio);
  return text;
}

void add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  check(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

void add_encoded_names(X509* certificate, const std::string& encoded) {
  ASN1_OCTET_STRING* const value = ASN1_OCTET_STRING_new();
  check(ASN1_OCTET_STRING_set(value, reinterpret_cast<const unsigned char*>(encoded.data()),
                              int(encoded.size())) == 1);
  X509_EXTENSION* const extension =
      X509_EXTENSION_create_by_NID(nullptr, NID_subject_alt_name, 0, value);
  check(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
  ASN1_OCTET_STRING_free(value);
}

void fill(X509* certificate, X509* issuer, EVP_PKEY* key, EVP_PKEY* issuer_key,
          const CertificateOptions& options, bool is_authority) {
  static std::atomic<long> serial{1000};
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), long(options.begins.count()));
  X509_gmtime_adj(X509_getm_notAfter(certificate), long(options.ends.count()));
  X509_set_pubkey(certificate, key);
  X509_NAME* const name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(options.common_name.c_str()),
                             -1, -1, 0);
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
  add_extension(certificate, issuer, NID_basic_constraints,
                is_authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
  add_extension(certificate, issuer, NID_subject_key_identifier, "hash");
  std::string names;
  for (const std::string& text : options.names) names += (names.empty() ? "" : ",") + text;
  if (!options.encoded_names.empty()) {
    add_encoded_names(certificate, options.encoded_names);
  } else if (!names.empty()) {
    add_extension(certificate, issuer, NID_subject_alt_name, names);
  }
  if (!options.purpose.empty())
    add_extension(certificate, issuer, NID_ext_key_usage, options.purpose);
  check(X509_sign(certificate, issuer_key, EVP_sha256()) > 0);
}

Certified certified(X509* certificate, EVP_PKEY* key) {
  return {.certificate = text_of([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); }),
          .key = text_of([&](BIO* bio) {
            return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

}  // namespace

struct Authority::Data {
  Key key{false};
  Certificate certificate;
};

Authority::Authority(const std::string& name) : data_(std::make_unique<Data>()) {
  fill(data_->certificate.certificate, data_->certificate.certificate, data_->key.key,
       data_->key.key, {.common_name = name, .ends = std::chrono::hours(1000)}, true);
  pem_ = certified(data_->certificate.certificate, data_->key.key).certificate;
}

Authority::~Authority() = default;

Certified Authority::issue(const CertificateOptions& options) const {
  const Key key(options.rsa);
  const Certificate certificate;
  fill(certificate.certificate, data_->certificate.certificate, key.key, data_->key.key, options,
       false);
  return certified(certificate.certificate, key.key);
}

std::string Authority::status_of(const Certified& certified, bool revoked,
                                 bool has_next_update) const {
  const Certificate certificate(certified.certificate);
  OCSP_BASICRESP* const basic = OCSP_BASICRESP_new();
  OCSP_CERTID* const id =
      OCSP_cert_to_id(EVP_sha1(), certificate.certificate, data_->certificate.certificate);
  ASN1_TIME* const now = X509_gmtime_adj(nullptr, -60);
  ASN1_TIME* const next = X509_gmtime_adj(nullptr, 3600);
  check(OCSP_basic_add1_status(
            basic, id, revoked ? V_OCSP_CERTSTATUS_REVOKED : V_OCSP_CERTSTATUS_GOOD, 0,
            revoked ? now : nullptr, now, has_next_update ? next : nullptr) != nullptr);
  check(OCSP_basic_sign(basic, data_->certificate.certificate, data_->key.key, EVP_sha256(),
                        nullptr, 0) == 1);
  OCSP_RESPONSE* const response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic);
  unsigned char* bytes = nullptr;
  const int size = i2d_OCSP_RESPONSE(response, &bytes);
  check(size > 0);
  std::string der(reinterpret_cast<char*>(bytes), std::size_t(size));
  OPENSSL_free(bytes);
  OCSP_RESPONSE_free(response);
  OCSP_BASICRESP_free(basic);
  OCSP_CERTID_free(id);
  ASN1_TIME_free(now);
  ASN1_TIME_free(next);
  return der;
}

Certified self_signed(const CertificateOptions& options) {
  const Key key(options.rsa);
  const Certificate certificate;
  fill(certificate.certificate, certificate.certificate, key.key, key.key, options, false);
  return certified(certificate.certificate, key.key);
}

const Authority& Contexts::authority() {
  static const Authority authority;
  return authority;
}

const Certified& Contexts::localhost() {
  static const Certified localhost = authority().issue(
      {.common_name = "localhost", .names = {"DNS:localhost", "IP:127.0.0.1", "IP:::1"}});
  return localhost;
}

Contexts::Contexts(tls::ServerOptions for_server, tls::ClientOptions for_client) {
  const auto note = [into = last_failure](const tls::Failure& failure) { *into = failure.message; };
  if (for_server.identities.empty()) for_server.identities.push_back(localhost().identity());
  if (for_client.authorities.empty()) for_client.authorities = authority().pem();
  if (!for_client.on_failure) for_client.on_failure = note;
  server = or_throw(tls::ServerContext::create(std::move(for_server)));
  client = or_throw(tls::ClientContext::create(std::move(for_client)));
}

}  // namespace tambour::test
