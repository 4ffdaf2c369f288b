// A connection of HTTP/2 of a client: RFC 9113.
//
// One task reads frames and gives them to the streams, which their owners wait on. It never runs
// code of the program.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/http2.h>
#include <tambour/http/message.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/timer.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/event.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

#include "http/h2/client_stream.h"
#include "http/h2/frame_budget.h"
#include "http/h2/memory.h"
#include "http/h2/sender.h"
#include "http/h2/stream_table.h"
#include "http/h2/window_meter.h"
#include "http_message/h2/frame_parser.h"
#include "http_message/h2/hpack_decoder.h"
#include "http_message/h2/violation.h"
#include "loop/iteration_budget.h"

namespace tambour::http {

/// Ownership: owned by the pool of a client, until all of its streams have been destroyed.
/// Thread: that of the stream's loop.
class H2ClientConnection final {
 public:
  /// `changed` is invoked when can_open() or streams_max() may have changed. It must not destroy
  /// the connection. `stats` must outlive it.
  H2ClientConnection(SocketStream stream, const Http2ClientOptions& options,
                     const MessageLimits& limits, Http2ClientStats& stats,
                     Callback<void()> changed);
  H2ClientConnection(const H2ClientConnection&) = delete;
  H2ClientConnection& operator=(const H2ClientConnection&) = delete;
  ~H2ClientConnection() = default;

  /// Sends the connection preface, and begins to read. Throws std::bad_alloc.
  void start();

  [[nodiscard]] EventLoop& loop() const noexcept { return loop_; }
  [[nodiscard]] const SocketStream& socket() const noexcept { return stream_; }
  [[nodiscard]] bool can_open() const noexcept { return !is_draining_ && !has_failed_; }
  /// The streams that may be open at the same time.
  [[nodiscard]] std::size_t streams_max() const noexcept;
  /// True if a response has been completed on this connection.
  [[nodiscard]] bool was_used() const noexcept { return was_used_; }

  /// Set when the settings of the server have arrived, or the connection has ended.
  [[nodiscard]] TaskEvent& settings_arrived() noexcept { return settings_arrived_; }
  /// RFC 8441, section 3. Only known after the settings have arrived.
  [[nodiscard]] bool allows_connect_protocol() const noexcept { return allows_connect_protocol_; }

  // For streams.

  [[nodiscard]] H2Sender& sender() noexcept { return sender_; }
  [[nodiscard]] Result<> open(H2ClientStream& stream, const RequestHead& head,
                              std::optional<std::uint64_t> length, bool ends);
  void remove(H2ClientStream& stream, bool is_complete, detail::h2::ErrorCode code) noexcept;
  [[nodiscard]] std::uint32_t initial_receive_window() const noexcept { return initial_window_; }
  [[nodiscard]] std::uint32_t stream_window() const noexcept { return stream_window_; }
  /// Bytes of DATA have been used, or are not wanted: the server may send as many again.
  void discard(std::size_t bytes) noexcept;
  void send_window_update(std::uint32_t stream_id, std::uint32_t bytes) noexcept;

 private:
  [[nodiscard]] Task<> run();
  void send_preface();
  /// The functions below return false if the connection must end.
  [[nodiscard]] bool parse_input();
  [[nodiscard]] bool handle(detail::h2::Frame& frame);
  [[nodiscard]] bool on_data(detail::h2::Frame& frame);
  [[nodiscard]] bool on_headers(const detail::h2::Frame& frame);
  [[nodiscard]] bool on_settings(const detail::h2::Frame& frame);
  [[nodiscard]] bool on_ping(const detail::h2::Frame& frame);
  [[nodiscard]] bool on_window_update(const detail::h2::Frame& frame);
  [[nodiscard]] bool on_rst_stream(const detail::h2::Frame& frame);
  [[nodiscard]] bool on_goaway(const detail::h2::Frame& frame);
  [[nodiscard]] bool spend_idle_frame() noexcept;
  bool fail(detail::h2::ErrorCode code, std::string_view text) noexcept;
  bool fail(detail::h2::Violation violation) noexcept {
    return fail(code_of(violation), text_of(violation));
  }

  [[nodiscard]] H2ClientStream* find(std::uint32_t stream_id) noexcept;
  /// Removes the stream from the table. Returns false if it was not there.
  bool forget(std::uint32_t stream_id) noexcept;
  [[nodiscard]] bool is_idle_stream(std::uint32_t stream_id) const noexcept {
    return stream_id >= next_id_ || stream_id % 2 == 0;
  }
  void reset(H2ClientStream& stream, detail::h2::ErrorCode code, const Error& error) noexcept;
  void send_reset(std::uint32_t stream_id, detail::h2::ErrorCode code) noexcept;
  /// Ends all streams. Later ones cannot be opened.
  void end(const Error& error) noexcept;
  void measure_window(std::uint32_t bytes);
  void grow_windows() noexcept;
  void check_peer() noexcept;
  void ping_peer() noexcept;

  /// Identifies the answer to a PING.
  static constexpr std::string_view peer_ping = "alive...";

  EventLoop& loop_;
  Http2ClientOptions options_;
  Http2ClientStats& stats_;
  Callback<void()> changed_;
  SocketStream stream_;
  Buffer input_;
  detail::h2::FrameParser parser_;
  detail::h2::HpackDecoder decoder_;
  detail::h2::FieldLimits field_limits_;
  H2FrameBudget frame_budget_;
  detail::loop::IterationBudget budget_;
  std::uint32_t initial_window_;
  std::uint32_t stream_window_;
  std::uint32_t connection_window_;
  std::int64_t receive_window_;    ///< What the server may still send on all streams.
  std::int64_t unused_bytes_ = 0;  ///< Received, and not taken by programs.
  std::uint32_t next_id_ = 1;
  std::uint32_t peer_streams_max_;
  WindowMeter window_meter_;
  std::uint64_t sample_after_ = 0;  ///< Bytes to receive before the next measurement.
  TimePoint last_received_{};
  TimePoint active_since_{};  ///< When the first of the open streams was opened.
  TimePoint pinged_at_{};
  bool awaits_pong_ = false;
  bool allows_connect_protocol_ = false;
  bool is_draining_ = false;  ///< No more streams.
  bool has_failed_ = false;
  bool is_budget_exhausted_ = false;  ///< There are frames for the next iteration.
  bool was_used_ = false;
  TaskEvent settings_arrived_;
  Timer ping_timer_;
  H2BufferedBytes buffered_;
  H2Memory memory_;  ///< Before the sender, which counts what it buffers.
  H2Sender sender_;
  H2StreamTable<H2ClientStream*> streams_;
  TaskScope reader_;  ///< Last, because its task uses the others.
};

}  // namespace tambour::http
