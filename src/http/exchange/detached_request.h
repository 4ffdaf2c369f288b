// The request of a connection that HTTP has left, for what goes on there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/message.h>
#include <tambour/http/request.h>
#include <tambour/net/endpoint.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/task.h>

#include "http/body/body_stream.h"
#include "http/exchange/settings.h"

namespace tambour::http::detail {

/// A request without an exchange: its head, its parameters, and no body. Its response was sent.
///
/// Ownership: that of the task that goes on. Thread: that of the loop.
class DetachedRequest final : public Request, private BodyStream {
 public:
  /// Moves the head. Throws std::bad_alloc.
  explicit DetachedRequest(Exchange& exchange);
  DetachedRequest(const DetachedRequest&) = delete;
  DetachedRequest& operator=(const DetachedRequest&) = delete;
  ~DetachedRequest() = default;

  /// Passes an exception to ServerOptions::on_exception. Returns false if the program has none: the
  /// task must throw the exception then.
  [[nodiscard]] bool report(const std::exception_ptr& thrown);

  // For Request.

  [[nodiscard]] RequestHead& kept_head() noexcept { return head_; }
  [[nodiscard]] const RequestHead& kept_head() const noexcept { return head_; }
  [[nodiscard]] RequestConnection kept_connection() const noexcept {
    return RequestConnection(loop_, stream_, peer_);
  }
  [[nodiscard]] std::uint64_t kept_body_bytes() const noexcept { return received_bytes_; }
  [[nodiscard]] TimePoint kept_received_at() const noexcept { return began_at_; }
  [[nodiscard]] const std::stop_token& kept_shutdown_token() const noexcept { return shutdown_; }

 private:
  [[nodiscard]] Fields& body_fields() noexcept override { return head_.fields; }
  [[nodiscard]] std::optional<std::uint64_t> body_length() const noexcept override { return 0; }
  [[nodiscard]] bool is_body_complete() const noexcept override { return true; }
  [[nodiscard]] const Fields& body_trailers() const noexcept override;
  void set_body_bytes_max(std::uint64_t /*bytes_max*/) noexcept override {}
  [[nodiscard]] Task<Result<Buffer>> read_body(std::size_t bytes_max) override;
  std::unexpected<Error> fail_body(const Error& error) noexcept override {
    return std::unexpected(error);
  }

  EventLoop& loop_;
  std::shared_ptr<const ServerSettings> settings_;
  RequestHead head_;
  std::uint64_t received_bytes_;
  TimePoint began_at_;
  std::stop_token shutdown_;
  SocketStream stream_;  ///< Closed.
  mutable tambour::detail::OwnedPointer<Endpoint> peer_;
};

/// What goes on with a connection when the handler that has upgraded it has ended, and all that
/// HTTP needed of it was freed.
struct Continuation {
  bool needs_request = false;
  /// Gets null unless `needs_request`.
  Callback<Task<>(std::unique_ptr<DetachedRequest>)> start;
};

}  // namespace tambour::http::detail
