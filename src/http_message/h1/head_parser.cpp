// HeadParser: parses lines as they become complete, and checks the limits of size and of number
// while they are not.
#include "http_message/h1/head_parser.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "http_message/characters.h"
#include "http_message/failure.h"
#include "http_message/h1/trailers.h"
#include "http_message/line_scan.h"

namespace tambour::http::detail::h1 {
namespace {

constexpr std::size_t version_size = 8;
constexpr std::size_t status_digits = 3;
constexpr std::string_view blanks = " \t";
constexpr std::size_t line_end_size = 2;
constexpr std::size_t host_name_size = 4;
/// What is parsed as plain lines at once: less than FieldWriter::add_short() can describe.
constexpr std::size_t plain_bytes_max = 8192;

constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

/// The size of a valid target that begins with "/", without percent signs in its path; 0 if it is
/// another one. A byte that no target contains must follow.
std::size_t size_of_plain_target(const char* at, const char* end) noexcept {
  if (*at != '/') return 0;
  const std::size_t size = length_of(at, end, target_path_char, [](const CharacterBlock& block) {
    return block.first_outside_path();
  });
  if (at[size] != '?') return size;
  const char* const query = at + size + 1;
  return size + 1 + length_of(query, end, target_query_char, [](const CharacterBlock& block) {
           return block.first_outside_query();
         });
}

/// The text up to the last line end of the first `bytes_max` bytes behind `from`. What follows may
/// be a body.
std::string_view complete_lines(std::string_view text, std::size_t from,
                                std::size_t bytes_max) noexcept {
  const std::string_view searched = text.substr(0, from + bytes_max);
  const void* const last = ::memrchr(searched.data(), '\n', searched.size());
  if (last == nullptr) return {};
  return text.substr(0, static_cast<std::size_t>(static_cast<const char*>(last) - text.data()) + 1);
}

/// A word of the text `from`, which has at least its size.
template <class Word>
Word word_at(const char* from) noexcept {
  Word word{};
  std::memcpy(&word, from, sizeof word);
  return word;
}

/// A literal as a word, for a comparison that is shorter than a call of memcmp(3).
template <std::size_t size>
consteval auto word_of(const char (&text)[size]) noexcept {
  std::array<char, size - 1> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = text[i];
  using Word = std::conditional_t<size == 5, std::uint32_t, std::uint64_t>;
  return std::bit_cast<Word>(bytes);
}

/// True if a line with at least four more bytes begins with the name "Host", in any case.
bool begins_with_host(const char* line) noexcept {
  constexpr std::uint32_t lower_case = 0x20202020;
  return (word_at<std::uint32_t>(line) | lower_case) == word_of("host");
}

/// True if a host is a name, or a name and a port that are valid without further checks. A blank or
/// a line end must follow it before `end`.
bool is_plain_host(std::string_view host, const char* end) noexcept {
  constexpr std::size_t port_size_max = 4;  // More digits may be too large a number.
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): `end` bounds it.
  const std::size_t size = length_of(host.data(), end, host_char, [](const CharacterBlock& block) {
    return block.first_unusual_in_host();
  });
  if (size == host.size()) return true;
  if (size == 0 || host[size] != ':') return false;
  const std::string_view port = host.substr(size + 1);
  return !port.empty() && port.size() <= port_size_max &&
         std::ranges::all_of(port, [](char c) { return is_digit(c); });
}

/// The error of a text that must not contain `bad`.
std::unexpected<Error> refusal(std::string_view text, http::ErrorCode error) noexcept {
  const bool has_return = text.find('\r') != std::string_view::npos;
  return failure(has_return ? http::ErrorCode::bare_carriage_return : error);
}

/// Checks the bytes of a method that are known. It is checked before its line is complete, so that
/// a peer that speaks another protocol is not waited for.
Result<> check_method(std::string_view line) noexcept {
  const std::size_t end = std::min(line.find(' '), line.size());
  for (std::size_t i = 0; i < end; ++i) {
    if (i == Method::size_max) return failure(http::ErrorCode::method_too_long);
    if (!is(line[i], token_char))
      return refusal(line.substr(i, 1), http::ErrorCode::bad_method_name);
  }
  return {};
}

}  // namespace

void HeadParser::restart(HeadKind kind) noexcept {
  kind_ = kind;
  state_ = has_start_line(kind) ? State::before_start_line : State::fields;
  line_at_ = examined_ = start_line_bytes_ = field_bytes_ = 0;
  ignores_field_ = has_plain_target_ = has_host_ = has_plain_host_ = false;
  fields_.clear();
}

std::size_t HeadParser::parse_plain(std::string_view text, Fields& fields) {
  if (!parse_plain_lines(text)) return 0;
  fields_.finish(fields, text.substr(0, line_at_));
  return line_at_;
}

Result<std::optional<std::size_t>> HeadParser::parse(std::string_view text, Fields& fields) {
  while (true) {
    if (const std::size_t size = parse_plain(text, fields); size > 0) return size;
    const std::size_t feed = text.find('\n', examined_);
    if (feed == std::string_view::npos) {
      examined_ = text.size();
      if (auto checked = check_partial_line(text.substr(line_at_)); !checked)
        return std::unexpected(checked.error());
      return std::nullopt;
    }
    examined_ = feed + 1;
    const bool has_return = feed > line_at_ && text[feed - 1] == '\r';
    if (!has_return && !is_lenient()) {
      // The error of an earlier byte comes first, as if the line had arrived byte by byte.
      if (auto checked = check_partial_line(text.substr(line_at_, feed - line_at_)); !checked)
        return std::unexpected(checked.error());
      return failure(http::ErrorCode::bare_line_feed);
    }
    const auto is_end = parse_line(text, feed - (has_return ? 1 : 0) - line_at_);
    if (!is_end) return std::unexpected(is_end.error());
    line_at_ = feed + 1;
    if (*is_end) {
      fields_.finish(fields, text.substr(0, line_at_));
      return line_at_;
    }
  }
}

/// `line_size` does not include the line end.
Result<> HeadParser::check_size(std::size_t line_size) const noexcept {
  if (state_ != State::fields) {
    if (line_size > limits_->http_1.start_line_bytes_max)
      return failure(http::ErrorCode::start_line_too_long);
    return {};
  }
  const std::size_t bytes_max =
      has_start_line(kind_) ? limits_->fields_bytes_max : limits_->trailers_bytes_max;
  if (line_size > bytes_max - field_bytes_) return failure(http::ErrorCode::fields_too_large);
  return {};
}

/// Fails only for reasons for which the complete line fails too.
Result<> HeadParser::check_partial_line(std::string_view line) const noexcept {
  // The last byte may belong to the line end.
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (kind_ == HeadKind::request && state_ != State::fields) {
    if (auto checked = check_method(line); !checked) return checked;
  }
  return check_size(line.size());
}

Result<bool> HeadParser::parse_line(std::string_view text, std::size_t size) {
  const std::string_view line = text.substr(line_at_, size);
  if (state_ == State::fields) {
    if (line.empty()) return true;
    if (auto parsed = parse_field(text, size); !parsed) return std::unexpected(parsed.error());
    return false;
  }
  // A server ignores an empty line before a request: RFC 9112, section 2.2.
  const bool is_first = state_ == State::before_start_line;
  if (line.empty() && is_first && kind_ == HeadKind::request) {
    state_ = State::start_line;
    return false;
  }
  const auto parsed =
      kind_ == HeadKind::request ? parse_request_line(line) : parse_status_line(line);
  if (!parsed) return std::unexpected(parsed.error());
  start_line_bytes_ = size;
  state_ = State::fields;
  return false;
}

/// Parses lines from `line` on. Returns the first one that is not "Name: value" with a valid name
/// and value.
[[gnu::always_inline]] inline const char* HeadParser::parse_plain_fields(std::string_view text,
                                                                         const char* line) {
  const char* const end = text.data() + text.size();
  const char* const first = line;
  const std::size_t count_before = fields_.size();
  std::size_t count_left = limits_->fields_max - count_before;
  while (line < end && *line != '\r' && count_left > 0) {
    const char* const colon = end_of_name(line, end);
    if (colon == line || *colon != ':') break;
    const char* const line_end = end_of_value(colon + 1, end);
    if (*line_end != '\r' || line_end[1] != '\n') break;
    const char* value = colon + 1;
    while (is_blank(*value)) ++value;
    const char* value_end = line_end;
    while (is_blank(value_end[-1]) && value_end > value) --value_end;
    const auto name_size = static_cast<std::size_t>(colon - line);
    const std::string_view value_text(value, static_cast<std::size_t>(value_end - value));
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the place to count from.
    fields_.add_short(text.data(), line, name_size, value_text);
    if (name_size == host_name_size && begins_with_host(line)) note_host(value_text, text);
    line = line_end + line_end_size;
    --count_left;
  }
  const std::size_t count = fields_.size() - count_before;
  if (count > 0) ignores_field_ = false;
  field_bytes_ += static_cast<std::size_t>(line - first) - line_end_size * count;
  return line;
}

/// Remembers the host, unless it has to be examined further.
[[gnu::always_inline]] inline void HeadParser::note_host(std::string_view host,
                                                         std::string_view text) noexcept {
  has_plain_host_ = !has_host_ && is_plain_host(host, text.data() + text.size());
  has_host_ = true;
  host_at_ = static_cast<std::size_t>(host.data() - text.data());
  host_size_ = host.size();
}

[[gnu::always_inline]] inline bool HeadParser::parse_plain_lines(std::string_view text) {
  if (!has_start_line(kind_) || examined_ != line_at_ || line_at_ >= text.size()) return false;
  // As many bytes as the fields may have, which need not be counted one by one then.
  const std::size_t bytes_max = std::min(limits_->fields_bytes_max - field_bytes_, plain_bytes_max);
  if (!text.ends_with('\n') || text.size() - line_at_ > bytes_max)
    text = complete_lines(text, line_at_, bytes_max);
  if (line_at_ >= text.size() || text.size() > Fields::bytes_max) return false;
  // Each loop below ends at the last byte, at the latest.
  if (state_ != State::fields && !parse_plain_request_line(text)) return false;
  const char* const rest = parse_plain_fields(text, text.data() + line_at_);
  line_at_ = static_cast<std::size_t>(rest - text.data());
  const bool is_end = line_at_ < text.size() && rest[0] == '\r' && rest[1] == '\n';
  if (is_end) line_at_ += line_end_size;
  examined_ = line_at_;
  return is_end;
}

/// The size of the method, which a space follows; 0 if it is not valid. The line is complete.
[[gnu::always_inline]] inline std::size_t HeadParser::parse_plain_method(const char* line,
                                                                         const char* end) noexcept {
  constexpr std::size_t word_size = 4;
  if (static_cast<std::size_t>(end - line) > word_size &&
      word_at<std::uint32_t>(line) == word_of("GET ")) {
    method_ = Method::get;
    return word_size - 1;
  }
  const std::size_t size = length_of(line, token_char);
  if (size > Method::size_max || line[size] != ' ') return 0;
  if (size > 0) method_ = Method::parse({line, size}).value_or(Method::get);
  return size;
}

bool HeadParser::parse_plain_request_line(std::string_view text) noexcept {
  constexpr std::size_t rest_size = 11;  // Of " HTTP/1.1" and the line end.
  if (kind_ != HeadKind::request) return false;
  const char* const line = text.data() + line_at_;
  const char* const end = text.data() + text.size();
  const std::size_t method_size = parse_plain_method(line, end);
  if (method_size == 0) return false;
  const char* const target = line + method_size + 1;
  const std::size_t target_size = size_of_plain_target(target, end);
  const char* const version = target + target_size;
  if (target_size == 0 || static_cast<std::size_t>(end - version) < rest_size ||
      word_at<std::uint64_t>(version) != word_of(" HTTP/1.") ||
      word_at<std::uint32_t>(version + rest_size - sizeof(std::uint32_t)) != word_of(".1\r\n"))
    return false;
  const std::size_t size = method_size + 1 + target_size + version_size + 1;
  if (size > limits_->http_1.start_line_bytes_max) return false;
  version_ = Version::http_1_1;
  rest_at_ = static_cast<std::size_t>(target - text.data());
  rest_size_ = target_size;
  has_plain_target_ = true;
  start_line_bytes_ = size;
  state_ = State::fields;
  end_line(size + line_end_size);
  return true;
}

Result<> HeadParser::parse_request_line(std::string_view line) {
  if (auto checked = check_method(line); !checked) return checked;
  if (auto checked = check_size(line.size()); !checked) return checked;
  const std::size_t target = line.find(' ');
  if (target == 0 || target == std::string_view::npos)
    return failure(http::ErrorCode::bad_request_line);
  method_ = Method::parse(line.substr(0, target)).value_or(Method::get);
  const std::size_t version = line.find(' ', target + 1);
  if (version == std::string_view::npos || version == target + 1)
    return refusal(line, http::ErrorCode::bad_request_line);
  if (line.find(' ', version + 1) != std::string_view::npos)
    return refusal(line, http::ErrorCode::bad_request_line);
  rest_at_ = line_at_ + target + 1;
  rest_size_ = version - target - 1;
  if (line.find('\r') != std::string_view::npos)
    return failure(http::ErrorCode::bare_carriage_return);
  return parse_version(line.substr(version + 1));
}

Result<> HeadParser::parse_status_line(std::string_view line) {
  if (auto checked = check_size(line.size()); !checked) return checked;
  if (line.find('\r') != std::string_view::npos)
    return failure(http::ErrorCode::bare_carriage_return);
  // "HTTP/1.1 200 OK"; the phrase may be empty, but not the space before it. If the parser is
  // lenient, the space may be missing, too, and there may be several blanks before the status.
  const auto is_separator = [this](char c) { return c == ' ' || (c == '\t' && is_lenient()); };
  std::size_t version_end = 0;
  while (version_end < line.size() && !is_separator(line[version_end])) ++version_end;
  if (auto parsed = parse_version(line.substr(0, version_end)); !parsed) return parsed;
  std::size_t status_at = std::min(version_end + 1, line.size());
  while (is_lenient() && status_at < line.size() && is_separator(line[status_at])) ++status_at;
  const std::size_t status_end = status_at + status_digits;
  if (line.size() < status_end || (line.size() == status_end && !is_lenient()) ||
      (line.size() > status_end && !is_separator(line[status_end])) ||
      !std::ranges::all_of(line.substr(status_at, status_digits),
                           [](char c) { return is_digit(c); }))
    return failure(http::ErrorCode::bad_status_line);
  const int status = (line[status_at] - '0') * 100 + (line[status_at + 1] - '0') * 10 +
                     (line[status_at + 2] - '0');
  if (status < 100) return failure(http::ErrorCode::bad_status_line);
  status_ = Status(status);
  const std::string_view reason = line.substr(std::min(status_end + 1, line.size()));
  const bool is_valid = all_are(reason, value_char);
  if (!is_valid && !is_lenient()) return failure(http::ErrorCode::bad_status_line);
  rest_at_ = line_at_ + line.size() - reason.size();
  rest_size_ = is_valid ? reason.size() : 0;  // It has no meaning.
  return {};
}

Result<> HeadParser::parse_version(std::string_view text) {
  if (text.size() != version_size || !text.starts_with("HTTP/") || !is_digit(text[5]) ||
      text[6] != '.' || !is_digit(text[7]))
    return failure(http::ErrorCode::bad_version);
  if (text[5] != '1') return failure(http::ErrorCode::version_not_supported);
  version_ = text[7] == '0' ? Version::http_1_0 : Version::http_1_1;
  return {};
}

Result<> HeadParser::parse_field(std::string_view text, std::size_t size) {
  if (auto checked = check_size(size); !checked) return checked;
  field_bytes_ += size;
  const std::string_view line = text.substr(line_at_, size);
  if (line[0] == ' ' || line[0] == '\t') return continue_field(text, size);
  const std::size_t count_max = has_start_line(kind_) ? limits_->fields_max : limits_->trailers_max;
  if (fields_.size() == count_max) return failure(http::ErrorCode::too_many_fields);
  std::size_t name_size = 0;
  while (name_size < size && is(line[name_size], token_char)) ++name_size;
  const std::string_view name = line.substr(0, name_size);
  std::size_t colon = name_size;
  if (name_size == size || line[name_size] != ':' || name.empty()) {
    const auto found = find_colon(line, name_size);
    if (!found) return std::unexpected(found.error());
    colon = *found;
  }
  const std::string_view value = trim(line.substr(colon + 1));
  if (!is_field_value(value)) [[unlikely]] {
    if (auto checked = check_bad_value(name, value); !checked) return checked;
  }
  const bool is_allowed = kind_ != HeadKind::trailers || may_be_trailer(name);
  if (!is_allowed && !is_lenient()) return failure(http::ErrorCode::trailer_not_allowed);
  ignores_field_ = name.empty() || !is_allowed;
  if (ignores_field_) return {};
  const detail::FieldWriter::Place place = {
      .name_at = line_at_,
      .name_size = name_size,
      .value_at = static_cast<std::size_t>(value.data() - text.data()),
      .value_size = value.size()};
  if (!fields_.add(text, place)) return failure(http::ErrorCode::fields_too_large);
  has_host_ = true;  // It may be the host.
  has_plain_host_ = false;
  return {};
}

Result<std::size_t> HeadParser::find_colon(std::string_view line,
                                           std::size_t name_size) const noexcept {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return refusal(line, http::ErrorCode::missing_colon);
  // A field without a name is ignored.
  if (colon == 0 && is_lenient()) return colon;
  const std::size_t end = line.find_first_not_of(blanks, name_size);
  if (end == colon && end > name_size) {
    const std::string_view name = line.substr(0, name_size);
    if (name.empty() || !is_lenient() || is_framing_field(name))
      return failure(http::ErrorCode::space_before_colon);
    return colon;
  }
  return refusal(line.substr(0, colon), http::ErrorCode::bad_field_name);
}

Result<> HeadParser::check_bad_value(std::string_view name, std::string_view value) noexcept {
  // RFC 9110, section 5.5: null bytes and line ends are dangerous, other control characters are
  // replaced.
  constexpr std::string_view dangerous("\0\r", 2);
  if (!is_lenient() || is_framing_field(name) ||
      value.find_first_of(dangerous) != std::string_view::npos)
    return refusal(value, http::ErrorCode::bad_field_value);
  fields_.request_repair();
  return {};
}

/// A line that begins with a blank continues the value of the field before it. A user agent must
/// replace the line end by a space: RFC 9112, section 5.2.
Result<> HeadParser::continue_field(std::string_view text, std::size_t size) {
  if (!is_lenient() || (fields_.size() == 0 && !ignores_field_))
    return failure(http::ErrorCode::folded_field);
  const std::string_view name = ignores_field_ ? "" : fields_.last_name(text);
  if (is_framing_field(name)) return failure(http::ErrorCode::folded_field);
  const std::string_view value = trim(text.substr(line_at_, size));
  if (!is_field_value(value)) [[unlikely]] {
    if (auto checked = check_bad_value(name, value); !checked) return checked;
  }
  if (ignores_field_ || value.empty()) return {};
  if (!fields_.continue_last(static_cast<std::size_t>(value.data() - text.data()) + value.size()))
    return failure(http::ErrorCode::fields_too_large);
  return {};
}

}  // namespace tambour::http::detail::h1
