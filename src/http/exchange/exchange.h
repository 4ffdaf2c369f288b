// One request and its response, on a connection of any version of HTTP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <source_location>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/message.h>
#include <tambour/http/request.h>
#include <tambour/http/response.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

#include "http/body/body_stream.h"
#include "http/exchange/detached_request.h"
#include "http/exchange/response_sink.h"
#include "http/exchange/settings.h"
#include "http/exchange/shutdown_hooks.h"
#include "http/exchange/wire.h"
#include "loop/core.h"
#include "net/pace/rate_budget.h"

namespace tambour::http {

/// Queues a part of a message. If an exception ends that, the message may have been cut: the
/// response is then broken.
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

namespace detail {

/// All policy of a server: runs the handler, answers errors, completes and reports responses, and
/// limits bodies. Its wire carries the messages.
///
/// Ownership: owned by the connection. One of HTTP/1 uses its exchange for one request after the
/// other. Thread: that of the connection's loop.
class Exchange final : public ResponseSink, public BodyStream {
 public:
  /// `stop` is the token of the task that serves the connection.
  Exchange(Wire& wire, EventLoop& loop, std::shared_ptr<const ServerSettings> settings,
           std::stop_token shutdown, std::stop_token stop);
  ~Exchange() = default;

  /// The hooks of the server, for what goes on without the exchange. The server outlives them.
  void set_shutdown_hooks(ShutdownHooks& hooks) noexcept { shutdown_hooks_ = &hooks; }
  /// Null unless they were set.
  [[nodiscard]] ShutdownHooks* shutdown_hooks() const noexcept { return shutdown_hooks_; }

  // The connection calls start(), start_handler(), waits for the tasks of handlers(), and calls
  // finish(). For a message that is not a request it calls reject() alone.

  /// Prefetches what the next request needs, outside of this object.
  void prefetch_handled() const noexcept;
  void start(RequestHead& head) noexcept;
  void start_handler();
  [[nodiscard]] TaskScope& handlers() noexcept { return handlers_; }
  /// Completes what the handler has left undone. `has_failed`: nothing can be sent any more.
  void finish(bool has_failed);
  void reject(RequestHead& head, const Error& error);
  /// Reads what the handler has not read of the body. Returns false if that is too much.
  [[nodiscard]] Task<bool> discard_body();

  [[nodiscard]] const ServerOptions& options() const noexcept { return settings_->options; }
  /// True if the connection must not carry a further request.
  [[nodiscard]] bool is_last() const noexcept { return is_last_; }
  /// True if the client may still be sending what is not read.
  [[nodiscard]] bool lingers() const noexcept { return lingers_; }
  /// Between requests: false if a task may still use the objects of a handler that has ended.
  [[nodiscard]] bool may_be_destroyed() const noexcept { return left_.empty(); }
  /// True if another request can be served: this one has been answered completely.
  [[nodiscard]] bool is_reusable() const noexcept {
    return !is_last_ && !is_broken_ && !is_tunnel_ && thrown_ == nullptr && left_.empty() &&
           handlers_.empty();
  }
  /// True if the handler has the stream.
  [[nodiscard]] bool is_tunnel() const noexcept { return is_tunnel_; }
  [[nodiscard]] bool is_shutting_down() const noexcept { return shutdown_.stop_requested(); }
  [[nodiscard]] std::exception_ptr take_exception() noexcept {
    return std::exchange(thrown_, nullptr);
  }

  // For handlers that upgrade the connection.

  /// Null after the end of the handler, and for a DetachedRequest.
  [[nodiscard]] static Exchange* of(Request& request) noexcept { return request.exchange_; }
  /// True if what the stream carries after upgrade() may go on without the exchange: it has the
  /// connection for itself.
  [[nodiscard]] bool can_continue() const noexcept { return is_tunnel_ && wire_.is_connection(); }
  /// To be called at the end of the handler if can_continue().
  void continue_with(Continuation continuation) noexcept {
    continuation_ = std::move(continuation);
  }
  /// After finish(): the task with which the connection goes on; empty: it ends. Takes the head of
  /// the request. Throws std::bad_alloc.
  [[nodiscard]] Task<> start_continuation();

  // The wire calls these.

  [[nodiscard]] const Error& body_error() const noexcept { return body_error_; }
  /// When a wait for the body that begins now fails: ServerOptions::body_timeout. Only the time in
  /// which a task waits for the body counts.
  [[nodiscard]] TimePoint body_deadline(std::int64_t now_ns) const noexcept;
  /// A wait since `begin_ns` has received `bytes`.
  void use_body_time(std::int64_t begin_ns, std::size_t bytes) noexcept;
  [[nodiscard]] bool expects_continue() const noexcept { return expects_continue_; }
  /// Before a wait for the body. Returns true if the client must be asked for it.
  [[nodiscard]] bool begin_body_wait() noexcept {
    return std::exchange(expects_continue_, false) && !response().has_begun();
  }
  /// A part of the body has arrived, or its end.
  void body_arrived(std::size_t bytes = 0) noexcept {
    expects_continue_ = false;
    body_bytes_ += bytes;
  }
  [[nodiscard]] bool is_watched() const noexcept { return disconnected_.has_value(); }
  /// The client has closed or half-closed the connection, or it has failed.
  void disconnected() noexcept;
  void count_sent(std::uint64_t bytes) noexcept { response().body_bytes_ += bytes; }
  [[nodiscard]] Appending append() noexcept { return Appending(is_broken_); }

  // Request and Response.

  /// Aborts with a message that names the calling function, unless the thread is the loop's.
  void check_thread(
      std::source_location function = std::source_location::current()) const noexcept {
    detail::loop::core_of(loop_).check_thread(function);
  }
  [[nodiscard]] RequestHead& head() const noexcept { return *head_; }
  [[nodiscard]] bool is_head() const noexcept { return method_ == Method::head; }
  /// True if the response never has a body, not even to GET.
  [[nodiscard]] bool is_bodiless(Status status) const noexcept {
    return has_no_body(status) || (method_ == Method::connect && is_success(status));
  }
  [[nodiscard]] RequestConnection connection() const noexcept {
    return RequestConnection(loop_, wire_.stream(), peer_);
  }
  [[nodiscard]] std::uint64_t body_bytes() const noexcept { return body_bytes_; }
  [[nodiscard]] TimePoint received_at() const noexcept { return received_at_; }
  [[nodiscard]] TimePoint begun_at() const noexcept { return begun_at_; }
  /// True if the response cannot be completed, or sent.
  [[nodiscard]] bool is_broken() const noexcept { return is_broken_; }
  /// The response cannot be completed: the connection is reset, so that the client notices.
  void abandon() noexcept { is_broken_ = true; }
  /// The body of the response has failed at its source. Before the head, the response is 502 unless
  /// the handler sends another one.
  void cut_response() noexcept {
    if (response().has_begun()) return abandon();
    is_cut_ = true;
  }
  [[nodiscard]] std::stop_token disconnect_token();
  [[nodiscard]] const std::stop_token& shutdown_token() const noexcept { return shutdown_; }
  [[nodiscard]] Task<Result<ByteStream>> upgrade();
  [[nodiscard]] Result<> send_error(Status status, std::string_view detail);
  [[nodiscard]] Task<Result<>> send_interim(Status status, Fields&& fields);
  /// The response if the handler sends none.
  std::unexpected<Error> reject_request(const Error& error, std::string detail);

  // BodyStream.

  [[nodiscard]] Fields& body_fields() noexcept override { return head_->fields; }
  [[nodiscard]] std::optional<std::uint64_t> body_length() const noexcept override {
    return wire_.body_length();
  }
  [[nodiscard]] bool is_body_complete() const noexcept override { return wire_.is_body_complete(); }
  [[nodiscard]] const Fields& body_trailers() const noexcept override { return wire_.trailers(); }
  void set_body_bytes_max(std::uint64_t bytes_max) noexcept override {
    wire_.set_body_bytes_max(bytes_max);
  }
  void hold_memory(std::size_t bytes) noexcept override { wire_.hold_memory(bytes); }
  [[nodiscard]] Task<Result<Buffer>> read_body(std::size_t bytes_max) override {
    return wire_.read(bytes_max);
  }
  std::unexpected<Error> fail_body(const Error& error) noexcept override;

  // ResponseSink.

  [[nodiscard]] Result<> begin(ResponseHead& head, BodyPlan plan) override;
  [[nodiscard]] Result<> send(ResponseHead& head, BodyPlan plan, Buffer&& body) override;
  [[nodiscard]] Result<> send_text(ResponseHead& head, BodyPlan plan,
                                   std::string_view body) override;
  [[nodiscard]] Task<Result<>> write(Buffer&& piece) override;
  [[nodiscard]] Task<Result<>> write_file(const File& file, std::uint64_t offset,
                                          std::uint64_t size) override;
  [[nodiscard]] Result<> end(const Fields& trailers) override;
  [[nodiscard]] Task<Result<>> flush() override { return wire_.flush(); }

 private:
  friend class DetachedRequest;
  /// What a handler gets.
  struct Handled {
    Request request{nullptr};
    Response response{nullptr};
  };

  [[nodiscard]] Request& request() noexcept { return handled_->request; }
  [[nodiscard]] Response& response() noexcept { return handled_->response; }
  [[nodiscard]] const Response& response() const noexcept { return handled_->response; }
  /// What Request::reject() has recorded.
  struct Rejection {
    Status status = Status::bad_request;
    std::string detail;
  };

  void restart_response() noexcept;
  void complete_plan(BodyPlan& plan) const noexcept;
  void note_begin() noexcept;
  void note_end(std::size_t body_bytes) noexcept;
  void complete_response(bool has_failed);
  void answer_error(Status status, std::string_view detail);
  void render(Status status, std::string_view detail);
  [[nodiscard]] Result<> check_tunnel() const noexcept;
  void report_response() noexcept;
  void report_exception() noexcept;
  void pass_exception_on() noexcept;
  void end_use(bool is_left) noexcept;
  void update_now() noexcept;

  Wire& wire_;
  EventLoop& loop_;
  std::shared_ptr<const ServerSettings> settings_;
  RequestHead* head_ = nullptr;  ///< Owned by the wire.
  std::unique_ptr<Handled> handled_ = std::make_unique<Handled>();
  std::vector<std::unique_ptr<Handled>> left_;  ///< By handlers that ended before their responses.
  std::size_t next_left_ = 0;                   ///< The index at which the next one is set aside.
  Method method_;  ///< Of the request, whose head the handler may change.
  TimePoint received_at_{};
  TimePoint begun_at_{};
  net::RateBudget body_budget_;  ///< Suspended.
  Error body_error_{};
  std::uint64_t body_bytes_ = 0;  ///< Received, of the request.
  std::unique_ptr<Rejection> rejection_;
  std::exception_ptr thrown_;
  mutable tambour::detail::OwnedPointer<Endpoint> peer_;  ///< Once it was asked for.
  std::shared_ptr<Exchange*> self_;                       ///< Expires with this exchange.
  std::stop_token shutdown_;
  ShutdownHooks* shutdown_hooks_ = nullptr;
  Continuation continuation_;
  std::optional<std::stop_source> disconnected_;  ///< If the handler asks for it.
  bool has_ended_ = false;                        ///< The wire has the end of the response.
  bool is_last_ = false;
  bool lingers_ = false;
  bool is_tunnel_ = false;
  bool is_broken_ = false;
  bool is_cut_ = false;
  bool expects_continue_ = false;
  TaskScope handlers_;  ///< Last, because its tasks use the other members.
};

}  // namespace detail

}  // namespace tambour::http
