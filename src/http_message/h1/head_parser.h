// Parses the lines before and after a body: the start line and fields of a message of HTTP/1.1, and
// its trailers (RFC 9112, sections 2 to 5); and the fields of a part of a multipart body.
//
// The text must be contiguous and begin at the first byte of the head. It may arrive in pieces:
// each call gets all of it, and examines only what was added. The verdict does not depend on how
// the text was divided. Nothing is copied until the head is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/message.h>

#include "http_message/field_writer.h"
#include "http_message/h1/parsing_mode.h"

namespace tambour::http::detail::h1 {

/// `part`: of a part of a multipart body. Its limits are those of trailers.
enum class HeadKind : std::uint8_t { request, response, trailers, part };

class HeadParser {
 public:
  /// `limits` must outlive the parser.
  HeadParser(HeadKind kind, const MessageLimits& limits,
             ParsingMode mode = ParsingMode::strict) noexcept
      : limits_(&limits), kind_(kind), mode_(mode) {}

  /// Begins with another head.
  void restart(HeadKind kind) noexcept;
  /// Only between two heads. The lenient mode is for responses and their trailers.
  void set_mode(ParsingMode mode) noexcept { mode_ = mode; }
  [[nodiscard]] ParsingMode mode() const noexcept { return mode_; }

  /// Parses the lines of `text`. Returns the size of the head, including the empty line, when it is
  /// complete, and replaces `fields` by its fields; nullopt if bytes are missing. `fields` do not
  /// change until then. After an error, the parser must be restarted.
  [[nodiscard]] Result<std::optional<std::size_t>> parse(std::string_view text, Fields& fields);

  /// The same for a head that is complete and consists of plain lines, as most do. Returns 0 if
  /// parse() has to be called.
  [[nodiscard]] std::size_t parse_plain(std::string_view text, Fields& fields);

  // The start line, when the head is complete.
  [[nodiscard]] const Method& method() const noexcept { return method_; }
  [[nodiscard]] Status status() const noexcept { return status_; }
  [[nodiscard]] Version version() const noexcept { return version_; }
  /// True if the start line is valid; `text` of rest_of_start_line() may end at start_line_end().
  [[nodiscard]] bool has_start_line() const noexcept {
    return has_start_line(kind_) && state_ == State::fields;
  }
  [[nodiscard]] std::size_t start_line_end() const noexcept { return rest_at_ + rest_size_; }
  /// The size of the lines, without their ends, when the head is complete.
  [[nodiscard]] std::size_t line_bytes() const noexcept { return start_line_bytes_ + field_bytes_; }
  /// True if the target of the request begins with "/" and is valid, without percent signs in its
  /// path. False for some other valid ones.
  [[nodiscard]] bool has_plain_target() const noexcept { return has_plain_target_; }
  /// The Host field, if there is one and its host is a name without a port; empty if it has to be
  /// looked up and checked.
  [[nodiscard]] std::string_view plain_host(std::string_view text) const noexcept {
    return has_plain_host_ ? text.substr(host_at_, host_size_) : std::string_view();
  }
  /// False if the head that is complete says neither where its body ends nor whether the connection
  /// stays open.
  [[nodiscard]] bool may_have_framing() const noexcept {
    return fields_.may_have(detail::KnownName("Content-Length"),
                            detail::KnownName("Transfer-Encoding"),
                            detail::KnownName("Connection"));
  }
  /// The request target, or the reason phrase.
  [[nodiscard]] std::string_view rest_of_start_line(std::string_view text) const noexcept {
    return text.substr(rest_at_, rest_size_);
  }

 private:
  enum class State : std::uint8_t { before_start_line, start_line, fields };

  [[nodiscard]] static constexpr bool has_start_line(HeadKind kind) noexcept {
    return kind == HeadKind::request || kind == HeadKind::response;
  }
  [[nodiscard]] Result<> check_size(std::size_t line_size) const noexcept;
  [[nodiscard]] Result<> check_partial_line(std::string_view line) const noexcept;
  /// Returns true if the line is the empty one at the end.
  [[nodiscard]] Result<bool> parse_line(std::string_view text, std::size_t size);
  /// What most heads consist of, in one pass: complete lines that end with CR LF. Returns true at
  /// the end of the head, false at a line that is anything else, or an error, which the functions
  /// below then examine.
  [[nodiscard]] bool parse_plain_lines(std::string_view text);
  /// Returns false, and changes at most method(), if the line is not plain.
  [[nodiscard]] bool parse_plain_request_line(std::string_view text) noexcept;
  [[nodiscard]] std::size_t parse_plain_method(const char* line, const char* end) noexcept;
  [[nodiscard]] const char* parse_plain_fields(std::string_view text, const char* line);
  void note_host(std::string_view host, std::string_view text) noexcept;
  void end_line(std::size_t size) noexcept { examined_ = line_at_ += size; }

  [[nodiscard]] Result<> parse_request_line(std::string_view line);
  [[nodiscard]] Result<> parse_status_line(std::string_view line);
  [[nodiscard]] Result<> parse_version(std::string_view text);
  [[nodiscard]] Result<> parse_field(std::string_view text, std::size_t size);
  [[nodiscard]] Result<> continue_field(std::string_view text, std::size_t size);
  /// Where the colon of a field is that does not follow a valid name.
  [[nodiscard]] Result<std::size_t> find_colon(std::string_view line,
                                               std::size_t name_size) const noexcept;
  /// Of a value with control characters.
  [[nodiscard]] Result<> check_bad_value(std::string_view name, std::string_view value) noexcept;
  [[nodiscard]] bool is_lenient() const noexcept { return mode_ == ParsingMode::lenient_response; }

  const MessageLimits* limits_;
  HeadKind kind_;
  ParsingMode mode_;
  bool has_plain_target_ = false;
  bool has_host_ = false;        ///< One Host field, or a field that was not examined for that.
  bool has_plain_host_ = false;  ///< The place of the host is known.
  bool ignores_field_ = false;   ///< The last field was not stored; neither are its further lines.
  State state_ = has_start_line(kind_) ? State::before_start_line : State::fields;
  Version version_ = Version::http_1_1;
  Status status_ = Status::ok;
  Method method_;
  detail::FieldWriter fields_;
  std::size_t line_at_ = 0;   ///< Where the current line begins.
  std::size_t examined_ = 0;  ///< The bytes in which no line feed was found.
  std::size_t start_line_bytes_ = 0;
  std::size_t field_bytes_ = 0;  ///< The size of the lines with fields.
  std::size_t rest_at_ = 0;
  std::size_t rest_size_ = 0;
  std::size_t host_at_ = 0;
  std::size_t host_size_ = 0;
};

}  // namespace tambour::http::detail::h1
