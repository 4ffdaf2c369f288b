// The rules for messages of HTTP/2: RFC 9113, section 8.1 to 8.5, and RFC 8441.
//
// A message that breaks one is malformed: its stream is reset, the connection goes on. The
// functions make the head that handlers see, which does not depend on the version of the protocol.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>

#include <tambour/detail/namespaces.h>
#include <tambour/http/message.h>

#include "http_message/h2/field_section.h"
#include "http_message/h2/violation.h"

namespace tambour::http::detail::h2 {

struct RequestRules {
  /// SETTINGS_ENABLE_CONNECT_PROTOCOL was sent with 1: RFC 8441, section 3.
  bool allows_connect_protocol = false;
};

/// Sets `head`, and `protocol` to that of an extended CONNECT, or to an empty text. `section` must
/// not be too large. The field Host becomes the authority if there is no other, and is removed.
/// Throws std::bad_alloc.
[[nodiscard]] std::expected<void, Violation> make_request(FieldSection& section,
                                                          const RequestRules& rules,
                                                          RequestHead& head, std::string& protocol);

/// The same for a response, also an interim one. `ends_stream`: HEADERS had the flag END_STREAM.
[[nodiscard]] std::expected<void, Violation> make_response(FieldSection& section, bool ends_stream,
                                                           ResponseHead& head);

/// The same for trailers.
[[nodiscard]] std::expected<void, Violation> make_trailers(FieldSection& section, Fields& trailers);

/// Compares the DATA of a message with its Content-Length: RFC 9113, section 8.1.1.
class BodyLength {
 public:
  /// No message, or one of any length.
  BodyLength() = default;
  /// Fails with Violation::bad_content_length.
  [[nodiscard]] static std::expected<BodyLength, Violation> of_request(
      const RequestHead& head) noexcept;
  /// `method` is that of the request. A response to HEAD, and one with the status 304, may have a
  /// Content-Length and must have no DATA.
  [[nodiscard]] static std::expected<BodyLength, Violation> of_response(
      const ResponseHead& head, const Method& method) noexcept;

  /// DATA has arrived. Fails with Violation::body_longer_than_content_length.
  [[nodiscard]] std::expected<void, Violation> add(std::uint64_t bytes) noexcept;
  /// The stream has ended. Fails with Violation::body_shorter_than_content_length.
  [[nodiscard]] std::expected<void, Violation> finish() const noexcept;

  /// What the Content-Length says; nullopt if the length is not known.
  [[nodiscard]] std::optional<std::uint64_t> bytes_left() const noexcept { return left_; }

 private:
  explicit BodyLength(std::optional<std::uint64_t> left) noexcept : left_(left) {}

  std::optional<std::uint64_t> left_;
};

}  // namespace tambour::http::detail::h2
