#include "http/h1/head_parser.h"

#include <algorithm>

#include "http/characters.h"
#include "http/failure.h"
#include "http/h1/trailers.h"

namespace tambour::http::h1 {
namespace {

constexpr std::size_t version_size = 8;

/// The error of a text that must not contain `bad`.
std::unexpected<Error> refusal(std::string_view text, HttpError error) noexcept {
  const bool has_return = text.find('\r') != std::string_view::npos;
  return failure(has_return ? HttpError::bare_carriage_return : error);
}

/// Checks the bytes of a method that are known. It is checked before its line is complete, so that
/// a peer that speaks another protocol is not waited for.
Result<> check_method(std::string_view line) noexcept {
  const std::size_t end = std::min(line.find(' '), line.size());
  for (std::size_t i = 0; i < end; ++i) {
    if (i == Method::size_max) return failure(HttpError::method_too_long);
    if (!is(line[i], token_char)) return refusal(line.substr(i, 1), HttpError::bad_method_name);
  }
  return {};
}

}  // namespace

void HeadParser::restart(HeadKind kind) noexcept {
  kind_ = kind;
  state_ = has_start_line(kind) ? State::before_start_line : State::fields;
  line_at_ = examined_ = field_bytes_ = 0;
  fields_.clear();
}

Result<std::optional<std::size_t>> HeadParser::parse(std::string_view text, Fields& fields) {
  while (true) {
    const std::size_t feed = text.find('\n', examined_);
    if (feed == std::string_view::npos) {
      examined_ = text.size();
      if (auto checked = check_partial_line(text.substr(line_at_)); !checked)
        return std::unexpected(checked.error());
      return std::nullopt;
    }
    examined_ = feed + 1;
    const bool has_return = feed > line_at_ && text[feed - 1] == '\r';
    if (!has_return) {
      // The error of an earlier byte comes first, as if the line had arrived byte by byte.
      if (auto checked = check_partial_line(text.substr(line_at_, feed - line_at_)); !checked)
        return std::unexpected(checked.error());
      return failure(HttpError::bare_line_feed);
    }
    const auto is_end = parse_line(text, feed - 1 - line_at_);
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
    if (line_size > limits_->start_line_bytes_max) return failure(HttpError::start_line_too_long);
    return {};
  }
  const std::size_t bytes_max =
      has_start_line(kind_) ? limits_->fields_bytes_max : limits_->trailers_bytes_max;
  if (line_size > bytes_max - field_bytes_) return failure(HttpError::fields_too_large);
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
  state_ = State::fields;
  return false;
}

Result<> HeadParser::parse_request_line(std::string_view line) {
  if (auto checked = check_method(line); !checked) return checked;
  if (auto checked = check_size(line.size()); !checked) return checked;
  const std::size_t target = line.find(' ');
  if (target == 0 || target == std::string_view::npos) return failure(HttpError::bad_request_line);
  method_ = Method::parse(line.substr(0, target)).value_or(Method::get);
  const std::size_t version = line.find(' ', target + 1);
  if (version == std::string_view::npos || version == target + 1)
    return refusal(line, HttpError::bad_request_line);
  if (line.find(' ', version + 1) != std::string_view::npos)
    return refusal(line, HttpError::bad_request_line);
  rest_at_ = line_at_ + target + 1;
  rest_size_ = version - target - 1;
  if (line.find('\r') != std::string_view::npos) return failure(HttpError::bare_carriage_return);
  return parse_version(line.substr(version + 1));
}

Result<> HeadParser::parse_status_line(std::string_view line) {
  if (auto checked = check_size(line.size()); !checked) return checked;
  // "HTTP/1.1 200 OK"; the space after the status is required, the phrase may be empty.
  constexpr std::size_t status_at = version_size + 1;
  constexpr std::size_t reason_at = status_at + 4;
  if (line.find('\r') != std::string_view::npos) return failure(HttpError::bare_carriage_return);
  if (auto parsed = parse_version(line.substr(0, std::min(line.find(' '), line.size()))); !parsed)
    return parsed;
  if (line.size() < reason_at || line[reason_at - 1] != ' ' ||
      !std::ranges::all_of(line.substr(status_at, 3), [](char c) { return is_digit(c); }))
    return failure(HttpError::bad_status_line);
  const int status = (line[status_at] - '0') * 100 + (line[status_at + 1] - '0') * 10 +
                     (line[status_at + 2] - '0');
  if (status < 100) return failure(HttpError::bad_status_line);
  status_ = Status(status);
  rest_at_ = line_at_ + reason_at;
  rest_size_ = line.size() - reason_at;
  if (!all_are(line.substr(reason_at), value_char)) return failure(HttpError::bad_status_line);
  return {};
}

Result<> HeadParser::parse_version(std::string_view text) {
  if (text.size() != version_size || !text.starts_with("HTTP/") || !is_digit(text[5]) ||
      text[6] != '.' || !is_digit(text[7]))
    return failure(HttpError::bad_version);
  if (text[5] != '1') return failure(HttpError::version_not_supported);
  version_ = text[7] == '0' ? Version::http_1_0 : Version::http_1_1;
  return {};
}

Result<> HeadParser::parse_field(std::string_view text, std::size_t size) {
  if (auto checked = check_size(size); !checked) return checked;
  field_bytes_ += size;
  const std::size_t count_max = has_start_line(kind_) ? limits_->fields_max : limits_->trailers_max;
  if (fields_.size() == count_max) return failure(HttpError::too_many_fields);
  const std::string_view line = text.substr(line_at_, size);
  if (line[0] == ' ' || line[0] == '\t') return failure(HttpError::folded_field);
  std::size_t name_size = 0;
  while (name_size < size && is(line[name_size], token_char)) ++name_size;
  const std::string_view name = line.substr(0, name_size);
  if (name_size == size || line[name_size] != ':' || name.empty()) {
    if (line.find(':') == std::string_view::npos) return refusal(line, HttpError::missing_colon);
    const std::size_t end = line.find_first_not_of(" \t", name_size);
    if (end > name_size && line[end] == ':') return failure(HttpError::space_before_colon);
    return refusal(line.substr(0, line.find(':')), HttpError::bad_field_name);
  }
  const std::string_view value = trim(line.substr(name_size + 1));
  if (!is_field_value(value)) return refusal(value, HttpError::bad_field_value);
  if (kind_ == HeadKind::trailers && !may_be_trailer(name))
    return failure(HttpError::trailer_not_allowed);
  const detail::FieldWriter::Place place = {
      .name_at = line_at_,
      .name_size = name_size,
      .value_at = static_cast<std::size_t>(value.data() - text.data()),
      .value_size = value.size()};
  if (!fields_.add(text, place)) return failure(HttpError::fields_too_large);
  return {};
}

}  // namespace tambour::http::h1
