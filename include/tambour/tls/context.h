// The configuration of TLS: certificates, verification, versions and application protocols.
//
// A context is created once and shared by all connections, on all loops. Files that change, such as
// renewed certificates, are loaded again; open connections keep the former certificates.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/tls/error.h>
#include <tambour/tls/session.h>
#include <tambour/tls/stats.h>  // IWYU pragma: export

namespace tambour::tls::detail {
struct AlpnList;
class ClientState;
struct ContextAccess;
class ServerState;
}  // namespace tambour::tls::detail

#pragma GCC visibility push(default)

namespace tambour::tls {

/// Why TLS could not be set up, or why a handshake failed.
struct Failure {
  Error error{};
  /// One line that names the file, or the certificate and the reason: "certificate CN=example.org,
  /// issued by CN=Example CA: certificate has expired on 2026-01-31".
  std::string message{};
};

/// A text in PEM format, or the path of a file that contains it.
struct Pem {
  std::string path{};
  std::string text{};  ///< Used if `path` is empty.

  [[nodiscard]] bool empty() const noexcept { return path.empty() && text.empty(); }
  /// Of a file, which is read when the context is created or reloaded, or of a text.
  [[nodiscard]] static Pem file(std::string path) { return {.path = std::move(path)}; }
  [[nodiscard]] static Pem memory(std::string text) { return {.text = std::move(text)}; }
};

/// A certificate and its private key.
struct Identity {
  Pem certificate{};  ///< The certificate, then the certificates of its chain, without the root.
  Pem key{};          ///< Empty: in the same PEM text as the certificate.
  std::string key_password{};  ///< If the key is encrypted.
  /// The names for which a server uses the certificate: "example.org", "*.example.org". Empty: the
  /// DNS names in the certificate.
  std::vector<std::string> server_names{};
  /// The path of an OCSP response in DER format, which a server sends to clients that ask for it
  /// (stapling). Empty: none.
  std::string ocsp_response_path{};
};

/// Whether a server asks clients for a certificate.
enum class PeerCertificate : std::uint8_t {
  none,
  /// A client may send one. If it is not valid, the handshake fails.
  optional,
  required,
};

/// Whether a client checks that the certificate of the server is not revoked (OCSP stapling).
enum class Revocation : std::uint8_t {
  off,
  /// Asks for the status. A server that sends none is accepted, one whose certificate is revoked is
  /// not.
  if_stapled,
  /// A server that sends no valid status is refused: certificate_status_missing.
  required,
};

/// What clients and servers have in common.
struct Options {
  Version version_min = Version::tls12;
  Version version_max = Version::tls13;
  /// The application protocols of this end, for example {"h2", "http/1.1"}, in the order of
  /// preference of the server. If both ends have some but none in common, the handshake fails with
  /// no_common_alpn. Each has 1 to 255 bytes.
  std::vector<std::string> alpn{};
  /// In OpenSSL's format. Empty: ECDHE with AES-GCM or ChaCha20-Poly1305; only for TLS 1.2.
  std::string ciphers_tls12{};
  /// Certificates of authorities in PEM format that are trusted, instead of those of the system. A
  /// server uses them to verify clients.
  Pem authorities{};
  /// The time limit of a handshake. 0: no limit.
  Duration handshake_timeout = std::chrono::seconds(10);
  /// The path of a file to which the keys of all sessions are appended, in the format of
  /// SSLKEYLOGFILE, for decryption with Wireshark. With this file, an attacker can decrypt and
  /// forge the connections. Empty: none; the environment variable is ignored.
  std::string key_log_path{};
  /// The files of certificates, keys, OCSP responses and authorities are examined for changes at
  /// most this often, when a handshake begins; then a worker of WorkerPool::files() loads them, as
  /// reload() does, for the handshakes that begin afterwards. If they cannot be loaded, the former
  /// ones stay in use until a file changes again. Zero: only reload() loads them.
  Duration file_check_interval = std::chrono::seconds(1);
  /// Invoked when changed files were loaded or could not be, on the thread of the loop whose
  /// handshake has noticed the change; loops invoke it concurrently. Must not throw.
  std::function<void(const Result<void, Failure>& result)> on_reload{};
  /// Invoked when a handshake has failed, on the thread of its loop; loops invoke it concurrently.
  /// Must not throw; std::bad_alloc is ignored. `failure` names the certificate and the reason; its
  /// message is empty if memory has run out.
  std::function<void(const Failure& failure)> on_failure{};
};

/// What a ServerContext presents and demands.
struct ServerOptions : Options {
  /// At least one. A client that sends no name, or an unknown one, gets the first. Certificates
  /// with keys of different types for the same name are all used.
  std::vector<Identity> identities{};
  /// If true, a client that sends an unknown name is refused with unknown_server_name.
  bool refuse_unknown_names = false;
  PeerCertificate client_certificate = PeerCertificate::none;
  /// Sessions can be resumed within this time (at most 7 days), by tickets whose key changes after
  /// half of it. A client with a certificate is verified again when this time has passed since it
  /// was verified, or its certificate has expired. Zero disables resumption.
  std::chrono::seconds session_lifetime = std::chrono::hours(24);
  /// At least 32 random bytes that all processes of a service share, so that a session can be
  /// resumed by any of them: on other machines, and after a restart. With this secret, an attacker
  /// can decrypt recorded sessions that were resumed; replace it with reload() from time to time.
  /// Empty: the keys of tickets are random and known only to this context.
  std::string ticket_secret{};
  /// The result of InheritedListeners::ticket_keys(), so that sessions of the former process of a
  /// restart are resumed. Secret. Has no effect with a ticket_secret. Only create() uses it.
  std::string inherited_ticket_keys{};
  /// The number of bytes that a client may send with its first packets, before the handshake is
  /// complete (0-RTT, TLS 1.3): at most `early_data_bytes_limit`. An attacker can replay them, so a
  /// server must not act on them without a check: see tls/early_data.h. Without a handler that
  /// reads them early, they are read like other bytes when the handshake is complete; a replayed
  /// handshake never completes. Zero: early data is rejected.
  std::size_t early_data_bytes_max = 0;
  static constexpr std::size_t early_data_bytes_limit = 16384;
};

/// What a ClientContext presents and demands.
struct ClientOptions : Options {
  /// The certificate of the client. At most one.
  std::vector<Identity> identities{};
  Revocation revocation = Revocation::if_stapled;
  /// The number of sessions that are kept for resumption, of all servers together. Zero disables
  /// resumption. A session is resumed until the certificate of the server expires, at most 24 hours
  /// after it was verified; then the handshake is a full one, which verifies it again.
  std::size_t sessions_max = 1000;
  /// SHA-256 digests of public keys (SubjectPublicKeyInfo) in base64, as in "pin-sha256" of RFC
  /// 7469. If not empty, a server must have one of these keys, and neither its chain nor its name
  /// is verified: for servers that are known by their key, RFC 7858, section 4.2. Stapled OCSP
  /// responses are not looked at, because a chain would be needed to verify them; create() fails
  /// with bad_configuration if `revocation` is tls::Revocation::required.
  std::vector<std::string> pinned_keys{};
  /// Accepts any certificate of any server: an attacker who controls the network can read and
  /// change all bytes. Only for tests.
  bool insecure_skip_verify = false;
};

/// The TLS configuration of servers.
///
/// Ownership: a handle; copies share one state.
/// Thread: callable from any thread. The same handle must not be assigned to and used concurrently.
class ServerContext {
 public:
  /// Empty: stands for no TLS.
  ServerContext() noexcept = default;

  /// Loads and validates everything. Fails with a tls::ErrorCode of the last group, with the errno
  /// value of opening a file, and with ENOMEM.
  [[nodiscard]] static Result<ServerContext, Failure> create(ServerOptions options);

  /// Loads the files again at once, or other options. New handshakes use them from now on; open
  /// connections are not affected. If it fails, as create() does, nothing changes. Sessions
  /// continue to be resumable if clients are verified as before, with the same authorities. Reads
  /// files: do not call it on the thread of a busy loop, but on a worker (WorkerPool).
  [[nodiscard]] Result<void, Failure> reload() const;
  [[nodiscard]] Result<void, Failure> reload(ServerOptions options) const;

  /// Thread: callable from any thread. Throws std::bad_alloc.
  [[nodiscard]] Stats stats() const;
  /// tls::Options::alpn of the current options; empty for an empty context. Throws std::bad_alloc.
  [[nodiscard]] std::vector<std::string> alpn() const;

  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }

 private:
  friend struct detail::ContextAccess;
  explicit ServerContext(std::shared_ptr<detail::ServerState> state) noexcept
      : state_(std::move(state)) {}

  std::shared_ptr<detail::ServerState> state_;
};

/// The TLS configuration of clients. The certificate of a server is verified for the host name, or
/// the address, to which the client connects. A wildcard, such as "*.example.org", stands for one
/// label of letters, digits, hyphens and underscores.
///
/// Ownership: a handle; copies share one state.
/// Thread: callable from any thread. The same handle must not be assigned to and used concurrently.
class ClientContext {
 public:
  /// Empty: stands for no TLS.
  ClientContext() noexcept = default;

  /// Fails like tls::ServerContext::create().
  [[nodiscard]] static Result<ClientContext, Failure> create(ClientOptions options = {});

  /// Like tls::ServerContext::reload(). Sessions of the former options are not resumed.
  [[nodiscard]] Result<void, Failure> reload() const;
  [[nodiscard]] Result<void, Failure> reload(ClientOptions options) const;

  /// A handle of the same context, with the same certificates, sessions and counters, whose
  /// handshakes offer these protocols instead of tls::Options::alpn. Fails with bad_configuration
  /// if one has not 1 to 255 bytes, or the context is empty.
  [[nodiscard]] Result<ClientContext, Failure> with_alpn(std::vector<std::string> protocols) const;

  /// Thread: callable from any thread. Throws std::bad_alloc.
  [[nodiscard]] Stats stats() const;
  /// The protocols of with_alpn(), or else tls::Options::alpn of the current options; empty for an
  /// empty context. Throws std::bad_alloc.
  [[nodiscard]] std::vector<std::string> alpn() const;

  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }

 private:
  friend struct detail::ContextAccess;
  explicit ClientContext(std::shared_ptr<detail::ClientState> state) noexcept
      : state_(std::move(state)) {}

  std::shared_ptr<detail::ClientState> state_;
  std::shared_ptr<const detail::AlpnList> alpn_;  ///< Null: that of the options.
};

}  // namespace tambour::tls

#pragma GCC visibility pop
