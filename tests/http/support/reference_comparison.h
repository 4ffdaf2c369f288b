// Compares what the library's parser and llhttp read from a text. Where both accept a message, its
// parts and its end must be the same. Every other kind of difference is listed here, with its
// reason; one that is not listed is reported.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "http/support/messages.h"
#include "http/support/reference_parser.h"

namespace tambour::test {

struct Stricter {
  http::ErrorCode error;
  const char* llhttp;
};

/// What the library rejects and llhttp accepts.
inline constexpr std::array stricter = {
    Stricter{http::ErrorCode::bare_carriage_return, "skips any CR before a start line"},
    Stricter{http::ErrorCode::bare_line_feed, "accepts LF as a line end after the start line"},
    Stricter{http::ErrorCode::bad_request_line, "skips empty lines and spaces, accepts HTTP/0.9"},
    Stricter{http::ErrorCode::bad_target, "accepts any printable character, fragments, no forms"},
    Stricter{http::ErrorCode::version_not_supported, "accepts HTTP/0.9 and HTTP/2.0"},
    Stricter{http::ErrorCode::bad_status_line, "does not require the space after the status"},
    Stricter{http::ErrorCode::bad_version, "skips empty lines before a status line"},
    Stricter{http::ErrorCode::folded_field, "accepts folded fields (RFC 9112, section 5.2)"},
    Stricter{http::ErrorCode::bad_field_name, "accepts an empty name"},
    Stricter{http::ErrorCode::missing_host, "does not check the Host field"},
    Stricter{http::ErrorCode::several_hosts, "does not check the Host field"},
    Stricter{http::ErrorCode::bad_host, "does not check the Host field"},
    Stricter{http::ErrorCode::bad_content_length, "accepts numbers from 2^63 to 2^64 - 1"},
    Stricter{http::ErrorCode::length_with_transfer_encoding, "ignores an empty Transfer-Encoding"},
    Stricter{http::ErrorCode::transfer_encoding_in_http_1_0, "does not distinguish the versions"},
    Stricter{http::ErrorCode::bad_transfer_encoding, "looks only at the last word of the value"},
    Stricter{http::ErrorCode::unsupported_transfer_encoding, "leaves other codings to its user"},
    Stricter{http::ErrorCode::bad_chunk_size, "accepts sizes from 2^60 to 2^64 - 1"},
    Stricter{http::ErrorCode::bad_chunk_extension, "accepts empty names and values"},
    Stricter{http::ErrorCode::connect_with_body,
             "takes the body for the first bytes of the tunnel"},
    Stricter{http::ErrorCode::trailer_not_allowed, "accepts any trailer"},
    Stricter{http::ErrorCode::body_too_large, "has no limits"},
    Stricter{http::ErrorCode::start_line_too_long, "has no limits"},
    Stricter{http::ErrorCode::fields_too_large, "has no limits"},
    Stricter{http::ErrorCode::too_many_fields, "has no limits"},
    Stricter{http::ErrorCode::chunk_extensions_too_large, "has no limits"},
};

struct Looser {
  const char* llhttp;
  const char* reason;
};

/// What llhttp rejects and the library accepts.
inline constexpr std::array looser = {
    Looser{"Invalid method encountered", "it knows a list of methods; RFC 9110, section 9.1"},
    Looser{"Expected space after method", "the beginning of a method of its list"},
    Looser{"Invalid HTTP version", "later minor versions are compatible; RFC 9110, section 2.5"},
    Looser{"Invalid character in chunk size", "space before an extension; section 7.1.1"},
    Looser{"Invalid character in chunk extensions", "space around its parts; section 7.1.1"},
    Looser{"Invalid character in chunk extensions quoted value", "an escaped quotation mark"},
};

class ReferenceComparison {
 public:
  explicit ReferenceComparison(bool has_requests, const http::MessageLimits& limits = {})
      : has_requests_(has_requests), limits_(limits) {}

  [[nodiscard]] Verdict read(const std::string& text) const {
    if (has_requests_) {
      MessageReader<http::detail::h1::RequestParser> reader(limits_);
      return read_in_pieces(text, {}, reader);
    }
    MessageReader<StrictResponseParser> reader(limits_);
    return read_in_pieces(text, {}, reader);
  }

  /// Returns what differs and is not listed; counts the rest.
  std::string compare(const std::string& text) {
    return compare(text, read(text), read_with_reference(text, has_requests_));
  }

  /// Like compare(), but also with llhttp reading the text in two pieces, in every way.
  /// read_in_every_way() checks that the library's verdict does not depend on that.
  std::string compare_in_every_way(const std::string& text) {
    const Verdict verdict = read(text);
    const ReferenceVerdict whole = read_with_reference(text, has_requests_);
    std::string difference = compare(text, verdict, whole);
    for (std::size_t i = 1; i < text.size() && difference.empty(); ++i) {
      const ReferenceVerdict divided = read_with_reference(text, has_requests_, {i});
      if (divided == whole) continue;
      difference = compare(text, verdict, divided);
      if (!difference.empty()) difference += ", divided at " + std::to_string(i);
    }
    return difference;
  }

  std::size_t agreed = 0;  ///< Complete messages that both accept.
  std::map<std::string, std::size_t> seen{};

 private:
  std::string compare(const std::string& text, const Verdict& verdict,
                      const ReferenceVerdict& other) {
    std::size_t same = 0;
    while (is_complete(verdict.messages, same) && is_complete(other.messages, same)) {
      const std::string difference = compare(verdict.messages[same], other.messages[same]);
      if (!difference.empty()) return difference;
      // Each parser stops at another place after the last message of a connection.
      if (!verdict.messages[same].is_persistent || ends_http(verdict.messages[same])) return "";
      ++same;
      ++agreed;
    }
    if (other.upgraded && same == other.messages.size()) return "";
    // The library reports no end of a message that is not followed by HTTP.
    if (same < verdict.messages.size() && verdict.messages[same].start.starts_with("101 "))
      return "";
    if (fails(verdict) && other.failed) return "";
    if (fails(verdict)) return check_stricter(verdict.error);
    if (other.failed) return check_looser(text, other.reason);
    if (is_complete(verdict.messages, same) || is_complete(other.messages, same))
      return "one more message is complete";
    return "";
  }

  static bool is_complete(const std::vector<Message>& messages, std::size_t index) {
    return index < messages.size() && messages[index].is_complete;
  }
  static bool fails(const Verdict& verdict) {
    return verdict.error != StreamError::eof && verdict.error != StreamError::truncated;
  }
  [[nodiscard]] bool ends_http(const Message& message) const {
    return has_requests_ && message.start.starts_with("CONNECT ");
  }

  static std::string compare(const Message& message, const Message& other) {
    if (message.end != other.end) return "another end";
    if (message.body != other.body) return "another body";
    if (message.fields != other.fields) return "other fields";
    if (message.trailers != other.trailers) return "other trailers";
    // llhttp reads Proxy-Connection, which no RFC defines, as Connection.
    if (message.is_persistent != other.is_persistent &&
        message.fields.find("Proxy-Connection") == std::string::npos)
      return "persistent or not";
    if (message.start.substr(0, message.start.find(' ')) !=
        other.start.substr(0, other.start.find(' ')))
      return "another method or status";
    return "";
  }

  std::string check_stricter(const Error& error) {
    ++seen[error.message()];
    const bool listed = std::ranges::any_of(
        stricter, [&](const Stricter& entry) { return make_error_code(entry.error) == error; });
    return listed ? "" : "only the library rejects: " + error.message();
  }

  std::string check_looser(const std::string& text, const std::string& reason) {
    for (const Looser& entry : looser) {
      if (!reason.ends_with(": " + std::string(entry.llhttp))) continue;
      ++seen[entry.llhttp];
      return "";
    }
    // llhttp may find an error before the line is complete: it must be an error of the line.
    for (const char* rest : {"\r\n\r\n", "x\r\n\r\n", "\n\r\n\r\n"}) {
      if (!fails(read(text + rest))) return "only llhttp rejects: " + reason;
    }
    return "";
  }

  bool has_requests_;
  http::MessageLimits limits_;
};

}  // namespace tambour::test
