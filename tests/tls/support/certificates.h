// Certificates for tests, made in memory with P-256 keys.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <tambour/tls/context.h>

namespace tambour::test {

struct CertificateOptions {
  std::string common_name = "server";
  /// Subject alternative names in OpenSSL's format: "DNS:example.org", "IP:127.0.0.1".
  std::vector<std::string> names{};
  /// Subject alternative names in DER format, instead of `names`; they may be malformed.
  std::string encoded_names{};
  /// Relative to now.
  std::chrono::seconds begins = std::chrono::hours(-1);
  std::chrono::seconds ends = std::chrono::hours(24);
  std::string purpose{};  ///< An extended key usage: "clientAuth".
  bool rsa = false;       ///< A key of 2048 bits instead of P-256.
};

struct Certified {
  std::string certificate;
  std::string key;

  [[nodiscard]] tls::Identity identity() const {
    return {.certificate = tls::Pem::memory(certificate), .key = tls::Pem::memory(key)};
  }
};

/// A certificate authority.
class Authority {
 public:
  explicit Authority(const std::string& name = "Test CA");
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;
  ~Authority();

  /// Aborts if OpenSSL fails.
  [[nodiscard]] Certified issue(const CertificateOptions& options) const;
  [[nodiscard]] const std::string& certificate() const noexcept { return pem_; }
  [[nodiscard]] tls::Pem pem() const { return tls::Pem::memory(pem_); }
  /// An OCSP response in DER format, signed by the authority.
  [[nodiscard]] std::string status_of(const Certified& certified, bool revoked,
                                      bool has_next_update = true) const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
  std::string pem_;
};

[[nodiscard]] Certified self_signed(const CertificateOptions& options);

/// Contexts for most tests: a server "localhost" at 127.0.0.1 and ::1, and a client that trusts it.
struct Contexts {
  Contexts() : Contexts(tls::ServerOptions(), tls::ClientOptions()) {}
  Contexts(tls::ServerOptions for_server, tls::ClientOptions for_client);

  static const Authority& authority();
  static const Certified& localhost();

  tls::ServerContext server;
  tls::ClientContext client;
  std::shared_ptr<std::string> last_failure = std::make_shared<std::string>();
};

}  // namespace tambour::test
