// Requests that a server has received: the head, and the body as a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/buffer.h>
#include <tambour/clock.h>
#include <tambour/endpoint.h>
#include <tambour/http_coding.h>
#include <tambour/http_message.h>
#include <tambour/result.h>
#include <tambour/task.h>

namespace tambour::http {
class Exchange;
}  // namespace tambour::http
namespace tambour::http::coding {
class BodyDecoder;
}  // namespace tambour::http::coding

#pragma GCC visibility push(default)

namespace tambour {
class SocketStream;
}

namespace tambour::http {

/// The body of a request. The server reads from the connection only what the handler asks for: a
/// slow handler slows down its client.
///
/// Errors: if reading fails, the response of the handler closes the connection; if the handler
/// sends none, the server answers with status_for(error): 400, 408 or 413.
class RequestBody {
 public:
  explicit RequestBody(Exchange& exchange) noexcept;
  RequestBody(const RequestBody&) = delete;
  RequestBody& operator=(const RequestBody&) = delete;
  ~RequestBody();

  /// The size in bytes; no value if the body is chunked or decoded.
  [[nodiscard]] std::optional<std::uint64_t> length() const noexcept;
  /// True if the whole body has been read; at once if there is none.
  [[nodiscard]] bool ended() const noexcept;

  /// Waits for data and returns at most `bytes_max` bytes; an empty buffer at the end of the body.
  /// The first call sends "100 Continue" if the client waits for it. Only one task may read at a
  /// time. Fails with HttpError::body_too_large, with the errors of chunks and trailers, with
  /// ETIMEDOUT (ServerOptions::body_timeout), StreamError::truncated, ECONNRESET, and ECANCELED.
  [[nodiscard]] Task<Result<Buffer>> read(std::size_t bytes_max = std::size_t{64} * 1024);

  /// Reads the rest of the body. Fails like read(), and with HttpError::body_too_large if it has
  /// more than `bytes_max` bytes; at once if length() has.
  [[nodiscard]] Task<Result<Buffer>> read_all(std::size_t bytes_max = std::size_t{1024} * 1024);

  /// Records that the body is not what the handler expects, as if reading had failed with `error`,
  /// which is returned: `co_return request.body().reject(error)` in a function that parses bodies.
  std::unexpected<Error> reject(const Error& error) noexcept;

  /// Replaces MessageLimits::body_bytes_max for this request, for example for large uploads. Call
  /// it before the first read().
  void set_bytes_max(std::uint64_t bytes_max) noexcept;

  /// From now on, read() and read_all() return the body without its codings (Content-Encoding),
  /// and the field is removed from the head, with Content-Length. Does nothing if there is no
  /// coding. Call it before the first read(). Reading then also fails with
  /// HttpError::bad_content_coding if the body is malformed (400), and with decoded_too_large or
  /// coded_too_large if it exceeds `limits` (413). `MessageLimits::body_bytes_max` counts what is
  /// received. Fails with HttpError::unsupported_content_coding (415) if a coding is unknown or not
  /// available, or if there are more than four. Throws std::bad_alloc.
  Result<> decode(const DecodingLimits& limits = {});

  /// The fields after a chunked body; empty until ended(). Never part of the head's fields.
  [[nodiscard]] const Fields& trailers() const noexcept;

 private:
  friend class Exchange;

  [[nodiscard]] Task<Result<Buffer>> read_decoded(std::size_t bytes_max);
  void stop_decoding() noexcept;

  Exchange* exchange_;
  std::unique_ptr<coding::BodyDecoder> decoder_;
};

/// A request. Exists until its handler has ended and its response has been completed.
///
/// Ownership: owned by the connection. A use after the handler has ended aborts, if the connection
/// still exists: see Response. Views into the head are valid as long as the request, unless
/// the program changes the head.
/// Thread: must be used on the loop's thread of its connection.
class Request {
 public:
  explicit Request(Exchange& exchange) noexcept : exchange_(&exchange), body_(exchange) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() = default;

  /// May be changed, for example by a handler that rewrites the target for another one.
  [[nodiscard]] RequestHead& head() noexcept;
  [[nodiscard]] const RequestHead& head() const noexcept;
  [[nodiscard]] const Method& method() const noexcept { return head().method; }
  /// Percent-encoded, without the query.
  [[nodiscard]] std::string_view path() const noexcept { return head().path(); }
  [[nodiscard]] std::optional<std::string_view> query() const noexcept { return head().query(); }
  [[nodiscard]] const Fields& fields() const noexcept { return head().fields; }

  [[nodiscard]] RequestBody& body() noexcept { return body_; }

  /// A parameter of the route, percent-decoded: see Router. Empty if there is none with this name.
  [[nodiscard]] std::string_view parameter(std::string_view name) const noexcept;
  /// Adds a parameter, or replaces the one with the same name: a middleware may pass values to the
  /// handler, for example the name of the user.
  void set_parameter(std::string_view name, std::string value);
  void clear_parameters() noexcept { parameters_.clear(); }

  /// The connection, for its endpoints, its PROXY header and its TLS session. Its bytes must not be
  /// read or written.
  [[nodiscard]] const SocketStream& stream() const noexcept;
  /// EventLoop::now() when the head was complete. With ServerOptions::on_response, the server calls
  /// EventLoop::update_now() before.
  [[nodiscard]] TimePoint received_at() const noexcept;

  /// A stop is requested when the client has closed or half-closed the connection, or the
  /// connection has failed. A client that has half-closed it still receives the response. The first
  /// call begins to watch the connection, as soon as the whole body has been read; up to 128 KiB of
  /// requests that follow are read ahead. With the select backend, a client that has sent more of
  /// them is not watched. A client that vanishes without closing is not noticed. No stop is
  /// requested after the handler has ended or has opened a tunnel. Throws std::bad_alloc.
  [[nodiscard]] std::stop_token disconnect_token() const;
  /// A stop is requested when the server begins to shut down: see StreamServer::shutdown_token().
  /// Handlers of long responses end them then.
  [[nodiscard]] std::stop_token shutdown_token() const noexcept;

  /// Runs `work`, and asks it to stop when a stop of disconnect_token() is requested: its waits
  /// then fail with ECANCELED. Returns when it has ended. For handlers that wait long without
  /// writing:
  ///
  ///   co_await request.while_connected(wait_for_news(response));
  [[nodiscard]] Task<> while_connected(Task<> work) const;

 private:
  friend class Exchange;

  Exchange* exchange_;
  RequestBody body_;
  std::vector<std::pair<std::string, std::string>> parameters_;
};

}  // namespace tambour::http

#pragma GCC visibility pop
