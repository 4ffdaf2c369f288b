// One request and its response on a stream of HTTP/2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>

#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/event.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

#include "http/client/exchange.h"
#include "http/client/pool.h"
#include "http/h2/client_stream.h"

namespace tambour::http::detail::client {

/// The request may still be sent while the response is read. Ending the exchange resets the stream
/// if it is not complete; other requests of the connection go on.
class H2Exchange final : public Exchange {
 public:
  /// `lease` is a slot of a connection of HTTP/2.
  H2Exchange(EventLoop& loop, Lease lease, const ReadLimits& limits, std::uint64_t body_bytes_max);
  ~H2Exchange() override { end(); }

  [[nodiscard]] Task<Result<>> begin(const RequestHead& head, OutgoingBody body) override;
  void abort(const Error& error) noexcept override;
  [[nodiscard]] bool is_unprocessed() const noexcept override { return is_unprocessed_; }
  /// After a response with the status 2xx to CONNECT.
  [[nodiscard]] Result<ByteStream> upgrade() override;

  [[nodiscard]] bool is_body_complete() const noexcept override {
    return is_complete_ || is_tunnel_;
  }
  void set_body_bytes_max(std::uint64_t bytes_max) noexcept override {
    body_bytes_max_ = bytes_max;
  }
  [[nodiscard]] Task<Result<Buffer>> read_body(std::size_t bytes_max) override;
  std::unexpected<Error> fail_body(const Error& error) noexcept override;

 private:
  [[nodiscard]] Task<Result<>> await_connect_protocol();
  void start_sending();
  [[nodiscard]] Task<> send_body();
  [[nodiscard]] Task<Result<>> send_source();
  [[nodiscard]] Task<Result<>> receive_head();
  [[nodiscard]] Task<Result<>> wait_for_body(TimePoint since);
  [[nodiscard]] bool is_too_large() const noexcept;
  /// Throws the exception of the sending task. Returns its error, or else `error`.
  [[nodiscard]] Error cause_of(const Error& error);
  void complete();
  void end() noexcept;

  EventLoop& loop_;
  Lease lease_;
  std::unique_ptr<H2ClientStream> stream_;  ///< Destroyed before the slot is free.
  BodyPatience patience_;
  std::uint64_t body_bytes_max_;
  OutgoingBody body_;
  std::optional<TaskEvent> may_send_body_;  ///< If the server is asked whether it will read it.
  Error send_error_{};                      ///< Of the source of the body.
  std::exception_ptr send_exception_;
  Error read_error_{};
  bool is_tunnel_ = false;
  bool is_unprocessed_ = false;
  std::optional<TaskScope> sender_;  ///< Destroyed before what its task uses.
};

}  // namespace tambour::http::detail::client
