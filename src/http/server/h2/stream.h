// One stream of HTTP/2 on the connection of a server: a request and its response.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/message.h>
#include <tambour/task/event.h>
#include <tambour/task/task.h>

#include "http/exchange/exchange.h"
#include "http/exchange/wire.h"
#include "http/h2/sending_stream.h"
#include "http_message/h2/message.h"
#include "http_message/h2/violation.h"

namespace tambour::http {

class H2Connection;
class H2Sender;
class H2Tunnel;

/// Ownership: owned by its connection, until its handler has ended and its response has been sent,
/// or it has been reset. Thread: that of the connection's loop.
class H2Stream final : public Wire, public H2SendingStream {
 public:
  H2Stream(H2Connection& connection, std::uint32_t id);
  ~H2Stream();

  /// True if the stream, which has ended, can serve another request.
  [[nodiscard]] bool is_reusable() const noexcept;
  /// As if it were new, except for the head and what it has allocated.
  void restart(std::uint32_t id) noexcept;

  [[nodiscard]] RequestHead& head() noexcept { return head_; }
  [[nodiscard]] detail::Exchange& exchange() noexcept { return exchange_; }

  /// The head has been decoded. Fails if its Content-Length is invalid.
  [[nodiscard]] std::expected<void, detail::h2::Violation> start(bool ends_stream);
  /// DATA has arrived; `flow_bytes` of the windows include padding.
  [[nodiscard]] std::expected<void, detail::h2::Violation> receive(Buffer&& data,
                                                                   std::uint32_t flow_bytes);
  /// The request is complete.
  [[nodiscard]] std::expected<void, detail::h2::Violation> end_request() noexcept;
  [[nodiscard]] bool is_request_complete() const noexcept { return is_request_complete_; }
  [[nodiscard]] Fields& received_trailers() noexcept { return trailers_; }
  [[nodiscard]] std::int64_t receive_window() const noexcept { return receive_window_; }
  /// True if the body is large and the handler reads it.
  [[nodiscard]] bool is_upload() const noexcept {
    constexpr std::uint64_t upload_bytes = std::uint64_t{64} * 1024;
    return received_bytes_ >= upload_bytes && received_.size() < received_bytes_;
  }

  /// Nothing more can be received or sent: reads and writes fail with `error`.
  void fail(const Error& error) noexcept;
  [[nodiscard]] const Error& error() const noexcept { return error_; }
  /// The client has reset the stream, and must send nothing on it any more.
  void reset_by_client() noexcept;
  [[nodiscard]] bool is_reset_by_client() const noexcept { return is_reset_by_client_; }
  /// True while the server lets the client send the rest of a request that was answered: see
  /// ServerOptions::discarded_bytes_max.
  [[nodiscard]] bool is_discarding(TimePoint now) const noexcept;
  [[nodiscard]] TimePoint discard_deadline() const noexcept { return discard_deadline_; }
  /// The handler has ended: what arrives is discarded.
  void handler_ended() noexcept;
  [[nodiscard]] bool has_tunnel() const noexcept { return tunnel_ != nullptr; }
  /// True if neither a handler nor the owner of a tunnel uses the stream.
  [[nodiscard]] bool is_unused() const noexcept { return has_handler_ended_ && tunnel_ == nullptr; }

  // For tunnels: a request with the method CONNECT, whose DATA are those of another protocol.
  [[nodiscard]] Task<Result<std::size_t>> read_tunnel(Buffer& into, std::size_t bytes_max);
  [[nodiscard]] Task<Result<>> write_tunnel(Buffer& from);
  [[nodiscard]] Result<> try_write_tunnel(Buffer& from) noexcept;
  void end_tunnel_output();
  /// The owner of the tunnel has closed or destroyed it.
  void close_tunnel() noexcept;
  /// The connection is about to be destroyed.
  void detach_tunnel() noexcept;
  [[nodiscard]] EventLoop& loop() const noexcept { return loop_; }

  [[nodiscard]] Task<Result<Buffer>> read(std::size_t bytes_max) override;
  [[nodiscard]] std::optional<std::uint64_t> body_length() const noexcept override;
  [[nodiscard]] std::optional<std::uint64_t> body_bytes_left() const noexcept override;
  [[nodiscard]] bool is_body_complete() const noexcept override {
    return is_tunnel_request() || (is_request_complete_ && received_.empty());
  }
  [[nodiscard]] const Fields& trailers() const noexcept override { return trailers_; }
  void hold_memory(std::size_t bytes) noexcept override;
  void set_body_bytes_max(std::uint64_t bytes_max) noexcept override {
    body_bytes_max_ = bytes_max;
  }
  void watch() override;
  void stop_watching() noexcept override {}

  [[nodiscard]] Result<> begin_interim(const ResponseHead& head) override;
  [[nodiscard]] Result<> begin(const ResponseHead& head, const BodyPlan& plan) override;
  [[nodiscard]] Result<> send_text(const ResponseHead& head, const BodyPlan& plan,
                                   std::string_view body) override;
  void write(Buffer&& piece) override;
  [[nodiscard]] Task<Result<>> write_file(const File& file, std::uint64_t offset,
                                          std::uint64_t size) override;
  [[nodiscard]] Result<> end(const Fields& trailers) override;
  [[nodiscard]] Task<Result<>> flush() override;

  [[nodiscard]] ByteStream take_stream() override;
  [[nodiscard]] const SocketStream& stream() const noexcept override;

 private:
  [[nodiscard]] bool is_tunnel_request() const noexcept { return head_.method == Method::connect; }
  /// True if the stream has, or has had, a tunnel.
  [[nodiscard]] bool had_tunnel() const noexcept { return alive_ != nullptr; }
  [[nodiscard]] bool may_end_tunnel() const noexcept;
  /// What the client still sends is not wanted.
  void begin_discarding() noexcept;
  [[nodiscard]] bool is_too_large() const noexcept;
  [[nodiscard]] Buffer take_received(std::size_t bytes_max);
  /// Returns uncredited bytes to the window of the stream, half of the window at a time.
  void renew_window() noexcept;
  void discard_received() noexcept;
  void send_continue();

  H2Connection& connection_;
  H2Sender& sender_;
  EventLoop& loop_;
  RequestHead head_;
  Fields trailers_;
  Buffer received_;
  detail::h2::BodyLength length_;
  std::optional<std::uint64_t> content_length_;
  std::uint64_t received_bytes_ = 0;
  std::uint64_t body_bytes_max_;
  std::int64_t receive_window_;
  std::uint32_t granted_window_;  ///< Its size, which may grow.
  std::uint32_t uncredited_ = 0;  ///< Bytes that were read and not returned to the window.
  bool is_request_complete_ = false;
  bool is_reset_by_client_ = false;
  bool has_handler_ended_ = false;
  std::size_t held_bytes_ = 0;  ///< By codecs of the handler.
  bool is_write_cut_ = false;   ///< The owner of the tunnel has bytes that were not taken.
  std::uint64_t discarded_bytes_ = 0;
  TimePoint discard_deadline_ = never;
  std::optional<std::uint64_t> length_left_;  ///< Of the response, if it was stated.
  H2Tunnel* tunnel_ = nullptr;
  /// Of a stream with a tunnel, whose tasks may be resumed after the stream was destroyed.
  std::shared_ptr<const bool> alive_;
  Error error_{};
  TaskEvent arrived_;
  detail::Exchange exchange_;  ///< Last, because its handler uses the others.
};

}  // namespace tambour::http
