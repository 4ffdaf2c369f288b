// One request and its response on a connection of a client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>

#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/client.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/event.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

#include "http/body/body_stream.h"
#include "http/client/pool.h"
#include "http_message/h1/framing.h"
#include "net/pace/rate_budget.h"

namespace tambour::http::detail::client {

/// The body of a request, and how it is framed.
struct OutgoingBody {
  Buffer bytes{};
  std::unique_ptr<BodySource> source{};
  h1::BodyFraming framing{};
  bool expects_continue = false;
};

/// Gets the interim responses (RFC 9110, section 15.2) of an exchange but 100 (Continue) and 101.
class InterimSink {
 public:
  InterimSink() = default;
  InterimSink(const InterimSink&) = delete;
  InterimSink& operator=(const InterimSink&) = delete;
  virtual ~InterimSink() = default;

  /// May move from the head. The response is not read before the task has ended.
  [[nodiscard]] virtual Task<> pass_interim(ResponseHead& head) = 0;
};

/// The time limits of receiving a body.
struct ReadLimits {
  Duration timeout{};          ///< For the next bytes; zero: none.
  TimePoint deadline = never;  ///< For the whole body.
  std::size_t rate_min = 0;    ///< See ClientOptions::body_rate_min.
  Duration rate_period{};
  /// Of one read, which is what the client holds of a body at most.
  std::size_t read_bytes_max = std::numeric_limits<std::size_t>::max();
};

/// The request may still be sent while the response is read: a server may answer early.
class Exchange final : public BodyStream {
 public:
  Exchange(EventLoop& loop, Lease lease, const ReadLimits& limits)
      : loop_(loop), lease_(std::move(lease)), limits_(limits) {}
  ~Exchange() { end(false); }

  /// Sends the request, and receives the head of the response. `head` must exist until then.
  [[nodiscard]] Task<Result<>> begin(const RequestHead& head, OutgoingBody body);
  /// `callback` must exist until begin() has ended.
  void set_interim_callback(Callback<void(const ResponseHead&)>& callback) noexcept {
    on_interim_ = callback ? &callback : nullptr;
  }
  /// `sink` must exist until begin() has ended.
  void set_interim_sink(InterimSink& sink) noexcept { interim_sink_ = &sink; }
  /// After begin() has succeeded.
  [[nodiscard]] const ResponseHead& head() const noexcept { return head_; }
  [[nodiscard]] IncomingBody& body() noexcept { return incoming_; }
  /// False after a response with the status 101, whose connection is not HTTP any more.
  [[nodiscard]] bool is_complete() const noexcept {
    return is_complete_ && incoming_.is_complete();
  }
  /// For a program that passes the response on: it may be moved from.
  [[nodiscard]] ResponseHead& head() noexcept { return head_; }
  /// Closes the connection: what waits for the response fails with `error`. No effect after its
  /// end.
  void abort(const Error& error) noexcept;
  /// True if bytes after the head have arrived already.
  [[nodiscard]] bool has_input() const noexcept { return lease_ && !lease_->input.empty(); }
  /// True if bytes of the response have arrived.
  [[nodiscard]] bool has_received() const noexcept { return has_received_; }

  /// Like IncomingBody::decode(), but does nothing if a coding is not supported.
  void decode(const DecodingLimits& limits);
  [[nodiscard]] Result<ByteStream> upgrade();

  [[nodiscard]] Fields& body_fields() noexcept override { return head_.fields; }
  [[nodiscard]] std::optional<std::uint64_t> body_length() const noexcept override {
    return length_;
  }
  [[nodiscard]] bool is_body_complete() const noexcept override {
    return is_complete_ || is_tunnel();
  }
  [[nodiscard]] const Fields& body_trailers() const noexcept override { return trailers_; }
  void set_body_bytes_max(std::uint64_t bytes_max) noexcept override;
  [[nodiscard]] Task<Result<Buffer>> read_body(std::size_t bytes_max) override;
  std::unexpected<Error> fail_body(const Error& error) noexcept override;

 private:
  [[nodiscard]] Task<Result<>> send(Buffer output);
  [[nodiscard]] Task<Result<>> send_source(Buffer output);
  [[nodiscard]] Task<> send_concurrently(Buffer output);
  /// `request` must exist until the task has ended.
  [[nodiscard]] Task<Result<ResponseHead>> receive_head(const RequestHead& request);
  /// After a response with the status 101: waits until the request is sent.
  [[nodiscard]] Task<Result<>> check_upgrade(const RequestHead& request,
                                             const ResponseHead& response);
  [[nodiscard]] bool is_tunnel() const noexcept {
    return lease_ && lease_->parser.framing().kind == h1::BodyKind::tunnel;
  }
  [[nodiscard]] Task<Result<>> receive(std::size_t bytes_max);
  /// Of the next read within a body: not much more than is left of it.
  [[nodiscard]] std::size_t body_read_max() const noexcept;
  /// The time limit for the next bytes of the body, which are awaited since `since`; no value:
  /// none.
  [[nodiscard]] std::optional<Duration> patience(TimePoint since) const noexcept;
  [[nodiscard]] Task<Result<>> receive_within(std::optional<Duration> limit);
  void end(bool is_reusable) noexcept;
  /// Throws the exception of the sending task. Returns its error, or else `error`.
  [[nodiscard]] Error cause_of(const Error& error);
  void complete();

  EventLoop& loop_;
  Lease lease_;
  ReadLimits limits_;
  net::RateBudget rate_budget_;  ///< Spent while the body is awaited.
  Callback<void(const ResponseHead&)>* on_interim_ = nullptr;
  InterimSink* interim_sink_ = nullptr;
  OutgoingBody body_;
  std::optional<TaskEvent> may_send_body_;  ///< If the server is asked whether it will read it.
  Error send_error_{};                      ///< Of the source of the body.
  std::exception_ptr send_exception_;
  Error read_error_{};
  bool is_sent_ = false;
  bool has_received_ = false;
  bool is_complete_ = false;  ///< All bytes of the response have been received.
  ResponseHead head_;
  std::optional<std::uint64_t> length_;  ///< Of the body, if it is known.
  IncomingBody incoming_{this};
  Fields trailers_;
  std::optional<TaskScope> sender_;  ///< Destroyed before what its task uses.
};

}  // namespace tambour::http::detail::client
