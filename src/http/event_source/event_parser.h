// Parses event streams: HTML Standard, section 9.2.6. The text may be divided anywhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/event_source.h>

namespace tambour::http::detail::event_source {

class EventParser {
 public:
  explicit EventParser(const EventLimits& limits, std::string last_event_id = {})
      : limits_(limits), id_(last_event_id), last_event_id_(std::move(last_event_id)) {}

  /// Removes lines from `input` until an event is complete. False: more input is needed, and
  /// `input` is empty. Fails with http::ErrorCode::event_line_too_long and event_too_large. Throws
  /// std::bad_alloc; what has arrived of an event is then lost, and further calls fail with ENOMEM.
  /// Must not be used after another error.
  [[nodiscard]] Result<bool> parse(Buffer& input);
  /// The event that parse() has completed.
  [[nodiscard]] ReceivedEvent take_event();

  [[nodiscard]] const std::string& last_event_id() const noexcept { return last_event_id_; }
  [[nodiscard]] std::optional<std::chrono::milliseconds> retry() const noexcept { return retry_; }

 private:
  [[nodiscard]] Result<bool> parse_lines(Buffer& input);
  /// Takes the rest of a line, with its end, or a part of one. True if the line is complete.
  [[nodiscard]] Result<bool> take_line(Buffer& input);
  /// True if the line has completed an event.
  [[nodiscard]] Result<bool> process_line(std::string_view line);
  [[nodiscard]] Result<> process_field(std::string_view name, std::string_view value);

  EventLimits limits_;
  std::string line_;  ///< Of which the end has not arrived.
  std::string type_;
  std::string data_;  ///< Each line with an LF.
  std::string id_;    ///< Becomes the last id with the end of the event.
  std::string last_event_id_;
  std::optional<std::chrono::milliseconds> retry_;
  bool is_parsing_ = false;                ///< Still true in the next call: an exception.
  bool may_have_mark_ = true;              ///< Of the byte order, at the begin of the stream.
  bool is_after_carriage_return_ = false;  ///< A line feed belongs to the last line.
};

}  // namespace tambour::http::detail::event_source
