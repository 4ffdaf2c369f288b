// Reads messages of HTTP/1 from an evbuffer, with the parsers of the layer `http`.
//
// Requests are parsed strictly (docs/decisions/0029), and responses leniently, if no framing
// depends on it (docs/decisions/0039). What libevent accepts and this reader rejects is listed in
// tests/differences.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <event2/http.h>
#include <event2/http_struct.h>

#include <tambour/http/message.h>

#include "http_message/h1/chunk_parser.h"
#include "http_message/h1/framing.h"
#include "http_message/h1/head_parser.h"

namespace tambour::libevent {

enum class ReadResult : std::uint8_t {
  incomplete,  ///< More input is needed.
  chunk,       ///< A chunk is complete.
  complete,
  invalid,
  too_long,  ///< A limit is exceeded.
  no_memory,
};

class MessageReader {
 public:
  /// The bytes of a head for which a program sets no limit. libevent has none.
  static constexpr std::size_t head_bytes_default = std::size_t{256} * 1024;
  static constexpr std::size_t fields_max = 1000;

  MessageReader() = default;
  MessageReader(const MessageReader&) = delete;
  MessageReader& operator=(const MessageReader&) = delete;

  /// Begins with the head of a message. The size of a head is that of its lines without line ends.
  void restart(evhttp_request_kind kind, std::size_t head_bytes_max,
               std::uint64_t body_bytes_max) noexcept;

  /// Removes a head from `input` when it is complete, and stores it in `message`. The target is not
  /// parsed. `method` is that of a response's request.
  [[nodiscard]] ReadResult read_head(evbuffer* input, evhttp_request& message,
                                     const http::Method& method) noexcept;

  /// Where the body of the message ends, after its head.
  [[nodiscard]] const http::detail::h1::BodyFraming& framing() const noexcept { return framing_; }

  /// Moves bytes of a chunked body from `input` to `body`, up to the end of a chunk.
  [[nodiscard]] ReadResult read_chunk(evbuffer* input, evbuffer* body) noexcept;
  /// The size of all chunks so far, and what is missing of the current one.
  [[nodiscard]] std::uint64_t body_bytes() const noexcept { return chunks_.body_bytes(); }
  [[nodiscard]] std::uint64_t chunk_left() const noexcept { return chunks_.data_left(); }
  /// Removes the trailers, which are discarded: they must not be taken for fields of the head.
  /// Their size is added to that of the head.
  [[nodiscard]] ReadResult read_trailers(evbuffer* input, evhttp_request& message) noexcept;

  /// For evhttp_parse_firstline_() and evhttp_parse_headers_(): parses a text that is a complete
  /// head, and stores only one part of it.
  [[nodiscard]] ReadResult parse_start_line(std::string_view head,
                                            evhttp_request& message) noexcept;
  [[nodiscard]] ReadResult parse_fields(std::string_view head, evhttp_request& message) noexcept;

 private:
  struct Lines {
    ReadResult result = ReadResult::incomplete;
    std::string_view text{};  ///< A view into the input.
  };

  [[nodiscard]] http::Fields& headers() noexcept;
  [[nodiscard]] Lines read_lines(evbuffer* input);
  [[nodiscard]] Lines parse_lines(std::string_view text);
  [[nodiscard]] bool trim_request_line(evbuffer* input);
  [[nodiscard]] bool check_framing(const http::Method& method) noexcept;
  [[nodiscard]] ReadResult store(std::string_view text, evhttp_request& message,
                                 const http::Method& method) noexcept;
  [[nodiscard]] bool store_start_line(std::string_view text, evhttp_request& message) noexcept;
  [[nodiscard]] bool store_fields(evhttp_request& message) noexcept;

  http::MessageLimits limits_;
  std::size_t head_bytes_max_ = head_bytes_default;
  http::detail::h1::HeadParser lines_{http::detail::h1::HeadKind::request, limits_};
  http::detail::h1::ChunkParser chunks_{limits_};
  http::RequestHead request_;
  http::ResponseHead response_;
  http::detail::h1::BodyFraming framing_;
  std::size_t trimmed_ = 0;  ///< Spaces at the end of the request line.
  bool is_request_ = true;
};

}  // namespace tambour::libevent
