// Server-sent events as a client receives them: HTML Standard, section 9.2. http/event_stream.h
// sends them.
//
//   http::EventSource source(client, "https://example.org/news");
//   for (;;) {
//     const auto event = co_await source.next();
//     if (!event || !*event) co_return;
//     show((*event)->type, (*event)->data);
//   }
// The most common mistake: treating every event as new. After a lost connection, a server that
// sends no ids may repeat or skip events.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/http/body.h>
#include <tambour/http/client.h>
#include <tambour/http/fields.h>
#include <tambour/net/retry_policy.h>
#include <tambour/task/select.h>
#include <tambour/task/task.h>

namespace tambour::http::detail::event_source {
class EventParser;
class Source;
}  // namespace tambour::http::detail::event_source

#pragma GCC visibility push(default)

namespace tambour::http {

/// An event that a client has received. The text is as the server sent it, and is not checked to be
/// valid UTF-8.
struct ReceivedEvent {
  std::string type{};  ///< "message", unless the server has named another one.
  std::string data{};  ///< Its lines, separated by LF.
  std::string id{};    ///< The last id that the server has sent; empty: none.
};

/// The limits of an event stream that is read. Exceeding a limit ends the stream with an error,
/// because the following bytes could not be parsed.
struct EventLimits {
  /// Of a line, without its end.
  std::size_t line_bytes_max = std::size_t{1} * 1024 * 1024;
  /// Of the data of one event.
  std::size_t data_bytes_max = std::size_t{4} * 1024 * 1024;
  /// Of an id, which becomes the field Last-Event-ID of the next request.
  std::size_t id_bytes_max = std::size_t{4} * 1024;
};

/// Reads the events of one body, which may be that of the response to any request, for example to a
/// POST. Does not reconnect.
///
/// Lifetime: the body must exist longer. May be moved while no task waits.
/// Thread: must be used on the loop's thread of the body, by one task at a time.
class EventReader {
 public:
  /// `last_event_id` is the id of events before the server sends one. Throws std::bad_alloc.
  explicit EventReader(IncomingBody& body, const EventLimits& limits = {},
                       std::string last_event_id = {});
  EventReader(EventReader&& other) noexcept;
  EventReader& operator=(EventReader&& other) noexcept;
  ~EventReader();

  /// Waits for the next event; no value at the end of the body, where an incomplete event is
  /// discarded. Comments, and fields that the standard does not define, are skipped. Fails like
  /// IncomingBody::read(), and with http::ErrorCode::event_line_too_long and event_too_large. An
  /// error is final, ECANCELED too. Throws std::bad_alloc; what has arrived of an event is then
  /// lost, and further calls fail with ENOMEM.
  [[nodiscard]] Task<Result<std::optional<ReceivedEvent>>> next();

  /// The last id that the server has sent with an event, or alone; empty: none.
  [[nodiscard]] const std::string& last_event_id() const noexcept;
  /// The reconnection delay that the server has sent; no value if it has sent none.
  [[nodiscard]] std::optional<std::chrono::milliseconds> retry() const noexcept;

 private:
  IncomingBody* body_;
  tambour::detail::OwnedPointer<detail::event_source::EventParser> parser_;
  Buffer input_;
};

/// How an EventSource reconnects, and its limits.
struct EventSourceOptions {
  /// The delays before the client reconnects. `delay` is used until the server sends another one in
  /// a "retry" field; it doubles with each failed attempt, up to `delay_max`, which also limits the
  /// delay that the server sends; 100 ms are the least that a server can ask for. `attempts_max`
  /// counts failed attempts without a stream in between.
  RetryPolicy retry{.attempts_max = RetryPolicy::unlimited,
                    .delay = std::chrono::seconds(3),
                    .delay_max = std::chrono::minutes(1)};
  EventLimits limits{};
  /// If no byte arrives for this time, the client closes the stream and reconnects. Servers send
  /// comments to keep streams open: Tambour's every 15 seconds. Zero: no limit.
  Duration idle_timeout = std::chrono::minutes(5);
  /// Sent with the first request, for example an id that the program has stored.
  std::string last_event_id{};
  /// Fields of every request, in addition to Accept, Cache-Control and Last-Event-ID.
  Fields fields{};
};

/// Receives the events of a URL. Reconnects whenever the connection ends, with the id of the last
/// event in the field Last-Event-ID. Reconnects after: the end of the body, a lost connection, a
/// time limit, a temporary connection error, and the statuses 429, 500, 502, 503 and 504, which
/// proxies send while a server restarts; browsers give up then. Gives up after: other statuses, a
/// content type other than text/event-stream, an invalid certificate, a malformed response, and the
/// errors of EventLimits. ClientOptions::total_timeout, read_timeout and body_rate_min do not
/// apply.
///
/// Ownership: owns the connection, which counts for ClientOptions::connections_per_origin_max.
/// Lifetime: the client must exist longer. May be moved while no task waits.
/// Thread: must be used on the client's thread, by one task at a time.
class EventSource {
 public:
  /// Does not connect before next() is called. Throws std::bad_alloc.
  EventSource(Client& client, std::string url, EventSourceOptions options = {});
  EventSource(EventSource&& other) noexcept;
  EventSource& operator=(EventSource&& other) noexcept;
  ~EventSource();

  /// Waits for the next event, and connects when that is necessary. No value: the server wants no
  /// further connections (204). Fails with the errors of Client::send() and EventReader::next()
  /// after which the client gives up, with the last error after RetryPolicy::attempts_max, and with
  /// http::ErrorCode::unexpected_status (see status()) and not_an_event_stream; a further call
  /// connects again then. Throws std::bad_alloc; a further call connects again.
  ///
  /// Cancellation: fails with ECANCELED if the task was asked to stop. The connection stays open,
  /// and no event is lost; the source receives one event ahead. Cancel safe: may be an argument of
  /// select(). Destroy the source to close the connection.
  [[nodiscard]] CancelSafeTask<Result<std::optional<ReceivedEvent>>> next();

  /// The last id of the events that next() has returned. A program may store it, and continue after
  /// a restart: see EventSourceOptions::last_event_id.
  [[nodiscard]] const std::string& last_event_id() const noexcept;
  /// Of the last response; no value before it.
  [[nodiscard]] std::optional<Status> status() const noexcept;
  /// How many event streams have been opened.
  [[nodiscard]] std::uint64_t connections() const noexcept;

 private:
  tambour::detail::OwnedPointer<detail::event_source::Source> source_;
};

}  // namespace tambour::http

#pragma GCC visibility pop
