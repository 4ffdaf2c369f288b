// The connection behind a WebSocket: frames in both directions, time limits, and the closing
// handshake.
//
// The functions that wait are static and take a shared pointer, because the WebSocket may be
// destroyed while their tasks wait: the connection is then closed, and lives until they have ended.
//
// Most connections wait most of the time. What only a connection needs whose peer reads slowly, or
// which closes, is allocated then.
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
#include <tambour/detail/ready_node.h>
#include <tambour/http/websocket.h>
#include <tambour/loop/timer.h>
#include <tambour/net/byte_stream.h>
#include <tambour/task/event.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

#include "http/exchange/shutdown_hooks.h"
#include "http/websocket/compression.h"
#include "http/websocket/peer_timers.h"
#include "http/websocket/shared_options.h"
#include "http/websocket/subscriber.h"
#include "http/websocket/underlying_stream.h"
#include "http_message/ws/extensions.h"
#include "http_message/ws/frame_parser.h"
#include "http_message/ws/frame_writer.h"
#include "loop/iteration_budget.h"

namespace tambour::http::detail::websocket {

class Connection final : private ShutdownHook, private PeerTimer {
 public:
  using Pointer = std::shared_ptr<Connection>;

  Connection(ByteStream stream, ws::Role role, OptionsPointer options, std::string subprotocol,
             const std::optional<ws::DeflateAgreement>& deflate);
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
  [[nodiscard]] Result<> try_send(WebSocketMessage&& message);
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
  /// Writes a message without queueing it. Returns false if nothing was written: queue it then.
  /// What the socket has not accepted is queued: call start_writing(). Throws std::bad_alloc; a
  /// part of the message may then have been written: call fail_sending().
  [[nodiscard]] bool write_message(const SharedMessage& message);
  /// With thousands of subscribers, a connection is rarely in a cache when it is written to.
  void prefetch_for_message() const noexcept;
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

  /// Sends a close frame when the server begins to shut down.
  void close_on(std::stop_token token);
  void close_on(ShutdownHooks& hooks) noexcept { hooks.add(*this); }

  // For a task that receives without a frame for each message. It has a Receiving, calls
  // next_message() until that returns false, and reads from the stream between begin_wait() and
  // end_wait().

  class Receiving;
  /// Stores the next message, or the error with which receive() fails. Returns false if more input
  /// is needed.
  [[nodiscard]] bool next_message(Result<WebSocketMessage>& message);
  /// As end_wait(), for a task that does not receive again after it was asked to stop:
  /// next_message() then stores ECANCELED.
  void note_received(Result<std::size_t> received) {
    const Result<> ended = end_wait(received);
    if (!ended) end_receiving(ended.error());
  }
  void begin_wait() noexcept;
  [[nodiscard]] Result<> end_wait(Result<std::size_t> received);
  static constexpr std::size_t read_bytes_max = std::size_t{64} * 1024;
  [[nodiscard]] UnderlyingStream& stream() noexcept { return stream_; }
  [[nodiscard]] Buffer& input() noexcept { return input_; }
  /// True if the other connections of the loop must run before the next message: pause().
  [[nodiscard]] bool is_budget_exhausted() noexcept {
    return budget_.is_exhausted(tambour::detail::loop::core_of(loop_));
  }
  [[nodiscard]] Task<> pause();

  [[nodiscard]] bool is_open() const noexcept { return stream_.is_open(); }
  [[nodiscard]] EventLoop& loop() const noexcept { return loop_; }
  [[nodiscard]] const std::string& subprotocol() const noexcept {
    return texts_ != nullptr ? texts_->subprotocol : no_text();
  }
  [[nodiscard]] bool has_compression() const noexcept { return compression_ != nullptr; }
  [[nodiscard]] std::size_t unsent_bytes() const noexcept {
    return queue_.size() + (backlog_ != nullptr ? backlog_->sending.size() : 0);
  }
  [[nodiscard]] std::optional<Duration> round_trip_time() const noexcept {
    if (round_trip_time_ < Duration::zero()) return std::nullopt;
    return round_trip_time_;
  }
  [[nodiscard]] CloseCode close_code() const noexcept { return close_code_; }
  [[nodiscard]] const std::string& close_reason() const noexcept {
    return texts_ != nullptr ? texts_->close_reason : no_text();
  }
  [[nodiscard]] const WebSocketStats& stats() const noexcept { return stats_; }

 private:
  enum class Step : std::uint8_t {
    part,    ///< A part of a message was appended.
    input,   ///< More input is needed.
    again,   ///< A part of a compressed message may have been received.
    failed,  ///< Nothing will be received any more: receive_error_.
  };
  /// What the stream has not accepted, and the task that waits for the stream to accept it.
  struct Backlog {
    explicit Backlog(Connection& self)
        : progress_timer(self.loop_, [&self] { self.check_progress(); }), tasks(self.loop_) {}

    Buffer sending;                  ///< What is left of the current write.
    std::size_t sending_before = 0;  ///< When the progress was last checked.
    std::string pong;                ///< The payload of the last ping that is not answered.
    bool owes_pong = false;
    bool is_writing = false;
    Timer progress_timer;
    TaskScope tasks;  ///< Last, because its task uses the others.
  };
  /// Writes what is queued in the next iteration of the loop, at the latest.
  struct DeferredWrite final : tambour::detail::ReadyNode {
    explicit DeferredWrite(Connection& connection) noexcept : ReadyNode(&run), self(connection) {}
    static void run(ReadyNode& node) { static_cast<DeferredWrite&>(node).self.start_writing(); }
    Connection& self;
  };
  /// What tasks wait for.
  struct Waits {
    explicit Waits(EventLoop& loop) : progress(loop), ended(loop) {}
    TaskEvent progress;  ///< Set and reset after each write, and when the connection fails.
    TaskEvent ended;     ///< Set when nothing will be received any more.
  };
  struct Drain {
    Connection& self;
    void operator()() const noexcept { self.begin_shutdown(); }
  };
  void begin_shutdown() noexcept override { begin_close(options_->shutdown_code); }

  // connection.cpp: receiving and time limits.

  [[nodiscard]] Step step(Buffer& into, std::size_t bytes_max, WebSocketPart& part);
  [[nodiscard]] Step parse(Buffer& into, std::size_t bytes_max, WebSocketPart& part);
  [[nodiscard]] Result<ws::FrameParser::Event> parse_compressible(Buffer& into,
                                                                  std::size_t bytes_max);
  [[nodiscard]] Step decompress(Buffer& into, std::size_t bytes_max, WebSocketPart& part);
  void restart_expired_control_count() noexcept;
  void handle_ping();
  void handle_pong() noexcept;
  void handle_close();
  Step violate(const Error& error);
  void end_receiving(const Error& error) noexcept;
  void fail(const Error& error) noexcept;
  friend class PeerTimers;
  void start_peer_timer(TimePoint deadline) noexcept {
    PeerTimers::start_at(loop_, *this, deadline);
  }
  /// After a time from now.
  void start_peer_timer(Duration delay) noexcept;
  void check_peer() noexcept;
  void send_keep_alive();

  // sending.cpp: sending.

  [[nodiscard]] Result<> check_sending() const noexcept;
  void append_message(WebSocketMessage&& message);
  void append_part(Buffer&& part, bool is_last, bool is_text);
  void queue_frames(Buffer frames);
  void count_message(const SharedMessage& message) noexcept;
  [[nodiscard]] bool has_room() const noexcept {
    return error_ || unsent_bytes() < options_->unsent_bytes_max;
  }
  [[nodiscard]] static Task<Result<>> wait_for_room(Pointer self);
  [[nodiscard]] static Task<Result<>> write_until(Pointer self, std::uint64_t position);
  [[nodiscard]] bool is_writing() const noexcept {
    return backlog_ != nullptr && backlog_->is_writing;
  }
  [[nodiscard]] Task<> write_backlog();
  void write_soon() noexcept;
  [[nodiscard]] bool is_write_deferred() const noexcept {
    return deferred_write_ != nullptr && deferred_write_->linked();
  }
  void check_progress() noexcept;
  void answer_ping();
  void append_pong(std::string_view payload);
  void wake_senders() noexcept;
  void release_backlog() noexcept;
  [[nodiscard]] Waits& waits();
  void notify_subscribers() noexcept;

  // closing.cpp: the closing handshake.

  [[nodiscard]] Result<> append_close(CloseCode code, std::string_view reason);
  void begin_close(CloseCode code, std::string_view reason = {}) noexcept;
  void start_close_timer() noexcept;
  [[nodiscard]] static Task<Result<>> wait_for_close(Pointer self);
  [[nodiscard]] static Task<> shut_down(Pointer self);
  class Closing;

  struct Texts {
    std::string subprotocol;
    std::string close_reason;
  };
  [[nodiscard]] static const std::string& no_text() noexcept {
    static const std::string none;
    return none;
  }

  // The flags fill the padding of PeerTimer.
  bool is_receiving_ = false;
  bool is_sending_compressed_ = false;  ///< The current sent message.
  bool is_closing_ = false;
  bool is_close_limited_ = false;  ///< The peer timer limits the closing handshake.
  bool has_sent_close_ = false;
  bool has_received_close_ = false;
  bool is_client_;

  EventLoop& loop_;
  Buffer input_;
  UnderlyingStream stream_;  ///< After the input, to which it may add bytes.
  OptionsPointer options_;
  std::unique_ptr<Texts> texts_;              ///< Null: both are empty.
  std::unique_ptr<Compression> compression_;  ///< Null if none was agreed on.
  ws::FrameParser parser_;
  ws::FrameWriter writer_;
  tambour::detail::loop::IterationBudget budget_;

  Buffer message_;  ///< The current message of receive(), whose task may have been cancelled.
  Buffer queue_;    ///< Frames that wait for the end of the current write.
  std::uint64_t queued_total_ = 0;  ///< Bytes of all frames that were ever queued.

  TimePoint received_at_;
  TimePoint stopped_receiving_at_;
  TimePoint pinged_at_ = never;  ///< Of the ping that was not answered; `never` if there is none.
  TimePoint last_ping_at_;
  TimePoint control_counted_since_;
  Duration round_trip_time_{-1};  ///< Negative: not measured.

  Error receive_error_{};  ///< Why nothing will be received any more.
  Error error_{};          ///< Why the connection was closed.
  CloseCode close_code_ = CloseCode::abnormal;
  WebSocketStats stats_;

  tambour::detail::IntrusiveList<Subscriber> subscribers_;
  std::unique_ptr<std::stop_callback<Drain>> drain_;  ///< Null: it has a ShutdownHook, or nothing.
  std::unique_ptr<Waits> waits_;                      ///< Null until a task waits.
  std::unique_ptr<DeferredWrite> deferred_write_;
  /// Null unless the stream has not accepted what was sent, shortly before or now. After everything
  /// that its task uses.
  std::unique_ptr<Backlog> backlog_;
};

/// While a task receives.
class Connection::Receiving {
 public:
  /// Aborts with a message if another task receives.
  explicit Receiving(Connection& self) noexcept;
  Receiving(const Receiving&) = delete;
  Receiving& operator=(const Receiving&) = delete;
  ~Receiving();

 private:
  Connection& self_;
};

}  // namespace tambour::http::detail::websocket
