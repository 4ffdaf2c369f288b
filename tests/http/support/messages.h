// Reads all messages in a text with the library's parsers, in any division into pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/bytes/buffer.h>
#include <tambour/net/stream_error.h>

#include "http_message/h1/parser.h"

namespace tambour::test {

/// What a parser has found in a message. `end` is the index of the byte after it.
struct Message {
  std::string start{};  ///< Method, target, form; or status and reason.
  std::string fields{};
  std::string body{};
  std::string trailers{};
  std::size_t end = 0;
  bool is_complete = false;
  bool is_persistent = false;

  bool operator==(const Message&) const = default;
};

/// All messages, the last of which may be incomplete, and the error at the end.
struct Verdict {
  std::vector<Message> messages{};
  Error error{};

  bool operator==(const Verdict&) const = default;
};

inline void PrintTo(const Verdict& verdict, std::ostream* out) {  // NOLINT: GoogleTest's name.
  for (const Message& message : verdict.messages)
    *out << message.start << '\n'
         << message.fields << "body: " << message.body << "\ntrailers: " << message.trailers
         << "\nend: " << message.end << ", complete: " << message.is_complete
         << ", persistent: " << message.is_persistent << '\n';
  *out << "error: " << verdict.error.message();
}

inline std::string text_of(const http::Fields& fields) {
  std::string text;
  for (const http::Field field : fields)
    text.append(field.name).append(": ").append(field.value) += '\n';
  return text;
}

inline std::string start_of(http::RequestHead& head) {
  return std::string(head.method.name()) + ' ' + head.scheme + ' ' + head.authority + ' ' +
         head.target + ' ' + std::to_string(static_cast<int>(head.version));
}
inline std::string start_of(http::ResponseHead& head) {
  return std::to_string(http::code_of(head.status)) + ' ' + head.reason + ' ' +
         std::to_string(static_cast<int>(head.version));
}

/// Accepts what RFC 9112 defines only.
class StrictResponseParser final : public http::detail::h1::ResponseParser {
 public:
  explicit StrictResponseParser(const http::MessageLimits& limits = {}) noexcept
      : ResponseParser(limits, http::detail::h1::ParsingMode::strict) {}
};

/// Reads messages until the input ends or an error occurs.
template <class Parser>
class MessageReader {
 public:
  /// `methods` are those of the requests, for a parser of responses; HEAD or GET, for example.
  explicit MessageReader(const http::MessageLimits& limits = {},
                         std::vector<http::Method> methods = {})
      : parser_(limits), methods_(std::move(methods)) {}

  /// The piece shares a block of memory with others if there is space. A head is parsed in the
  /// piece, as a server does, if nothing is in front of it.
  void add(std::string_view piece) {
    input_.append(piece.substr(parse_in_place(piece)));
    read(piece.size());
  }
  /// The piece has a block of its own.
  void add_block(std::string_view piece) {
    auto copy = std::make_shared<std::string>(piece);
    const auto bytes = std::as_bytes(std::span(*copy));
    input_.append_shared(bytes, std::move(copy));
    read(piece.size());
  }

  Verdict finish() {
    if (verdict_.error) return verdict_;
    Result<> ended = parser_.end_input(input_);
    if (ended) {
      // The body ends with the connection.
      end_message();
      ended = parser_.end_input(input_);
    }
    verdict_.error = ended.error();
    return verdict_;
  }

 private:
  Result<bool> parse_head() {
    if constexpr (std::is_same_v<Parser, http::detail::h1::RequestParser>) {
      return parser_.parse_head(input_);
    } else {
      const std::size_t index = std::min(responses_, methods_.size() - 1);
      return parser_.parse_head(input_, methods_.empty() ? http::Method::get : methods_[index]);
    }
  }

  /// Returns the size of the head that is complete, or 0.
  std::size_t parse_in_place(std::string_view piece) {
    if constexpr (std::is_same_v<Parser, http::detail::h1::RequestParser>) {
      if (verdict_.error || !input_.empty() || parser_.has_head() || piece.empty()) return 0;
      const Result<std::size_t> size = parser_.parse_head(piece);
      if (!size) verdict_.error = size.error();
      if (!size || *size == 0) return 0;
      begin_message();
      return *size;
    }
    return 0;
  }

  void begin_message() {
    verdict_.messages.push_back(
        {.start = start_of(parser_.head()), .fields = text_of(parser_.head().fields)});
  }

  void read(std::size_t added) {
    total_ += added;
    while (!verdict_.error && read_one() && !input_.empty()) {
    }
  }

  /// Returns true if a message was completed.
  bool read_one() {
    if (!parser_.has_head()) {
      const auto has_head = parse_head();
      if (!has_head) verdict_.error = has_head.error();
      if (!has_head || !*has_head) return false;
      begin_message();
      if constexpr (!std::is_same_v<Parser, http::detail::h1::RequestParser>) {
        if (!http::is_interim(parser_.head().status)) ++responses_;
      }
    }
    Message& message = verdict_.messages.back();
    while (!parser_.is_complete()) {
      Buffer body;
      const auto read = parser_.read_body(input_, body, 7);
      if (!read) verdict_.error = read.error();
      message.body += body.to_string();
      if (!read || (*read == 0 && !parser_.is_complete())) return false;
    }
    end_message();
    return true;
  }

  void end_message() {
    Message& message = verdict_.messages.back();
    message.is_complete = true;
    message.is_persistent = parser_.is_persistent();
    message.trailers = text_of(parser_.trailers());
    message.end = total_ - input_.size();
    parser_.restart();
  }

  Parser parser_;
  std::vector<http::Method> methods_;
  std::size_t responses_ = 0;
  Buffer input_;
  std::size_t total_ = 0;
  Verdict verdict_;
};

/// Reads `text` in pieces of which each ends at one of `ends`, and one more.
template <class Parser>
Verdict read_in_pieces(std::string_view text, const std::vector<std::size_t>& ends,
                       MessageReader<Parser>& reader, bool in_blocks = false) {
  std::size_t begin = 0;
  const auto add = [&](std::size_t end) {
    const std::string_view piece = text.substr(begin, end - begin);
    begin = end;
    if (in_blocks) {
      reader.add_block(piece);
    } else {
      reader.add(piece);
    }
  };
  for (const std::size_t end : ends) add(end);
  add(text.size());
  return reader.finish();
}

}  // namespace tambour::test
