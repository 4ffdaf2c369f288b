// An event source: the connection of the moment, and when the next one is made.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include <tambour/detail/namespaces.h>
#include <tambour/http/event_source.h>
#include <tambour/task/event.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

#include "client/retry_delays.h"

namespace tambour::http::detail::event_source {

class Source {
 public:
  Source(Client& client, std::string url, EventSourceOptions options);

  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  using Received = Result<std::optional<ReceivedEvent>>;

  /// Waits for what the reading task has received, and starts this task if there is none.
  [[nodiscard]] Task<Received> next();

  [[nodiscard]] const std::string& last_event_id() const noexcept { return returned_event_id_; }
  [[nodiscard]] std::optional<Status> status() const noexcept { return status_; }
  [[nodiscard]] std::uint64_t connections() const noexcept { return connections_; }

 private:
  /// The task that reads, and what it waits for.
  struct Reading {
    explicit Reading(EventLoop& loop) : has_received(loop), is_wanted(loop), scope(loop) {}
    TaskEvent has_received;  ///< Set while there is something for next().
    TaskEvent is_wanted;     ///< Set when next() has taken the event.
    TaskScope scope;
  };

  /// The task that reads: an event ahead, so that a next() which is stopped loses nothing.
  [[nodiscard]] Task<> read();
  /// The next event, the error after which the client gives up, or the end.
  [[nodiscard]] Task<Received> receive();
  /// Opens a stream, unless the server wants no further connections.
  [[nodiscard]] Task<Result<>> open();
  [[nodiscard]] Result<> accept(ClientResponse response);
  [[nodiscard]] Result<ClientRequest> request() const;
  /// Waits before the next attempt, if there was one before it.
  [[nodiscard]] Task<Result<>> wait();
  /// Keeps what the reader knows, and closes the connection.
  void end_stream();

  Client& client_;
  std::string url_;
  EventSourceOptions options_;
  std::string returned_event_id_;  ///< The last id of the events that next() has returned.
  std::string last_event_id_;      ///< The last id that has arrived.
  Duration delay_;                 ///< After the end of a stream.
  tambour::detail::client::RetryDelays delays_;
  unsigned failed_attempts_ = 0;  ///< Since the last stream.
  std::uint64_t connections_ = 0;
  std::optional<Status> status_;
  bool was_tried_ = false;  ///< The next attempt waits.
  bool has_ended_ = false;  ///< The server wants no further connections.
  std::optional<ClientResponse> response_;
  std::optional<EventReader> reader_;  ///< Of the body of the response.
  std::optional<Received> received_;   ///< What next() will return.
  std::exception_ptr thrown_;          ///< By the reading task, for next().
  std::optional<Reading> reading_;     ///< Made by the first next().
};

}  // namespace tambour::http::detail::event_source
