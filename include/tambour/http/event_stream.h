// Server-sent events: a response that stays open, and to which the server appends events. See the
// HTML Standard, section 9.2; browsers read it with EventSource.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/handler.h>
#include <tambour/task/task.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// An event that a server sends. Empty members are not sent.
struct ServerEvent {
  /// May contain any number of lines, whatever ends them; the client reads each line end as LF.
  /// Without data, the client dispatches no event, but keeps `id` and `retry`.
  std::optional<std::string_view> data{};
  std::string_view event{};  ///< The type; empty: "message".
  /// The client sends the last one in the field Last-Event-ID when it connects again. An empty
  /// string clears the client's last event ID; nullopt keeps it.
  std::optional<std::string_view> id{};
  /// The time after which the client connects again when the connection has ended.
  std::optional<std::chrono::milliseconds> retry{};
};

/// How an EventStream notices that the client has gone.
struct EventStreamOptions {
  /// After this time without data, a comment is sent, because proxies close connections that are
  /// silent, and only a write detects that a client has vanished. Zero: no comments.
  Duration keep_alive = std::chrono::seconds(15);
};

/// The event stream that serve_events() passes to its function.
///
/// Thread: must be used on the loop's thread of the connection.
class EventStream {
 public:
  /// For the library, which passes the stream to the handler.
  EventStream(Request& request, Response& response) noexcept
      : request_(&request), response_(&response) {}
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;
  ~EventStream() = default;

  /// The request that the stream answers.
  [[nodiscard]] Request& request() noexcept { return *request_; }
  /// The id of the last event that the client has received on an earlier connection; empty if there
  /// is none. Sent by the client: it may be any text.
  [[nodiscard]] std::string_view last_event_id() const noexcept {
    return request_->headers().get("Last-Event-ID").value_or("");
  }

  /// Sends an event. Waits until the kernel has accepted it: a client that reads slowly slows down
  /// the function. Fails like Response::write(), and with http::ErrorCode::bad_event if `event` or
  /// `id` contain a line end, or `id` a null byte; nothing is sent then. The text is not used after
  /// the call. Throws std::bad_alloc.
  [[nodiscard]] Task<Result<>> send(const ServerEvent& event);
  /// Sends lines that clients ignore. Fails like Response::write(). Throws std::bad_alloc.
  [[nodiscard]] Task<Result<>> comment(std::string_view text);
  /// True while a task waits in one of these functions.
  [[nodiscard]] bool is_sending() const noexcept { return is_sending_; }

 private:
  [[nodiscard]] Task<Result<>> send_text(Buffer text);

  Request* request_;
  Response* response_;
  bool is_sending_ = false;
};

/// A function that sends events until it returns. It is asked to stop, so that its waits fail with
/// ECANCELED, when the client has gone or accepts nothing any more, or the server begins to shut
/// down. It should return then.
using EventProducer = std::function<Task<>(EventStream&)>;

/// A handler that sends the events of `source`:
///
///   Task<> send_time(http::EventStream& events) {
///     while (co_await sleep_for(1s)) {
///       const auto sent = co_await events.send({.data = time_of_day()});
///       if (!sent) co_return;
///     }
///   }
///   router.get("/time", http::serve_events(send_time));
///
/// The response has Content-Type, "Cache-Control: no-store" unless the handler has set the field,
/// and "X-Accel-Buffering: no", which makes nginx pass on each event at once. Its head is sent
/// before `source` is called. HEAD gets only the head.
[[nodiscard]] Handler serve_events(EventProducer source, EventStreamOptions options = {});

/// Sends the events of `source` like serve_events(), for handlers that first check the request.
[[nodiscard]] Task<> send_events(Request& request, Response& response, EventProducer source,
                                 EventStreamOptions options = {});

}  // namespace tambour::http

#pragma GCC visibility pop
