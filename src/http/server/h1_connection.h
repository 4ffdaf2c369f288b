// A connection of HTTP/1.1 or HTTP/1.0 that a server has accepted.
//
// One task serves the connection: it reads requests, starts a handler for each in a scope of its
// own, and completes the response. While a handler waits, this task sends earlier responses and
// waits for the handler. Responses of handlers that do not wait are collected, and sent together
// when no further request is in the input.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/buffer.h>
#include <tambour/event_loop.h>
#include <tambour/task_event.h>
#include <tambour/task_scope.h>
#include <tambour/timer.h>

#include "http/exchange/exchange.h"
#include "http/exchange/settings.h"
#include "http_message/h1/parser.h"
#include "loop/turn.h"

namespace tambour::http::h1 {

/// The maximum size of a read.
inline constexpr std::size_t read_bytes = std::size_t{64} * 1024;

/// The number of Handled that a connection sets aside.
inline constexpr std::size_t left_max = 16;

/// A stream whose waits can be ended by a timer without closing it.
class InterruptibleStream final : public SocketStream {
 public:
  explicit InterruptibleStream(SocketStream&& stream) noexcept : SocketStream(std::move(stream)) {}
  using IoHandle::stop_waiting;
  /// Closes the connection so that the peer's reads fail with ECONNRESET.
  void reset() noexcept;
};

/// A write in progress. Its coroutine may be destroyed.
class Writing {
 public:
  Writing(bool& flag, Timer& timer, TaskEvent& ended) noexcept
      : flag_(flag), timer_(timer), ended_(ended) {
    flag_ = true;
  }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
  ~Writing() {
    flag_ = false;
    timer_.stop();
    ended_.set();
  }

 private:
  bool& flag_;
  Timer& timer_;
  TaskEvent& ended_;
};

/// Appends a part of a message. If an exception ends that, the message may have been cut: the
/// connection is then broken.
class Appending {
 public:
  explicit Appending(bool& is_broken) noexcept
      : is_broken_(is_broken), was_broken_(std::exchange(is_broken, true)) {}
  Appending(const Appending&) = delete;
  Appending& operator=(const Appending&) = delete;
  ~Appending() = default;

  void complete() noexcept { is_broken_ = was_broken_; }

 private:
  bool& is_broken_;
  bool was_broken_;
};

/// Notices that the client has closed the connection while a handler neither reads nor writes.
struct ClientWatch {
  explicit ClientWatch(EventLoop& loop) : reading(loop) {}

  std::stop_source disconnected;
  TaskScope reading;  ///< At most one task, which reads ahead.
};

/// What a handler gets.
struct Handled {
  explicit Handled(Exchange& exchange) noexcept : request(exchange), response(exchange) {}

  Request request;
  Response response;
};

class ServerConnection final : private Exchange {
 public:
  /// `stop` is the token of the task that calls serve().
  ServerConnection(SocketStream stream, std::shared_ptr<const ServerSettings> settings,
                   std::stop_token shutdown, std::stop_token stop);
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;
  ~ServerConnection() = default;

  /// Serves until the connection has ended. Throws what a handler has thrown, at the end.
  [[nodiscard]] Task<> serve();

 private:
  struct Drain {
    ServerConnection& self;
    void operator()() const noexcept { self.begin_drain(); }
  };

  // The requests (server_connection.cpp).
  [[nodiscard]] bool begin_receiving() noexcept;
  [[nodiscard]] bool end_receiving(Result<std::size_t> received);
  [[nodiscard]] Task<bool> begin_next_turn();
  void begin_exchange();
  void end_handled(bool is_left) noexcept;
  void update_now() noexcept;
  [[nodiscard]] Exchange& exchange() noexcept { return *this; }
  [[nodiscard]] Request& request() noexcept { return handled_->request; }
  [[nodiscard]] Response& response() noexcept { return handled_->response; }
  [[nodiscard]] const Response& response() const noexcept { return handled_->response; }
  void start_handler();
  void finish_response();
  void report_response() noexcept;
  void report_exception() noexcept;
  void pass_exception_on() noexcept;
  [[nodiscard]] Task<bool> discard_body();
  [[nodiscard]] Task<> close_gracefully();
  [[nodiscard]] Duration linger_limit() const noexcept;
  void reject(const Error& error);
  void send_status(Status status, std::string_view reason);
  void begin_drain() noexcept;
  void start_watching();
  [[nodiscard]] Task<> watch_client();
  [[nodiscard]] bool drains() const noexcept { return shutdown_.stop_requested(); }
  [[nodiscard]] const ServerOptions& options() const noexcept { return settings_->options; }

  // Exchange (server_exchange.cpp).
  [[nodiscard]] RequestHead& request_head() noexcept override { return parser_.head(); }
  [[nodiscard]] const SocketStream& stream() const noexcept override { return stream_; }
  [[nodiscard]] TimePoint received_at() const noexcept override { return received_at_; }
  [[nodiscard]] TimePoint begun_at() const noexcept override { return begun_at_; }
  [[nodiscard]] bool is_broken() const noexcept override { return is_broken_; }
  [[nodiscard]] std::stop_token disconnect_token() override;
  [[nodiscard]] const std::stop_token& shutdown_token() const noexcept override {
    return shutdown_;
  }
  [[nodiscard]] std::optional<std::uint64_t> body_length() const noexcept override;
  [[nodiscard]] bool body_ended() const noexcept override { return parser_.is_complete(); }
  [[nodiscard]] const Fields& trailers() const noexcept override { return parser_.trailers(); }
  void set_body_bytes_max(std::uint64_t bytes_max) noexcept override {
    parser_.set_body_bytes_max(bytes_max);
  }
  [[nodiscard]] Task<Result<Buffer>> read_body(std::size_t bytes_max) override;
  std::unexpected<Error> fail_body(const Error& error) noexcept override;
  Result<> send(Buffer body) override;
  [[nodiscard]] Task<Result<>> write(Buffer piece) override;
  [[nodiscard]] Task<Result<>> write_file(const File& file, std::uint64_t offset,
                                          std::uint64_t size) override;
  Result<> end(const Fields& trailers) override;
  [[nodiscard]] Task<Result<>> flush() override;
  [[nodiscard]] Task<Result<ByteStream>> upgrade() override;

  [[nodiscard]] Result<> begin_response(const BodyFraming& framing);
  [[nodiscard]] Result<> begin_stream();
  [[nodiscard]] Result<> check_tunnel() const noexcept;
  [[nodiscard]] Result<> add_to_body(Buffer piece);
  [[nodiscard]] bool is_too_long(std::uint64_t bytes) const noexcept;
  [[nodiscard]] bool is_cached(const File& file, std::uint64_t offset, std::uint64_t size) noexcept;
  [[nodiscard]] Task<Result<>> send_file(const File& file, std::uint64_t offset,
                                         std::uint64_t size);
  [[nodiscard]] bool sends_body() const noexcept { return method_ != Method::head; }
  /// True if the response never has a body, not even to GET.
  [[nodiscard]] bool is_bodiless() const noexcept;

  // Waits with time limits. A read is between start_reading() and end_reading(). Zero: no limit.
  void start_reading(Duration limit) noexcept;
  [[nodiscard]] Result<std::size_t> end_reading(Result<std::size_t> got) noexcept;
  // A write of sending_ is between begin_writing(), which returns false if there is none to make,
  // and end_writing().
  [[nodiscard]] bool begin_writing() noexcept;
  void end_writing(const Result<>& written) noexcept;
  void check_writing() noexcept;
  [[nodiscard]] std::uint64_t unsent() const noexcept { return sending_.size() + file_unsent_; }
  void use_body_time(Duration spent, std::size_t received) noexcept;

  EventLoop& loop_;
  std::shared_ptr<const ServerSettings> settings_;
  InterruptibleStream stream_;
  RequestParser parser_;
  loop::Turn turn_;
  std::unique_ptr<Handled> handled_ = std::make_unique<Handled>(exchange());
  std::vector<std::unique_ptr<Handled>> left_;  ///< By handlers that ended before their responses.
  std::size_t next_left_ = 0;                   ///< The index at which the next one is set aside.
  Method method_;        ///< Of the request, whose head the handler may change.
  BodyFraming framing_;  ///< Of the response.
  TimePoint received_at_{};
  TimePoint begun_at_{};
  Buffer in_;
  Buffer out_;                     ///< Appended to by responses.
  Buffer sending_;                 ///< Being written.
  std::uint64_t file_unsent_ = 0;  ///< What is left of a part of a file that is being sent.
  Timer read_timer_;
  Timer write_timer_;
  std::uint64_t unsent_before_ = 0;  ///< When the write timer was started.
  TaskEvent written_;
  Duration body_time_{};  ///< What is left of ServerOptions::body_timeout.
  TimePoint head_deadline_ = never;
  Error body_error_{};
  Error write_error_{};
  std::exception_ptr thrown_;
  std::shared_ptr<ServerConnection*> self_;  ///< Expires with this connection.
  std::stop_token shutdown_;
  bool is_idle_ = false;  ///< Waiting for the first byte of a request.
  bool has_served_ = false;
  bool persistent_ = true;
  bool expects_continue_ = false;
  bool lingers_ = false;
  bool is_closing_ = false;
  bool is_tunnel_ = false;  ///< The handler has the stream.
  bool is_broken_ = false;  ///< The response cannot be completed.
  bool read_expired_ = false;
  bool write_expired_ = false;
  bool is_writing_ = false;
  std::optional<std::stop_callback<Drain>> drain_;
  std::unique_ptr<ClientWatch> watch_;  ///< If the handler asks for it.
  TaskScope handlers_;                  ///< Last, because its tasks use the other members.
};

}  // namespace tambour::http::h1
