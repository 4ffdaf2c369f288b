// An event source: the connection of the moment, and when the next one is made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tambour/detail/namespaces.h>
#include <tambour/http/event_source.h>

#include "client/backoff.h"

namespace tambour::http::detail::event_source {

class Source {
 public:
  Source(Client& client, std::string url, EventSourceOptions options);

  [[nodiscard]] Task<Result<std::optional<ReceivedEvent>>> next();

  [[nodiscard]] const std::string& last_event_id() const noexcept { return last_event_id_; }
  [[nodiscard]] std::optional<Status> status() const noexcept { return status_; }
  [[nodiscard]] std::uint64_t connections() const noexcept { return connections_; }

 private:
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
  std::string last_event_id_;
  Duration delay_;  ///< After the end of a stream.
  tambour::detail::client::Backoff backoff_;
  unsigned failed_attempts_ = 0;  ///< Since the last stream.
  std::uint64_t connections_ = 0;
  std::optional<Status> status_;
  bool was_tried_ = false;  ///< The next attempt waits.
  bool has_ended_ = false;  ///< The server wants no further connections.
  std::optional<ClientResponse> response_;
  std::optional<EventReader> reader_;  ///< Of the body of the response.
};

}  // namespace tambour::http::detail::event_source
