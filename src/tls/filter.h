// TLS between a stream and its socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/detail/transport_filter.h>
#include <tambour/tls/session.h>

#include "io/kept_memory.h"
#include "io/transport.h"
#include "tls/message_limit.h"
#include "tls/openssl.h"
#include "tls/outcome.h"

namespace tambour::tls::detail {

/// One TLS connection. OpenSSL reads and writes through a BIO that calls this object, which makes
/// the transfers of the socket.
///
/// A write of OpenSSL never fails because the socket has no space: the records of one call are
/// collected in memory of the thread and sent together, and what the socket does not accept is kept
/// here. So no call of OpenSSL is repeated.
///
/// Thread: that of the stream. May be moved between threads while no call is running.
class Filter final : public io::TransportFilter, public io::KeptMemory, public tls::Session {
 public:
  /// `owner` keeps alive what the connection refers to, such as the context.
  [[nodiscard]] static std::unique_ptr<Filter> create(SSL_CTX* context, bool is_server,
                                                      std::shared_ptr<const void> owner) noexcept;
  ~Filter() override;

  [[nodiscard]] SSL* ssl() const noexcept { return ssl_.get(); }
  [[nodiscard]] static Filter& of(const SSL* ssl) noexcept {
    return *static_cast<Filter*>(SSL_get_app_data(ssl));
  }

  std::int32_t handshake(const io::Transport& below) noexcept override;
  std::int32_t read(const io::Transport& below, std::span<std::byte> into,
                    bool may_receive) noexcept override;
  std::int32_t write(const io::Transport& below, std::span<const iovec> from) noexcept override;
  std::int32_t flush(const io::Transport& below) noexcept override;
  std::int32_t shutdown_write(const io::Transport& below) noexcept override;
  void close(const io::Transport& below) noexcept override;
  [[nodiscard]] bool is_truncation(std::int32_t outcome) const noexcept override {
    return outcome == outcome_of(tls::ErrorCode::truncated);
  }
  [[nodiscard]] std::int32_t unread_input() const noexcept override {
    return outcome_of(tls::ErrorCode::unread_plaintext);
  }
  [[nodiscard]] const tls::Session& session() const noexcept override { return *this; }
  void keep_memory(bool is_kept) noexcept override;

  [[nodiscard]] tls::Version version() const noexcept override;
  [[nodiscard]] std::string_view cipher() const noexcept override;
  [[nodiscard]] std::string_view alpn() const noexcept override;
  [[nodiscard]] std::string_view server_name() const noexcept override;
  [[nodiscard]] bool is_resumed() const noexcept override;
  [[nodiscard]] tls::EarlyData early_data() const noexcept override;
  [[nodiscard]] bool is_handshake_complete() const noexcept override { return established_; }
  [[nodiscard]] std::optional<tls::Certificate> peer_certificate() const override;
  [[nodiscard]] std::string failure() const override;

  /// For a server: whether handshake() also returns when early data has been received.
  void start_early(bool early) noexcept;
  /// For a client: sends `data` as early data. Its size must be one that the session permits.
  /// Throws std::bad_alloc.
  void send_early(std::string data);
  /// Moves the early data that was received to the end of `into`, and returns its size. Throws
  /// std::bad_alloc.
  std::size_t take_early(Buffer& into);

  /// Whether the failure of a handshake that has started with early data is to be reported. Returns
  /// true once.
  [[nodiscard]] bool begin_report() noexcept { return !std::exchange(is_reported_, true); }

  /// Records why the handshake fails, before it begins or in a callback of OpenSSL. The first one
  /// counts.
  void note_failure(std::int32_t outcome, std::string text) noexcept;
  /// For callbacks of OpenSSL: the server asked for a certificate, and the client has none.
  void note_certificate_missing() noexcept { certificate_missing_ = true; }
  /// The name or address that a client verifies, or the name that it has sent to a server. In lower
  /// case, without a final dot.
  void set_host(std::string host) { host_ = std::move(host); }
  [[nodiscard]] const std::string& host() const noexcept { return host_; }
  /// Identifies the server among the sessions of a client.
  void set_session_key(std::string key) { session_key_ = std::move(key); }
  [[nodiscard]] const std::string& session_key() const noexcept { return session_key_; }
  [[nodiscard]] const std::shared_ptr<const void>& owner() const noexcept { return owner_; }

 private:
  friend struct Bio;
  class Call;
  /// See filter_early.cpp.
  struct Early {
    std::string to_send{};    ///< By a client.
    Buffer received{};        ///< By a server.
    bool receives = false;    ///< OpenSSL may return more.
    bool is_awaited = false;  ///< See start_early().
  };

  Filter(SslPointer ssl, std::shared_ptr<const void> owner) noexcept;

  [[nodiscard]] std::int32_t fail(int ssl_error) noexcept;
  [[nodiscard]] std::int32_t outcome_of_failure(int ssl_error) noexcept;
  /// For the BIO.
  [[nodiscard]] std::int32_t receive(std::span<std::byte> into) noexcept;
  void collect(std::span<const std::byte> bytes) noexcept;
  void keep(std::span<const std::byte> bytes) noexcept;
  void send_collected() noexcept;
  void send_close_notify() noexcept;
  void answer_key_update() noexcept;
  [[nodiscard]] bool is_input_used_up() const noexcept;

  void note_established() noexcept;
  void report_unfinished() noexcept;
  [[nodiscard]] int continue_handshake() noexcept;
  [[nodiscard]] int receive_early() noexcept;
  [[nodiscard]] int write_early() noexcept;
  [[nodiscard]] bool may_start() const noexcept;
  [[nodiscard]] std::int32_t read_early(const io::Transport& below, std::span<std::byte> into,
                                        bool& may_receive) noexcept;

  [[nodiscard]] std::size_t record_bytes() noexcept;
  [[nodiscard]] bool write_record(std::span<const std::byte> bytes) noexcept;
  [[nodiscard]] std::size_t write_pieces(std::span<const iovec> from, std::size_t record) noexcept;
  static void count_message(int is_sent, int version, int type, const void* bytes, std::size_t size,
                            SSL* ssl, void* unused) noexcept;

  std::shared_ptr<const void> owner_;  ///< Destroyed after `ssl_`.
  SslPointer ssl_;
  Buffer unsent_records_;
  std::unique_ptr<Early> early_;  ///< Null if there is no early data, or none any more.
  Call* call_ = nullptr;          ///< The running call.
  std::unique_ptr<const std::string> failure_text_;
  std::string host_;
  std::string session_key_;
  MessageLimit messages_;
  std::int64_t last_write_ns_ = 0;
  std::uint32_t written_in_burst_ = 0;  ///< Saturates.
  std::int32_t failure_ = 0;            ///< The outcome of all further transfers, if not 0.
  std::int32_t socket_error_ = 0;       ///< Of receiving.
  std::int32_t send_failure_ = 0;       ///< Of sending, the outcome of all further writes.
  bool socket_ended_ = false;
  bool established_ = false;
  bool is_reported_ = false;          ///< See begin_report().
  bool certificate_missing_ = false;  ///< See note_certificate_missing().
  bool close_notify_sent_ = false;
  bool peer_closed_ = false;  ///< close_notify was received.
};

}  // namespace tambour::tls::detail
