// The shared state of the contexts.
//
// A generation is what one call of create() or reload() has loaded. It does not change afterwards;
// its connections keep it alive.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tambour/base/unique_fd.h>
#include <tambour/detail/namespaces.h>
#include <tambour/loop/event_loop.h>
#include <tambour/tls/context.h>

#include "tls/context/counters.h"
#include "tls/context/identity.h"
#include "tls/context/source_files.h"
#include "tls/failure.h"
#include "tls/openssl.h"
#include "tls/resumption/sessions.h"
#include "tls/resumption/strike_register.h"
#include "tls/resumption/ticket_keys.h"
#include "tls_contract/context_state.h"

namespace tambour::tls::detail {

/// What the generations of servers and clients have in common.
class Generation {
 public:
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  /// The object for the calling thread, so that loops do not contend for its locks. Null if memory
  /// runs out. Thread: callable from any thread.
  [[nodiscard]] SSL_CTX* context() noexcept;

  [[nodiscard]] virtual const tls::Options& common() const noexcept = 0;
  [[nodiscard]] Counters& counters() const noexcept { return *counters_; }
  [[nodiscard]] SourceFiles& files() noexcept { return files_; }

  [[nodiscard]] static Generation& of(const SSL* ssl) noexcept {
    return *static_cast<Generation*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  }
  /// The protocols that it offers, in the format of the protocol.
  [[nodiscard]] const std::string& alpn() const noexcept { return alpn_; }

 protected:
  /// Shares the counters of `former`, which may be null. Throws std::bad_alloc.
  explicit Generation(const Generation* former)
      : counters_(former != nullptr ? former->counters_ : std::make_shared<Counters>()) {}
  ~Generation() = default;

  [[nodiscard]] Loaded<> load_common(const tls::Options& options,
                                     const std::vector<tls::Identity>& identities);
  /// Creates the object of the calling thread, and so validates the options.
  [[nodiscard]] Loaded<> try_context();
  [[nodiscard]] const std::vector<Identity>& identities() const noexcept { return identities_; }
  void set_authorities(StorePointer store) noexcept { authorities_ = std::move(store); }
  [[nodiscard]] X509_STORE* authorities() const noexcept { return authorities_.get(); }

 private:
  [[nodiscard]] virtual const SSL_METHOD* method() const noexcept = 0;
  [[nodiscard]] virtual bool configure(SSL_CTX* context) noexcept = 0;

  [[nodiscard]] ContextPointer make_context() noexcept;
  [[nodiscard]] bool configure_common(SSL_CTX* context) noexcept;
  static void log_key(const SSL* ssl, const char* line) noexcept;

  const std::shared_ptr<Counters> counters_;
  SourceFiles files_;
  std::vector<Identity> identities_;
  StorePointer authorities_;
  std::string alpn_;  ///< In the format of the protocol.
  UniqueFd key_log_;
  std::mutex mutex_;
  std::array<ContextPointer, 16> contexts_;  ///< More threads share them.
};

/// Sets the certificate, the key and the chain of a context or connection.
[[nodiscard]] bool use_identity(SSL_CTX* context, const Identity& identity) noexcept;
[[nodiscard]] bool use_identity(SSL* ssl, const Identity& identity) noexcept;
/// The callback of verification: records the certificate and the reason in the Filter.
int note_verification(int valid, X509_STORE_CTX* state) noexcept;

class ServerGeneration final : public Generation {
 public:
  /// Keeps the ticket keys of `former`, which may be null, if the options permit it.
  [[nodiscard]] static Loaded<std::shared_ptr<ServerGeneration>> load(
      tls::ServerOptions options, const ServerGeneration* former);
  explicit ServerGeneration(const ServerGeneration* former) : Generation(former) {}
  ServerGeneration(const ServerGeneration&) = delete;
  ServerGeneration& operator=(const ServerGeneration&) = delete;
  ~ServerGeneration();

  [[nodiscard]] const tls::ServerOptions& options() const noexcept { return options_; }
  [[nodiscard]] const std::shared_ptr<TicketKeys>& ticket_keys() const noexcept {
    return ticket_keys_;
  }

 private:
  [[nodiscard]] const tls::Options& common() const noexcept override { return options_; }
  [[nodiscard]] const SSL_METHOD* method() const noexcept override { return TLS_server_method(); }
  [[nodiscard]] bool configure(SSL_CTX* context) noexcept override;
  [[nodiscard]] bool configure_clients(SSL_CTX* context) noexcept;
  [[nodiscard]] bool compute_session_context() noexcept;
  [[nodiscard]] bool configure_early_data(SSL_CTX* context) noexcept;

  static ServerGeneration& of(const SSL* ssl) noexcept {
    return static_cast<ServerGeneration&>(Generation::of(ssl));
  }
  static int choose_identity(SSL* ssl, int* alert, void* unused) noexcept;
  static int choose_protocol(SSL* ssl, const unsigned char** chosen, unsigned char* size,
                             const unsigned char* offered, unsigned offered_size,
                             void* unused) noexcept;
  static int staple(SSL* ssl, void* unused) noexcept;
  static int use_ticket_key(SSL* ssl, unsigned char* name, unsigned char* iv,
                            EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac, int encrypt) noexcept;
  static int write_note(SSL* ssl, void* unused) noexcept;
  static SSL_TICKET_RETURN judge_ticket(SSL* ssl, SSL_SESSION* session, const unsigned char* name,
                                        std::size_t name_size, SSL_TICKET_STATUS status,
                                        void* unused) noexcept;
  static int accept_early_data(SSL* ssl, void* unused) noexcept;

  tls::ServerOptions options_;
  /// A session is resumed only by a server that verifies clients in the same way and with the same
  /// authorities.
  std::array<unsigned char, SSL_MAX_SID_CTX_LENGTH> session_context_{};
  IdentityTable table_;
  std::unordered_map<const X509*, const Identity*> stapled_;
  std::shared_ptr<TicketKeys> ticket_keys_;
  std::shared_ptr<StrikeRegister> strikes_;  ///< Null if no generation has permitted early data.
};

/// SHA-256.
using KeyDigest = std::array<unsigned char, 32>;

class ClientGeneration final : public Generation {
 public:
  [[nodiscard]] static Loaded<std::shared_ptr<ClientGeneration>> load(
      tls::ClientOptions options, const ClientGeneration* former);

  [[nodiscard]] const tls::ClientOptions& options() const noexcept { return options_; }
  [[nodiscard]] Sessions& sessions() noexcept { return sessions_; }
  ClientGeneration(const ClientGeneration&) = delete;
  ClientGeneration& operator=(const ClientGeneration&) = delete;
  ~ClientGeneration() { erase_secrets(options_.identities); }

 private:
  ClientGeneration(std::size_t sessions_max, const ClientGeneration* former)
      : Generation(former), sessions_(sessions_max) {}
  [[nodiscard]] const tls::Options& common() const noexcept override { return options_; }
  [[nodiscard]] const SSL_METHOD* method() const noexcept override { return TLS_client_method(); }
  [[nodiscard]] bool configure(SSL_CTX* context) noexcept override;

  static int note_certificate_missing(SSL* ssl, X509** certificate, EVP_PKEY** key) noexcept;
  static int keep_session(SSL* ssl, SSL_SESSION* session) noexcept;
  static int check_status(SSL* ssl, void* unused) noexcept;
  static int check_pinned_key(X509_STORE_CTX* state, void* self) noexcept;
  [[nodiscard]] Loaded<> load_pinned_keys();

  tls::ClientOptions options_;
  std::vector<KeyDigest> pinned_keys_;
  Sessions sessions_;
};

/// `failure` is null if the context was loaded.
void log_reload(const tls::Failure* failure) noexcept;

/// What the handles of a context share. Thread: callable from any thread.
template <class G>
class State {
 public:
  using Options = std::remove_cvref_t<decltype(std::declval<const G&>().options())>;

  [[nodiscard]] std::shared_ptr<G> current() const noexcept {
    const std::scoped_lock lock(mutex_);
    return current_;
  }

  /// Replaces the current generation by one with these options.
  [[nodiscard]] Loaded<> load(Options options) {
    auto loaded = G::load(std::move(options), current().get());
    if (!loaded) return std::unexpected(std::move(loaded.error()));
    const std::scoped_lock lock(mutex_);
    current_.swap(*loaded);
    return {};
  }

  /// Loads the files of the current generation again.
  [[nodiscard]] Loaded<> load_again() {
    for (;;) {
      const auto former = current();
      auto loaded = G::load(former->options(), former.get());
      log_reload(loaded ? nullptr : &loaded.error());
      if (!loaded) return std::unexpected(std::move(loaded.error()));
      const std::scoped_lock lock(mutex_);
      if (current_ != former) continue;  // Another thread has set other options meanwhile.
      current_.swap(*loaded);
      return {};
    }
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<G> current_;
};

class LoadedServerState final : public ServerState, public State<ServerGeneration> {
 public:
  [[nodiscard]] Task<Result<>> accept(SocketStream& stream, tls::ServerContext context,
                                      Start start) override;
  void count_displaced() noexcept override { current()->counters().count_displaced(); }
  [[nodiscard]] std::string save_ticket_keys() const override {
    return current()->ticket_keys()->save();
  }
};

class LoadedClientState final : public ClientState, public State<ClientGeneration> {};

/// Fails with bad_configuration.
[[nodiscard]] Loaded<std::string> encode_alpn(const std::vector<std::string>& protocols);

/// The state of a context; null if the context is empty. create() makes no other states.
[[nodiscard]] inline std::shared_ptr<LoadedServerState> state_of(
    const tls::ServerContext& context) noexcept {
  return std::static_pointer_cast<LoadedServerState>(ContextAccess::state(context));
}
[[nodiscard]] inline std::shared_ptr<LoadedClientState> state_of(
    const tls::ClientContext& context) noexcept {
  return std::static_pointer_cast<LoadedClientState>(ContextAccess::state(context));
}

/// The generation for a handshake on `loop`. If its files have changed, a task of the loop loads
/// them again for later handshakes.
[[nodiscard]] std::shared_ptr<ServerGeneration> generation_for_handshake(
    const tls::ServerContext& context, EventLoop& loop) noexcept;
[[nodiscard]] std::shared_ptr<ClientGeneration> generation_for_handshake(
    const tls::ClientContext& context, EventLoop& loop) noexcept;

}  // namespace tambour::tls::detail
