// One request of a client and its response.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/client.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/task.h>

#include "http/body/body_stream.h"
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

/// The time limits of a body while it is awaited.
class BodyPatience {
 public:
  BodyPatience(EventLoop& loop, const ReadLimits& limits) noexcept : loop_(loop), limits_(limits) {}

  /// Begins a wait for the next bytes, which are awaited since `since`. Returns how long it may
  /// last; no value: without limit.
  [[nodiscard]] std::optional<Duration> begin(TimePoint since) noexcept;
  /// The wait has ended with so many bytes.
  void end(std::size_t bytes) noexcept;

 private:
  [[nodiscard]] std::int64_t now_ns() const noexcept {
    return loop_.now().time_since_epoch().count();
  }

  EventLoop& loop_;
  ReadLimits limits_;
  net::RateBudget rate_budget_;  ///< Spent while the body is awaited.
};

/// A request and its response, over any version of HTTP.
class Exchange : public BodyStream {
 public:
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  /// Sends the request, and receives the head of the response. `head` must exist until then.
  [[nodiscard]] virtual Task<Result<>> begin(const RequestHead& head, OutgoingBody body) = 0;
  /// `callback` must exist until begin() has ended.
  void set_interim_callback(Callback<void(const ResponseHead&)>& callback) noexcept {
    on_interim_ = callback ? &callback : nullptr;
  }
  /// `sink` must exist until begin() has ended.
  void set_interim_sink(InterimSink& sink) noexcept { interim_sink_ = &sink; }
  /// After begin() has succeeded. A program that passes the response on may move from it.
  [[nodiscard]] ResponseHead& head() noexcept { return head_; }
  [[nodiscard]] const ResponseHead& head() const noexcept { return head_; }
  [[nodiscard]] IncomingBody& body() noexcept { return incoming_; }
  /// False after a response whose connection, or stream, is not HTTP any more.
  [[nodiscard]] bool is_complete() const noexcept {
    return is_complete_ && incoming_.is_complete();
  }
  /// Ends the exchange: what waits for the response fails with `error`. No effect after its end.
  virtual void abort(const Error& error) noexcept = 0;
  /// True if bytes of the response have arrived.
  [[nodiscard]] bool has_received() const noexcept { return has_received_; }
  /// True if the server has certainly not processed the request, although it was sent.
  [[nodiscard]] virtual bool is_unprocessed() const noexcept { return false; }

  /// Like IncomingBody::decode(), but does nothing if a coding is not supported.
  void decode(const DecodingLimits& limits);
  [[nodiscard]] virtual Result<ByteStream> upgrade() = 0;

  [[nodiscard]] Fields& body_fields() noexcept override { return head_.fields; }
  [[nodiscard]] std::optional<std::uint64_t> body_length() const noexcept override {
    return length_;
  }
  [[nodiscard]] const Fields& body_trailers() const noexcept override { return trailers_; }

 protected:
  Exchange() = default;

  /// How many interim responses a server may send before a response.
  static constexpr int interim_responses_max = 32;
  /// How long to wait for "100 Continue": servers of HTTP/1.0 do not send it (RFC 9110, section
  /// 10.1.1).
  static constexpr Duration continue_timeout = std::chrono::seconds(1);

  Callback<void(const ResponseHead&)>* on_interim_ = nullptr;
  InterimSink* interim_sink_ = nullptr;
  bool has_received_ = false;
  bool is_complete_ = false;  ///< All bytes of the response have been received.
  ResponseHead head_;
  std::optional<std::uint64_t> length_;  ///< Of the body, if it is known.
  IncomingBody incoming_{this};
  Fields trailers_;
};

}  // namespace tambour::http::detail::client
