// One request and its response on a connection of HTTP/1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>

#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/event.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

#include "http/client/exchange.h"
#include "http/client/pool.h"
#include "http_message/h1/framing.h"

namespace tambour::http::detail::client {

/// The request may still be sent while the response is read: a server may answer early.
class H1Exchange final : public Exchange {
 public:
  H1Exchange(EventLoop& loop, Lease lease, const ReadLimits& limits)
      : loop_(loop),
        lease_(std::move(lease)),
        patience_(loop, limits),
        read_bytes_max_(limits.read_bytes_max) {}
  ~H1Exchange() override { end(false); }

  [[nodiscard]] Task<Result<>> begin(const RequestHead& head, OutgoingBody body) override;
  /// It is known whether the head of the request has the field Upgrade.
  void set_upgrade(bool has_upgrade) noexcept { has_upgrade_ = has_upgrade; }
  /// Closes the connection.
  void abort(const Error& error) noexcept override;
  /// Appends bytes of the body that have arrived already, at most `bytes_max`. Returns false if
  /// there are none and the body is not complete: the next ones must be awaited by read_body().
  [[nodiscard]] Result<bool> take_body(Buffer& into, std::size_t bytes_max);
  [[nodiscard]] Result<ByteStream> upgrade() override;

  [[nodiscard]] bool is_body_complete() const noexcept override {
    return is_complete_ || is_tunnel();
  }
  void set_body_bytes_max(std::uint64_t bytes_max) noexcept override;
  [[nodiscard]] Task<Result<Buffer>> read_body(std::size_t bytes_max) override;
  std::unexpected<Error> fail_body(const Error& error) noexcept override;

 private:
  [[nodiscard]] Task<Result<>> send(Buffer output);
  [[nodiscard]] Task<Result<>> send_source(Buffer output);
  [[nodiscard]] Task<> send_concurrently(Buffer output);
  void start_sender(Buffer output);
  /// After a response with the status 101: waits until the request is sent.
  [[nodiscard]] Task<Result<>> check_upgrade(const RequestHead& request,
                                             const ResponseHead& response);
  [[nodiscard]] bool is_tunnel() const noexcept {
    return lease_ && lease_->parser.framing().kind == h1::BodyKind::tunnel;
  }
  [[nodiscard]] Task<Result<>> receive(std::size_t bytes_max);
  /// After a read from the connection.
  [[nodiscard]] Result<> received(const Result<std::size_t>& got);
  void take_interim(const ResponseHead& head);
  void take_head();
  /// Ends the exchange. Returns the error of begin().
  [[nodiscard]] std::unexpected<Error> fail_head(const Error& error);
  /// Of the next read within a body: not much more than is left of it.
  [[nodiscard]] std::size_t body_read_max() const noexcept;
  [[nodiscard]] Task<Result<>> receive_within(TimePoint since);
  void end(bool is_reusable) noexcept;
  /// Throws the exception of the sending task. Returns its error, or else `error`.
  [[nodiscard]] Error cause_of(const Error& error);
  /// Ends the exchange. Returns the error with which reading the body fails from now on.
  [[nodiscard]] std::unexpected<Error> fail_reading(const Error& error);
  void complete();

  EventLoop& loop_;
  Lease lease_;
  BodyPatience patience_;
  std::size_t read_bytes_max_;
  OutgoingBody body_;
  std::optional<TaskEvent> may_send_body_;  ///< If the server is asked whether it will read it.
  Error send_error_{};                      ///< Of the source of the body.
  std::exception_ptr send_exception_;
  Error read_error_{};
  bool is_sent_ = false;
  std::optional<bool> has_upgrade_;  ///< If it is known.
  std::optional<TaskScope> sender_;  ///< Destroyed before what its task uses.
};

}  // namespace tambour::http::detail::client
