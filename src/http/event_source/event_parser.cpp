// EventParser: lines, their fields, and events.
#include "http/event_source/event_parser.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>

#include "base/parse_number.h"
#include "http_message/failure.h"

namespace tambour::http::detail::event_source {
namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<bool> EventParser::parse(Buffer& input) {
  if (std::exchange(is_parsing_, true)) return std::unexpected(system_error(ENOMEM));
  const auto parsed = parse_lines(input);
  is_parsing_ = false;
  return parsed;
}

Result<bool> EventParser::parse_lines(Buffer& input) {
  for (;;) {
    const auto has_line = take_line(input);
    if (!has_line || !*has_line) return has_line;
    std::string_view line = line_;
    if (std::exchange(may_have_mark_, false) && line.starts_with(byte_order_mark))
      line.remove_prefix(byte_order_mark.size());
    const auto has_event = process_line(line);
    line_.clear();
    if (!has_event || *has_event) return has_event;
  }
}

ReceivedEvent EventParser::take_event() {
  ReceivedEvent event;
  event.id = last_event_id_;
  event.type = type_.empty() ? "message" : std::move(type_);
  data_.pop_back();  // The LF of the last line.
  event.data = std::move(data_);
  type_.clear();
  data_.clear();
  return event;
}

Result<bool> EventParser::take_line(Buffer& input) {
  while (!input.empty()) {
    const std::string_view text = text_of(input.front());
    if (std::exchange(is_after_carriage_return_, false) && text.front() == '\n') {
      input.consume(1);
      continue;
    }
    const std::size_t end = text.find_first_of("\r\n");
    const std::string_view part = text.substr(0, end);
    if (part.size() > limits_.line_bytes_max - std::min(line_.size(), limits_.line_bytes_max))
      return failure(http::ErrorCode::event_line_too_long);
    line_.append(part);
    if (end == std::string_view::npos) {
      input.consume(text.size());
      continue;
    }
    is_after_carriage_return_ = text[end] == '\r';
    input.consume(end + 1);
    return true;
  }
  return false;
}

Result<bool> EventParser::process_line(std::string_view line) {
  if (line.empty()) {
    // The id counts even if there is no data.
    last_event_id_ = id_;
    if (!data_.empty()) return true;
    type_.clear();
    return false;
  }
  const std::size_t colon = line.find(':');
  if (colon == 0) return false;  // A comment.
  std::string_view value;
  if (colon != std::string_view::npos) value = line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (const auto processed = process_field(line.substr(0, colon), value); !processed)
    return std::unexpected(processed.error());
  return false;
}

Result<> EventParser::process_field(std::string_view name, std::string_view value) {
  if (name == "data") {
    // The LF of the last line is not part of the data, but those before it are.
    const std::size_t limit = limits_.data_bytes_max;
    if (data_.size() > limit || value.size() > limit - data_.size())
      return failure(http::ErrorCode::event_too_large);
    data_.append(value).append(1, '\n');
  } else if (name == "event") {
    type_ = value;
  } else if (name == "id") {
    if (value.size() > limits_.id_bytes_max) return failure(http::ErrorCode::event_too_large);
    if (!value.contains('\0')) id_ = value;
  } else if (name == "retry") {
    const bool is_digits = !value.empty() && std::ranges::all_of(value, [](char character) {
      return character >= '0' && character <= '9';
    });
    // Larger numbers than this are as good as none.
    constexpr std::uint32_t milliseconds_max = 0xffffffff;
    if (is_digits)
      retry_ = std::chrono::milliseconds(
          base::parse_number<std::uint32_t>(value).value_or(milliseconds_max));
  }
  return {};
}

}  // namespace tambour::http::detail::event_source
