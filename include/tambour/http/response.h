// Responses of a server: at once, or as a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/message.h>
#include <tambour/net/byte_stream.h>
#include <tambour/task/task.h>

namespace tambour::http::detail {
class Exchange;
class ResponseFilter;
class ResponseSink;
}  // namespace tambour::http::detail

#pragma GCC visibility push(default)

namespace tambour {

class File;

}  // namespace tambour

namespace tambour::http {

class IncomingBody;

/// The response to one request. Set the status (default: 200) and the fields first; then either
/// call send() once, or write() any number of times and end():
///
///   response.headers().set("Content-Type", "text/plain");
///   response.send("hello\n");
///
/// A handler that ends without a response sends an empty one with the status, and one that has not
/// called end() after write() ends the response. If a handler throws before its response has begun,
/// the server answers 500; later, it resets the connection, so that the client does not treat a
/// truncated response as complete. If a handler is asked to stop, because the grace period of
/// shut_down() has ended, and returns without a complete response, the server answers 503 or ends
/// the connection.
///
/// Lifetime: until its handler has ended. A handler whose response comes from another task must be
/// a coroutine that waits for that task. Do not use the response later: most of such uses abort the
/// program with a message, but the object may belong to another request by then.
///
/// Framing: the server sets Content-Length, Transfer-Encoding, Connection and Date; fields with
/// the first three names are ignored. "Connection: close" closes the connection after the response.
/// A response to HEAD gets the same head as that to GET, and its body is not sent.
/// Thread: must be used on the loop's thread of its connection.
class Response {
 public:
  /// For the library.
  explicit Response(detail::Exchange* exchange) noexcept : exchange_(exchange) {}
  Response(const Response&) = delete;
  Response& operator=(const Response&) = delete;
  ~Response() = default;

  /// Changes have no effect after has_begun().
  [[nodiscard]] ResponseHead& head() noexcept { return head_; }
  [[nodiscard]] const ResponseHead& head() const noexcept { return head_; }
  [[nodiscard]] Status status() const noexcept { return head_.status; }
  void set_status(Status status) noexcept { head_.status = status; }
  [[nodiscard]] Fields& headers() noexcept { return head_.fields; }
  [[nodiscard]] const Fields& headers() const noexcept { return head_.fields; }

  /// The size of a body that write() sends. Without it, the body is chunked; to a client of
  /// HTTP/1.0, it ends with the connection.
  void set_length(std::uint64_t bytes) noexcept { length_ = bytes; }
  [[nodiscard]] std::optional<std::uint64_t> length() const noexcept { return length_; }

  /// The whole response. It is sent when the handler has ended, together with responses to
  /// pipelined requests; call flush() to send it earlier. Fails with
  /// http::ErrorCode::response_begun, with interim_status or bad_status if the status is not
  /// between 200 and 999, with bad_reason, and with response_too_long if a status without a body
  /// (204, 304) has one; nothing is sent then. Throws std::bad_alloc. A text is copied; short ones
  /// behind the head, which is faster than a Buffer.
  Result<> send(Buffer body);
  Result<> send(std::string_view body);
  /// Sets the status too.
  Result<> send(Status status, std::string_view body = {}) {
    set_status(status);
    return send(body);
  }

  /// Sends the response to an error, which ServerOptions::error_renderer makes. Fields that are
  /// already set, for example those of CORS, are kept, except those that describe another body:
  /// Content-Type, Content-Encoding, Content-Language, Content-Disposition, ETag and Last-Modified.
  /// `detail` describes the error, and may contain text that the client sent. Fails with
  /// http::ErrorCode::response_begun, and with bad_status unless the status is between 400 and 999.
  /// Throws std::bad_alloc.
  Result<> send_error(Status status, std::string_view detail = {});

  /// Removes the fields that were set since the innermost handler was started, so that only the
  /// fields of middleware are left. For middleware that responds in place of a handler that has
  /// failed; the server calls it, too. No effect after has_begun(). Throws std::bad_alloc.
  void drop_handler_fields();

  /// Sends an interim response (RFC 9110, section 15.2) before this one, for example the links that
  /// the client may load already:
  ///
  ///   http::Fields links;
  ///   links.add("Link", "</style.css>; rel=preload; as=style");
  ///   co_await response.send_interim(http::Status::early_hints, links);
  ///
  /// Waits until the kernel has accepted it. An HTTP/1.0 client does not get it. Fails with
  /// http::ErrorCode::bad_status unless the status is between 102 and 199 ("100 Continue" is sent
  /// by IncomingBody::read(), 101 by upgrade()), response_begun, and like write(). Fields that
  /// frame a message are ignored.
  [[nodiscard]] Task<Result<>> send_interim(Status status, Fields fields = {});

  /// Declares that the response cannot be completed, for example because its source has failed: the
  /// connection is reset, so that the client does not treat a truncated response as complete. If
  /// the response has not begun, the server sends 502 instead, unless the handler sends another
  /// response.
  void abort() noexcept;

  /// Sends a part of the body, and the head before the first one. Waits until the kernel has
  /// accepted it. Only one task may write at a time. A write that is cancelled ends the connection,
  /// because a part of it may have been sent. Fails with EPIPE, ECONNRESET, ETIMEDOUT
  /// (ServerOptions::write_timeout), ECANCELED, and with http::ErrorCode::response_ended,
  /// response_too_long if there are more bytes than set_length() has said, interim_status,
  /// bad_status or bad_reason.
  [[nodiscard]] Task<Result<>> write(Buffer piece);
  [[nodiscard]] Task<Result<>> write(std::string_view piece);

  /// Sends `size` bytes of a file from `offset` on as a part of the body, and waits until the
  /// kernel has accepted them. Over plain TCP, what is in the page cache is sent by sendfile(2), if
  /// set_length() was called; otherwise the file is read 64 KiB at a time. Fails like write(), like
  /// File::read_at(), and with StreamError::truncated if the file ends earlier.
  [[nodiscard]] Task<Result<>> write_file(const File& file, std::uint64_t offset,
                                          std::uint64_t size);

  /// Ends a body. Sends it when the handler has ended, or in flush(). Trailers are sent if the body
  /// is chunked. Fails with http::ErrorCode::response_too_short if bytes are missing, and with
  /// trailer_not_allowed.
  Result<> end(const Fields& trailers);
  Result<> end() { return end(Fields()); }

  /// Passes a body on piece by piece: that of the request, or that of the response to a Client. The
  /// client gets its length, if it is known, and its trailers; a slow client slows down the reading
  /// of the body. Set the status and the fields before. Fails like IncomingBody::read(), and like
  /// write() and end(). If the body fails, and the response has begun, it cannot be completed: the
  /// connection is reset, so that the client does not treat a truncated response as complete.
  [[nodiscard]] Task<Result<>> forward(IncomingBody& body);

  /// Waits until the kernel has accepted everything. Fails like write().
  [[nodiscard]] Task<Result<>> flush();

  /// Ends HTTP on the connection, and returns it to the handler. What the client has sent after the
  /// request is read from it first. In response to CONNECT, the status must be 2xx. Otherwise the
  /// handler sets the field Upgrade; the response is 101, and the client must have asked for that
  /// protocol with HTTP/1.1; over HTTP/2, the method is CONNECT, also for other protocols (RFC
  /// 8441). A body that has not been read is discarded. The connection counts as served until the
  /// handler ends. The time limits of the server do not apply any more, except over HTTP/2 that a
  /// client must take what is sent to it (ServerOptions::write_timeout,
  /// Http2Options::send_rate_min). Fails with http::ErrorCode::not_an_upgrade, response_begun,
  /// bad_status and body_too_large, and like flush().
  [[nodiscard]] Task<Result<ByteStream>> upgrade();

  /// True if the head cannot be changed any more.
  [[nodiscard]] bool has_begun() const noexcept { return state_ != State::none; }
  [[nodiscard]] bool has_ended() const noexcept { return state_ == State::ended; }
  /// EventLoop::now() when the head was made; after has_begun(). With ServerOptions::on_response,
  /// the server calls EventLoop::update_now() before.
  [[nodiscard]] TimePoint begun_at() const noexcept;
  /// True if the response could not be completed or sent, so that the client does not have it.
  [[nodiscard]] bool has_failed() const noexcept;
  /// The size of the body so far as it is sent, without chunk headers. Counted also if it is not
  /// sent (HEAD).
  [[nodiscard]] std::uint64_t body_bytes() const noexcept { return body_bytes_; }

 private:
  friend class detail::Exchange;
  friend class Handler;
  friend class detail::ResponseFilter;
  enum class State : std::uint8_t { none, begun, ended };
  class [[gnu::visibility("hidden")]] AbandonUnlessComplete;

  /// Called before a handler is started. If the handler fails, the error response keeps the fields
  /// that are set now.
  void keep_fields() noexcept { fields_kept_ = head_.fields.size(); }
  /// A whole response with a body of `size` bytes, which `send` passes on.
  template <class Send>
  [[nodiscard]] Result<> send_whole(std::size_t size, Send send);
  [[nodiscard]] Result<> begin();
  [[nodiscard]] Result<> prepare(std::uint64_t bytes);
  [[nodiscard]] Task<Result<>> write_checked(Buffer piece);
  [[nodiscard]] Task<Result<>> send_interim_checked(Status status, Fields fields);

  detail::Exchange* exchange_;            ///< Null after the end of the handler.
  detail::ResponseSink* sink_ = nullptr;  ///< The exchange, or a filter in front of it.
  ResponseHead head_;
  std::optional<std::uint64_t> length_;
  std::optional<std::uint64_t> bytes_left_;  ///< Of a body whose length was stated.
  std::uint64_t body_bytes_ = 0;
  std::size_t fields_kept_ = 0;
  State state_ = State::none;
};

}  // namespace tambour::http

#pragma GCC visibility pop
