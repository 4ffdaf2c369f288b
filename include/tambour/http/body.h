// The body of a message that has been received: of a request, or of the response to a client.
//
// A body is read from its connection piece by piece, when the program asks for it: a program that
// reads slowly slows down the peer. Response::forward() and ClientRequest::forward() pass a body on
// without having it in memory at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/detail/owned_pointer.h>
#include <tambour/http/coding.h>
#include <tambour/http/message.h>
#include <tambour/task/task.h>

namespace tambour::http::detail {
class BodyStream;
struct BodyAccess;
}  // namespace tambour::http::detail
namespace tambour::http::detail::coding {
class BodyDecoder;
}  // namespace tambour::http::detail::coding

#pragma GCC visibility push(default)

namespace tambour::http {

/// An incoming body.
///
/// Ownership: part of its Request or ClientResponse. A use of the body of a request after the
/// handler has ended aborts: see Response.
/// Thread: must be used on the loop's thread of its connection. Only one task may read at a time.
///
/// Errors of a request's body: if reading fails, the response of the handler closes the connection;
/// if the handler sends none, the server answers with status_for(error): 400, 408 or 413.
class IncomingBody {
 public:
  /// For the library. Null: an empty body.
  explicit IncomingBody(detail::BodyStream* stream) noexcept;
  IncomingBody(const IncomingBody&) = delete;
  IncomingBody& operator=(const IncomingBody&) = delete;
  ~IncomingBody();

  /// The size in bytes; no value if it is not known: the body is chunked, decoded, or ends with its
  /// connection.
  [[nodiscard]] std::optional<std::uint64_t> length() const noexcept;
  /// True if the whole body has been read; at once if there is none.
  [[nodiscard]] bool is_complete() const noexcept;

  /// Waits for data and returns at most `bytes_max` bytes; an empty buffer at the end of the body.
  /// A body that has failed fails again. Fails with http::ErrorCode::body_too_large, with the
  /// errors of chunks and trailers, with ETIMEDOUT (ServerOptions::body_timeout,
  /// ClientOptions::read_timeout), StreamError::truncated if the connection ends within the body,
  /// ECONNRESET, and ECANCELED.
  ///
  /// The first call for a request sends "100 Continue" if the client waits for it.
  [[nodiscard]] Task<Result<Buffer>> read(std::size_t bytes_max = std::size_t{64} * 1024);

  /// Reads the rest of the body. Fails like read(), and with http::ErrorCode::body_too_large if it
  /// has more than `bytes_max` bytes; at once if length() has.
  [[nodiscard]] Task<Result<Buffer>> read_all(std::size_t bytes_max = std::size_t{1024} * 1024);
  [[nodiscard]] Task<Result<std::string>> read_text(std::size_t bytes_max = std::size_t{1024} *
                                                                            1024);

  /// Records that the body is not what the program expects, as if reading had failed with `error`,
  /// which is returned: `co_return request.body().reject(error)` in a function that parses bodies.
  std::unexpected<Error> reject(const Error& error) noexcept;

  /// Replaces MessageLimits::body_bytes_max for this body, for example for large uploads. Call it
  /// before the first read().
  void set_bytes_max(std::uint64_t bytes_max) noexcept;

  /// From now on, read() and read_all() return the body without its codings (Content-Encoding),
  /// and the field is removed from the head, with Content-Length. Does nothing if there is no
  /// coding. A Client does so itself, unless ClientOptions::decompress is false. Call it before the
  /// first read(). Reading then also fails with http::ErrorCode::bad_content_coding if the body is
  /// malformed (400), and with decoded_too_large or coded_too_large if it exceeds `limits` (413).
  /// `MessageLimits::body_bytes_max` counts what is received. Fails with
  /// http::ErrorCode::unsupported_content_coding (415) if a coding is unknown or not available, or
  /// if there are more than four. Throws std::bad_alloc.
  Result<> decode(const DecodingLimits& limits = {});

  /// The fields after a chunked body; empty until is_complete(). Never part of the head's fields.
  [[nodiscard]] const Fields& trailers() const noexcept;

 private:
  friend struct detail::BodyAccess;

  [[nodiscard]] Task<Result<Buffer>> read_decoded(std::size_t bytes_max);

  detail::BodyStream* stream_;  ///< Null after the end of the handler.
  tambour::detail::OwnedPointer<detail::coding::BodyDecoder> decoder_;
};

}  // namespace tambour::http

#pragma GCC visibility pop
