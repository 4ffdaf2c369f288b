// Parses messages of HTTP/1.1 from the bytes of a connection: heads, bodies, trailers.
//
// Requests and responses that follow each other in one buffer are parsed one by one: bytes after a
// message stay in the buffer. The verdict, the error and the end of a message do not depend on how
// the bytes arrive. After an error, nothing that follows can be trusted, and each further call
// fails with the same error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/message.h>

#include "http_message/h1/chunk_parser.h"
#include "http_message/h1/framing.h"
#include "http_message/h1/head_parser.h"

namespace tambour::http::detail::h1 {

/// What requests and responses have in common.
class MessageParser {
 public:
  MessageParser(const MessageParser&) = delete;
  MessageParser& operator=(const MessageParser&) = delete;

  /// Moves bytes of the body from `input` to the end of `output`, at most `bytes_max` of them, and
  /// returns their number. If it returns 0 and the message is not complete, more input is needed.
  /// Call it after the head is complete. Fails with the errors of the body's framing, with
  /// http::ErrorCode::body_too_large, and with those of trailers. Throws std::bad_alloc.
  [[nodiscard]] Result<std::size_t> read_body(Buffer& input, Buffer& output, std::size_t bytes_max);

  /// Call it at the end of the stream, when `input` is empty or more input was needed. Completes a
  /// body that ends with its connection. Fails with StreamError::eof before the first byte of a
  /// message, and with StreamError::truncated within it.
  [[nodiscard]] Result<> end_input(const Buffer& input);

  /// True if the head has been parsed.
  [[nodiscard]] bool has_head() const noexcept { return state_ != State::head; }
  /// True if head, body and trailers have been parsed.
  [[nodiscard]] bool is_complete() const noexcept { return state_ == State::complete; }
  [[nodiscard]] const BodyFraming& framing() const noexcept { return framing_; }
  /// True if another message may follow on the connection.
  [[nodiscard]] bool is_persistent() const noexcept { return persistent_; }
  /// Not empty only when the message is complete. They are not fields of the head: RFC 9110,
  /// section 6.5.
  [[nodiscard]] const Fields& trailers() const noexcept { return trailers_; }

  /// What is left of a body whose size is known.
  [[nodiscard]] std::optional<std::uint64_t> bytes_left() const noexcept {
    if (framing_.kind != BodyKind::length) return std::nullopt;
    return framing_.length - body_bytes_;
  }
  /// Changes the limit for the body of the current message.
  void set_body_bytes_max(std::uint64_t bytes) noexcept { limits_.body_bytes_max = bytes; }

 protected:
  MessageParser(HeadKind kind, const MessageLimits& limits, ParsingMode mode) noexcept
      : limits_(limits),
        body_bytes_max_(limits.body_bytes_max),
        lines_(kind, limits_, mode),
        chunks_(limits_, mode) {}
  ~MessageParser() = default;

  /// Returns the text of the head if it is complete, otherwise an empty one. The caller removes it
  /// from `input`.
  [[nodiscard]] Result<std::string_view> parse_lines(Buffer& input, Fields& fields);
  /// The same for input that is contiguous.
  [[nodiscard]] Result<std::string_view> parse_text(std::string_view text, Fields& fields);
  /// See HeadParser::parse_plain().
  [[nodiscard]] std::size_t parse_plain(std::string_view text, Fields& fields) {
    return error_ ? 0 : lines_.parse_plain(text, fields);
  }
  void begin_body(const BodyFraming& framing, bool persistent) noexcept;
  void restart(HeadKind kind) noexcept;
  [[nodiscard]] const HeadParser& lines() const noexcept { return lines_; }
  [[nodiscard]] std::unexpected<Error> fail(const Error& error) noexcept;
  [[nodiscard]] const Error& error() const noexcept { return error_; }

 private:
  enum class State : std::uint8_t { head, body, trailers, complete };

  [[nodiscard]] Result<std::size_t> read_plain(Buffer& input, Buffer& output,
                                               std::size_t bytes_max);
  [[nodiscard]] Result<std::size_t> read_chunks(Buffer& input, Buffer& output,
                                                std::size_t bytes_max);
  [[nodiscard]] Result<> read_trailers(Buffer& input);

  MessageLimits limits_;
  std::uint64_t body_bytes_max_;  ///< The limit of messages that do not set their own.
  HeadParser lines_;
  ChunkParser chunks_;
  BodyFraming framing_;
  std::uint64_t body_bytes_ = 0;  ///< Read so far, unless the body is chunked.
  Fields trailers_;
  Error error_{};
  State state_ = State::head;
  bool persistent_ = false;
};

class RequestParser final : public MessageParser {
 public:
  explicit RequestParser(const MessageLimits& limits = {}) noexcept
      : MessageParser(HeadKind::request, limits, ParsingMode::strict) {}

  /// Returns true when the head is complete; its bytes have been removed from `input`. Returns
  /// false if more input is needed. Throws std::bad_alloc.
  [[nodiscard]] Result<bool> parse_head(Buffer& input);
  /// The same for input that is contiguous and has the whole of a usual head, of which the caller
  /// removes the head. Returns its size, or 0 if the function below has to be called, with the same
  /// input.
  [[nodiscard]] std::size_t parse_usual_head(std::string_view input);
  /// The same for input that is contiguous, of which the caller removes the head. Returns its size,
  /// or 0 if more input is needed, which the next call gets behind `input`.
  [[nodiscard]] Result<std::size_t> parse_head(std::string_view input);

  /// Valid when the head is complete, until restart().
  [[nodiscard]] RequestHead& head() noexcept { return head_; }
  [[nodiscard]] const RequestHead& head() const noexcept { return head_; }

  /// After parse_head() has failed, or a part of a head has arrived, which is still in `input`:
  /// makes head() consist of the method and the raw target, for logs. The target is empty if there
  /// is no valid request line. Throws std::bad_alloc.
  void keep_start_line(Buffer& input);

  /// Begins with the next request. Memory for its head is kept.
  void restart() noexcept;

 private:
  [[nodiscard]] Result<> begin_message(std::string_view text);

  RequestHead head_;
};

class ResponseParser : public MessageParser {
 public:
  /// Tests of servers use the strict mode.
  explicit ResponseParser(const MessageLimits& limits = {},
                          ParsingMode mode = ParsingMode::lenient_response) noexcept
      : MessageParser(HeadKind::response, limits, mode) {}

  /// Like RequestParser::parse_head(). `method` is that of the request, which decides whether the
  /// response has a body.
  [[nodiscard]] Result<bool> parse_head(Buffer& input, const Method& method);

  [[nodiscard]] ResponseHead& head() noexcept { return head_; }

  /// Begins with the next response, also after an interim one.
  void restart() noexcept;

 private:
  ResponseHead head_;
};

}  // namespace tambour::http::detail::h1
