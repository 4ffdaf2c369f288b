// The connection behind a WebSocket: frames in both directions, time limits, and the closing
// handshake.
//
// The functions that wait are static and take a shared pointer, because the WebSocket may be
// destroyed while their tasks wait: the connection is then closed, and lives until they have ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/websocket.h>
#include <tambour/loop/timer.h>
#include <tambour/net/byte_stream.h>
#include <tambour/task/event.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

#include "http/websocket/compression.h"
#include "http/websocket/subscriber.h"
#include "http_message/ws/extensions.h"
#include "http_message/ws/frame_parser.h"
#include "http_message/ws/frame_writer.h"
#include "loop/iteration_budget.h"

namespace tambour::http::detail::websocket {

class Connection final {
 public:
  using Pointer = std::shared_ptr<Connection>;

  Connection(ByteStream stream, ws::Role role, std::shared_ptr<const WebSocketOptions> options,
             std::string subprotocol, const std::optional<ws::DeflateAgreement>& deflate);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { abort(); }

  // As the functions of WebSocket.

  [[nodiscard]] static Task<Result<WebSocketMessage>> receive(Pointer self);
  [[nodiscard]] static Task<Result<WebSocketPart>> receive_part(Pointer self, Buffer& into,
                                                                std::size_t bytes_max);
  [[nodiscard]] static Task<Result<>> send(Pointer self, WebSocketMessage message);
  [[nodiscard]] static Task<Result<>> send_part(Pointer self, Buffer part, bool is_last,
                                                bool is_text);
  [[nodiscard]] static Task<Result<>> flush(Pointer self);
  [[nodiscard]] static Task<Result<>> close(Pointer self, CloseCode code, std::string reason);
  [[nodiscard]] Result<> try_send(WebSocketMessage message);
  [[nodiscard]] Result<> ping(std::string_view payload);
  void abort() noexcept;

  // For topics.

  /// A message whose frame was serialized for many connections.
  struct SharedMessage {
    const Buffer& frame;
    std::size_t bytes;  ///< Of the message, before compression.
    bool is_compressed;
  };
  /// True if the frame of a whole message may be queued: not between the parts of another one.
  [[nodiscard]] bool can_queue_message() const noexcept {
    return !has_sent_close_ && !error_ && !writer_.is_within_message();
  }
  /// True if the peer can decompress messages with windows of this size.
  [[nodiscard]] bool accepts_window(int window_bits) const noexcept {
    return compression_ != nullptr && compression_->window_bits() >= window_bits;
  }
  /// Queues a message without writing it: call start_writing() after the last one. Throws
  /// std::bad_alloc.
  void queue_message(const SharedMessage& message);
  void start_writing() noexcept;
  /// Ends the connection, because a message was lost.
  void fail_sending(const Error& error) noexcept { fail(error); }
  [[nodiscard]] bool has_begun_close() const noexcept { return has_sent_close_ || error_; }
  /// Closes the connection because its peer reads too slowly.
  void close_slow() noexcept;
  void count_dropped(std::uint64_t messages) noexcept { stats_.messages_dropped += messages; }
  [[nodiscard]] bool is_client() const noexcept { return is_client_; }

  void add_subscriber(Subscriber& subscriber) noexcept { subscribers_.push_back(subscriber); }
  /// Null if there is none of this topic.
  [[nodiscard]] Subscriber* find_subscriber(const void* topic) const noexcept;
  [[nodiscard]] std::size_t count_subscribers() const noexcept;

  /// Sends a close frame when `token` asks for it.
  void close_on(std::stop_token token);

  [[nodiscard]] bool is_open() const noexcept { return stream_.is_open(); }
  [[nodiscard]] EventLoop& loop() const noexcept { return loop_; }
  [[nodiscard]] const std::string& subprotocol() const noexcept { return subprotocol_; }
  [[nodiscard]] bool has_compression() const noexcept { return compression_ != nullptr; }
  [[nodiscard]] std::size_t unsent_bytes() const noexcept {
    return queue_.size() + sending_.size();
  }
  [[nodiscard]] std::optional<Duration> round_trip_time() const noexcept {
    return round_trip_time_;
  }
  [[nodiscard]] CloseCode close_code() const noexcept { return close_code_; }
  [[nodiscard]] const std::string& close_reason() const noexcept { return close_reason_; }
  [[nodiscard]] const WebSocketStats& stats() const noexcept { return stats_; }

 private:
  static constexpr std::size_t read_bytes_max = std::size_t{64} * 1024;
  enum class Step : std::uint8_t {
    part,    ///< A part of a message was appended.
    input,   ///< More input is needed.
    again,   ///< A part of a compressed message may have been received.
    failed,  ///< Nothing will be received any more: receive_error_.
  };
  class Receiving;
  class Writing;
  struct Drain {
    Connection& self;
    void operator()() const noexcept { self.begin_close(self.options_->shutdown_code); }
  };

  // connection.cpp: receiving and time limits.

  [[nodiscard]] Step step(Buffer& into, std::size_t bytes_max, WebSocketPart& part);
  [[nodiscard]] Step parse(Buffer& into, std::size_t bytes_max, WebSocketPart& part);
  [[nodiscard]] Step decompress(Buffer& into, std::size_t bytes_max, WebSocketPart& part);
  void handle_ping();
  void handle_pong() noexcept;
  void handle_close();
  Step violate(const Error& error);
  void begin_wait() noexcept;
  [[nodiscard]] Result<> end_wait(Result<std::size_t> received);
  void end_receiving(const Error& error) noexcept;
  void fail(const Error& error) noexcept;
  void check_peer() noexcept;
  void send_keep_alive();

  // sending.cpp: sending.

  [[nodiscard]] Result<> check_sending() const noexcept;
  void append_message(WebSocketMessage message);
  void append_part(Buffer part, bool is_last, bool is_text);
  void queue_frames(Buffer frames);
  [[nodiscard]] static Task<Result<>> write_until(Pointer self, std::uint64_t position);
  [[nodiscard]] Task<Result<>> write_queue();
  [[nodiscard]] Task<> write_in_background();
  void check_progress() noexcept;
  void append_pong();
  void wake_senders() noexcept;
  void notify_subscribers() noexcept;

  // closing.cpp: the closing handshake.

  [[nodiscard]] Result<> append_close(CloseCode code, std::string_view reason);
  void begin_close(CloseCode code, std::string_view reason = {}) noexcept;
  void start_close_timer() noexcept;
  [[nodiscard]] static Task<Result<>> wait_for_close(Pointer self);
  [[nodiscard]] static Task<> shut_down(Pointer self);
  class Closing;

  EventLoop& loop_;
  ByteStream stream_;
  std::shared_ptr<const WebSocketOptions> options_;
  std::string subprotocol_;
  std::unique_ptr<Compression> compression_;  ///< Null if none was agreed on.
  ws::FrameLimits limits_;
  ws::FrameParser parser_;
  ws::FrameWriter writer_;
  tambour::detail::loop::IterationBudget budget_;

  Buffer input_;
  Buffer message_;  ///< The current message of receive(), whose task may have been cancelled.
  Buffer queue_;    ///< Frames that wait for the end of the current write.
  Buffer sending_;  ///< What is left of the current write.
  std::uint64_t queued_total_ = 0;  ///< Bytes of all frames that were ever queued.
  std::size_t sending_before_ = 0;  ///< When the progress was last checked.
  std::string pong_;                ///< The payload of the last ping that is not answered.
  bool owes_pong_ = false;

  Timer peer_timer_;      ///< Pings, pongs and the closing handshake.
  Timer progress_timer_;  ///< Writes.
  TimePoint received_at_;
  TimePoint stopped_receiving_at_;
  TimePoint pinged_at_ = never;  ///< Of the ping that was not answered; `never` if there is none.
  TimePoint last_ping_at_;
  TimePoint control_counted_since_;
  TimePoint close_deadline_ = never;
  std::optional<Duration> round_trip_time_;

  Error receive_error_{};  ///< Why nothing will be received any more.
  Error error_{};          ///< Why the connection was closed.
  bool is_receiving_ = false;
  bool is_writing_ = false;
  bool writes_in_background_ = false;
  bool is_sending_compressed_ = false;  ///< The current sent message.
  bool is_closing_ = false;
  bool has_sent_close_ = false;
  bool has_received_close_ = false;
  bool is_client_;
  CloseCode close_code_ = CloseCode::abnormal;
  std::string close_reason_;
  WebSocketStats stats_;

  tambour::detail::IntrusiveList<Subscriber> subscribers_;
  TaskEvent progress_;  ///< Set and reset after each write, and when the connection fails.
  TaskEvent ended_;     ///< Set when nothing will be received any more.
  std::optional<std::stop_callback<Drain>> drain_;
  TaskScope tasks_;  ///< Background writes. After everything that they use.
};

}  // namespace tambour::http::detail::websocket
