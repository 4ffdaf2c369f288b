// The contract between contexts of TLS and the layers that use them: servers perform handshakes
// through it, so that a server without TLS needs no OpenSSL. The layer `tls` implements it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/task.h>
#include <tambour/tls/context.h>

namespace tambour::tls::detail {

/// When accept() returns.
enum class Start : std::uint8_t {
  when_complete,
  with_early_data,  ///< Also when early data has been received.
};

/// What the handles of the context of a server share. Thread: callable from any thread.
class ServerState {
 public:
  ServerState(const ServerState&) = delete;
  ServerState& operator=(const ServerState&) = delete;
  virtual ~ServerState() = default;

  /// Like tls::accept(), but if it fails, `stream` stays open for a last look at its endpoints. The
  /// caller must close it. `context` is that of this state, which the task keeps alive.
  [[nodiscard]] virtual Task<Result<>> accept(SocketStream& stream, tls::ServerContext context,
                                              Start start) = 0;
  /// Counts an unfinished handshake that the server has closed because there were too many.
  virtual void count_displaced() noexcept = 0;
  /// The keys with which the context encrypts and decrypts tickets, for
  /// tls::ServerOptions::inherited_ticket_keys of another process. Secret: the caller must erase
  /// it. Empty if the context has a ticket_secret. Throws std::bad_alloc.
  [[nodiscard]] virtual std::string save_ticket_keys() const = 0;

 protected:
  ServerState() = default;
};

/// What the handles of the context of a client share. Only the layer `tls` uses it.
class ClientState {
 public:
  ClientState(const ClientState&) = delete;
  ClientState& operator=(const ClientState&) = delete;
  virtual ~ClientState() = default;

 protected:
  ClientState() = default;
};

/// The protocols of ClientContext::with_alpn().
struct AlpnList {
  std::vector<std::string> names;
  std::string encoded;  ///< In the format of the protocol.
};

struct ContextAccess {
  /// Null: that of the generation.
  [[nodiscard]] static const AlpnList* alpn(const tls::ClientContext& context) noexcept {
    return context.alpn_.get();
  }
  /// Null if the context is empty.
  [[nodiscard]] static const std::shared_ptr<ServerState>& state(
      const tls::ServerContext& context) noexcept {
    return context.state_;
  }
  [[nodiscard]] static const std::shared_ptr<ClientState>& state(
      const tls::ClientContext& context) noexcept {
    return context.state_;
  }
};

}  // namespace tambour::tls::detail
