// A connection of HTTP/2 that a server has accepted: RFC 9113.
//
// One task reads frames and starts a handler for each request. Responses of handlers that do not
// wait are sent before the next read; other handlers are waited for by a task of their stream. The
// connection ends when the client has closed it, when it has been idle for too long, or when the
// client has broken a rule: GOAWAY says which one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <string_view>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/timer.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/event.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

#include "http/connection/input.h"
#include "http/exchange/date_clock.h"
#include "http/exchange/settings.h"
#include "http/h2/frame_budget.h"
#include "http/h2/memory.h"
#include "http/h2/sender.h"
#include "http/h2/stream_table.h"
#include "http/h2/token_budget.h"
#include "http/h2/window_meter.h"
#include "http/server/h2/counters.h"
#include "http/server/h2/record_memory.h"
#include "http/server/h2/stream.h"
#include "http_message/date.h"
#include "http_message/h2/frame_parser.h"
#include "http_message/h2/head_writer.h"
#include "http_message/h2/hpack_decoder.h"
#include "http_message/h2/violation.h"
#include "loop/iteration_budget.h"

namespace tambour::http {

/// Identifies the answer to the PING of the first GOAWAY.
inline constexpr std::string_view h2_drain_ping = "draining";

class H2Connection final {
 public:
  /// `received`: what has been read from the stream already. `stop` is the token of the task that
  /// calls serve().
  H2Connection(SocketStream stream, Buffer received, std::shared_ptr<const ServerSettings> settings,
               const std::stop_token& shutdown, std::stop_token stop);
  H2Connection(const H2Connection&) = delete;
  H2Connection& operator=(const H2Connection&) = delete;
  ~H2Connection();

  /// Serves until the connection has ended. Throws what a handler has thrown and could not be
  /// reported.
  [[nodiscard]] Task<> serve();

  // For streams.

  [[nodiscard]] EventLoop& loop() const noexcept { return loop_; }
  [[nodiscard]] H2Sender& sender() noexcept { return sender_; }
  [[nodiscard]] H2Memory& memory() noexcept { return memory_; }
  /// Null if memory is exhausted.
  [[nodiscard]] detail::h2::ResponseBlock* last_block() noexcept {
    if (last_block_ == nullptr) [[unlikely]]
      last_block_.reset(new (std::nothrow) detail::h2::ResponseBlock);
    return last_block_.get();
  }
  /// The Date field of a response that begins now.
  [[nodiscard]] std::string_view date() noexcept {
    return cached_date(date_clock_.wall_ns(detail::loop::core_of(loop_)));
  }
  [[nodiscard]] const SocketStream& socket() const noexcept { return stream_; }
  [[nodiscard]] const ServerOptions& options() const noexcept { return settings_->options; }
  [[nodiscard]] const std::shared_ptr<const ServerSettings>& settings() const noexcept {
    return settings_;
  }
  [[nodiscard]] const std::stop_token& shutdown() const noexcept { return shutdown_; }
  [[nodiscard]] const std::stop_token& stop() const noexcept { return stop_; }
  /// Which the settings announce.
  [[nodiscard]] std::uint32_t initial_stream_window() const noexcept;
  /// What the window of a stream grows to.
  [[nodiscard]] std::uint32_t stream_window() const noexcept { return stream_window_; }
  [[nodiscard]] bool has_ended_input() const noexcept { return has_ended_input_; }
  /// Bytes of DATA have been used, or discarded: the window of the connection may grow again.
  void credit(std::uint32_t bytes) noexcept;
  void send_window_update(std::uint32_t stream_id, std::uint32_t bytes) noexcept;
  /// `has_ended`: this end has sent everything, and its end.
  void tunnel_closed(H2Stream& stream, bool has_ended) noexcept;

 private:
  struct Drain {
    H2Connection& self;
    void operator()() const noexcept { self.begin_drain(); }
  };
  /// A stream that is gone. If this end has closed it, frames may still arrive.
  struct Closed {
    std::uint32_t stream_id = 0;
    bool may_receive = false;
  };

  struct EarlyPriority {
    std::uint32_t stream_id = 0;
    detail::h2::Priority priority{};
  };

  // Reading.

  void send_settings();
  [[nodiscard]] bool parse_input();
  [[nodiscard]] bool handle(detail::h2::Frame& frame);
  [[nodiscard]] bool begin_receiving() noexcept;
  [[nodiscard]] bool end_receiving(Result<std::size_t> received);
  /// True if something has to be done before the next read.
  [[nodiscard]] bool has_to_wait() noexcept;
  [[nodiscard]] Task<bool> wait_before_reading();
  [[nodiscard]] bool spend_idle_frame() noexcept;
  void count(H2Event event) noexcept { settings_->h2_counters->count(event); }
  bool fail(detail::h2::ErrorCode code, std::string_view text,
            H2Event event = H2Event::protocol_error) noexcept;
  bool fail(detail::h2::Violation violation) noexcept;

  [[nodiscard]] bool on_data(detail::h2::Frame& frame);
  void measure_window(const H2Stream& stream, std::uint32_t bytes);
  void grow_windows() noexcept;
  /// Of a PRIORITY_UPDATE that arrived before the stream.
  void apply_early_priority(H2Stream& stream) noexcept;
  void on_priority_update(const detail::h2::Frame& frame);
  [[nodiscard]] bool on_headers(const detail::h2::Frame& frame);
  void add(std::unique_ptr<H2Stream> stream);
  [[nodiscard]] bool has_too_many_streams() const noexcept;
  [[nodiscard]] bool on_request(const detail::h2::Frame& frame, detail::h2::FieldSection& section);
  [[nodiscard]] bool on_trailers(const detail::h2::Frame& frame, H2Stream& stream,
                                 detail::h2::FieldSection& section);
  [[nodiscard]] bool on_settings(const detail::h2::Frame& frame);
  [[nodiscard]] bool on_ping(const detail::h2::Frame& frame);
  [[nodiscard]] bool on_window_update(const detail::h2::Frame& frame);
  [[nodiscard]] bool on_rst_stream(const detail::h2::Frame& frame);
  [[nodiscard]] bool on_stream_error(std::uint32_t stream_id, detail::h2::ErrorCode code);

  // Streams.

  [[nodiscard]] H2Stream* find(std::uint32_t stream_id) noexcept;
  [[nodiscard]] bool is_idle_stream(std::uint32_t stream_id) const noexcept {
    return stream_id > last_stream_id_ || stream_id % 2 == 0;
  }
  void start_handler(H2Stream& stream);
  void start_waiting(Task<> wait);
  [[nodiscard]] Task<> wait_for_handler(H2Stream& stream);
  /// True while the client does not receive the responses to its other requests, and one of them is
  /// as urgent as this one. Each of the eight urgencies may have a handler more.
  [[nodiscard]] bool is_postponed(H2Stream& stream) noexcept;
  [[nodiscard]] Task<> start_handler_later(H2Stream& stream);
  void finish(H2Stream& stream);
  /// Ends the stream on both sides. The caller calls remove_if_done().
  void reset(H2Stream& stream, detail::h2::ErrorCode code, const Error& error) noexcept;
  void send_reset(std::uint32_t stream_id, detail::h2::ErrorCode code) noexcept;
  void remove_if_done(H2Stream& stream) noexcept;
  /// A spare stream, or a new one.
  [[nodiscard]] std::unique_ptr<H2Stream> make_stream(std::uint32_t stream_id);
  /// Keeps a stream that has ended for a later request, or destroys it.
  void keep_or_destroy(std::unique_ptr<H2Stream> stream) noexcept;
  /// Of a connection that has no stream. Returns false if it is too early.
  bool release_spares() noexcept;
  void note_closed(std::uint32_t stream_id, bool may_receive) noexcept;
  /// Null if it was not closed lately.
  [[nodiscard]] const Closed* find_closed(std::uint32_t stream_id) const noexcept;
  [[nodiscard]] bool spend_reset() noexcept;
  void report(std::exception_ptr thrown) noexcept;

  // The end.

  void begin_drain() noexcept;
  void end_drain() noexcept;
  void check_progress() noexcept;
  [[nodiscard]] bool check_client() noexcept;
  [[nodiscard]] TimePoint next_check() const noexcept;
  /// Calls check_progress() at `deadline`, or earlier.
  void check_by(TimePoint deadline) noexcept;
  [[nodiscard]] bool is_done() const noexcept { return is_draining_out_ && streams_.empty(); }
  [[nodiscard]] Task<> end_streams();
  [[nodiscard]] Task<> close_gracefully();
  /// `function` may remove other streams.
  template <class Function>
  void for_each_stream(Function function) {
    std::uint32_t stream_id = 0;
    for (auto next = streams_.begin(); next != streams_.end();
         next = streams_.upper_bound(stream_id)) {
      stream_id = next->first;
      function(*next->second);
      if (H2Stream* const stream = find(stream_id)) remove_if_done(*stream);
    }
  }
  void fail_streams(const Error& error) noexcept;
  /// Ends the read that the task waits for.
  void interrupt_reading(TimePoint deadline) noexcept;

  EventLoop& loop_;
  std::shared_ptr<const ServerSettings> settings_;
  std::stop_token shutdown_;
  std::stop_token stop_;
  SocketStream stream_;
  Input input_;
  detail::h2::FrameParser parser_;
  detail::h2::HpackDecoder decoder_;
  detail::h2::FieldLimits field_limits_;
  TokenBudget resets_;  ///< See Http2Options::resets_max.
  H2FrameBudget frame_budget_;
  detail::loop::IterationBudget budget_;
  std::int64_t receive_window_;
  std::uint32_t stream_window_;
  std::uint32_t connection_window_;
  std::uint32_t granted_window_;  ///< Of the connection, before it grows to connection_window_.
  WindowMeter window_meter_;
  std::uint32_t uncredited_ = 0;
  std::uint32_t last_stream_id_ = 0;
  std::uint32_t last_accepted_id_ = 0;
  std::array<Closed, 16> closed_{};  ///< The streams that were closed last.
  std::size_t next_closed_ = 0;
  /// Those of the closed streams on which the client may still be sending: as many as it may open.
  std::vector<Closed> receiving_;
  std::size_t next_receiving_ = 0;
  std::vector<EarlyPriority> early_priorities_;
  TimePoint idle_deadline_ = never;
  TimePoint settings_deadline_ = never;  ///< `never`: the client has acknowledged them.
  TimePoint received_at_;                ///< When something was received last.
  TimePoint ping_deadline_ = never;      ///< `never`: no answer to a PING is missing.
  bool is_receiving_ = false;
  bool has_ended_input_ = false;  ///< The client has closed or half-closed the connection.
  bool has_failed_ = false;       ///< A GOAWAY with an error was sent.
  bool is_draining_ = false;      ///< The first GOAWAY was sent.
  bool is_draining_out_ = false;  ///< The last one was sent: no stream is accepted.
  bool is_budget_exhausted_ = false;
  DateClock date_clock_;
  std::uint32_t delays_ = 0;  ///< Of the next read, because of Http2Options::resets_max.
  std::exception_ptr thrown_;
  /// Exceptions that the loop will report, oldest first; null until there is one.
  std::shared_ptr<std::vector<std::exception_ptr>> unreported_;
  TaskEvent emptied_;
  Timer drain_timer_;
  Timer progress_timer_;
  H2Memory memory_;  ///< Before the streams and the sender, which count what they buffer.
  H2Sender sender_;
  H2StreamTable<std::unique_ptr<H2Stream>> streams_;
  std::vector<std::unique_ptr<H2Stream>> spare_streams_;
  std::unique_ptr<detail::h2::ResponseBlock> last_block_;
  RecordMemory record_memory_;
  TimePoint spares_until_ = never;  ///< When the spare streams are destroyed, if none is open.
  /// The tasks that wait for handlers; null until there is one. After the streams.
  std::unique_ptr<TaskScope> waits_;
  std::optional<std::stop_callback<Drain>> drain_;
};

}  // namespace tambour::http
