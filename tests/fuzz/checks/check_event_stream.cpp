// Event streams that are divided in several ways, compared with a plain parser of the whole text.
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/bytes_checks.h"
#include "fuzz/input.h"
#include "http/event_source/event_parser.h"
#include "support/blocks.h"

namespace tambour::fuzz {
namespace {

using http::EventLimits;
using http::ReceivedEvent;

/// What was read until the end of the text or an error.
struct StreamReading {
  std::vector<std::string> events{};  ///< Type, data and id, with null bytes between them.
  std::string last_id{};
  std::optional<std::chrono::milliseconds> retry{};
  bool failed = false;

  bool operator==(const StreamReading&) const = default;
};

std::string text_of(const ReceivedEvent& event) {
  std::string text = event.type;
  return text.append(1, '\0').append(event.data).append(1, '\0').append(event.id);
}

StreamReading read(std::string_view stream, const EventLimits& limits,
                   const std::function<std::size_t()>& next, bool in_own_blocks) {
  http::detail::event_source::EventParser parser(limits);
  StreamReading reading;
  Buffer input;
  while (!stream.empty() && !reading.failed) {
    const std::string_view piece = stream.substr(0, std::max<std::size_t>(next(), 1));
    stream.remove_prefix(piece.size());
    in_own_blocks ? test::append_block(input, piece) : input.append(piece);
    for (;;) {
      const auto parsed = parser.parse(input);
      reading.failed = !parsed;
      if (!parsed || !*parsed) break;
      reading.events.push_back(text_of(parser.take_event()));
    }
  }
  if (reading.failed) return reading;
  reading.last_id = parser.last_event_id();
  reading.retry = parser.retry();
  return reading;
}

/// The lines that have an end; CRLF is one end. Sets `rest` to what follows them.
std::vector<std::string> lines_of(std::string_view stream, std::string& rest) {
  std::vector<std::string> lines(1);
  for (std::size_t i = 0; i < stream.size(); ++i) {
    if (stream[i] == '\r' || stream[i] == '\n') {
      if (stream.substr(i).starts_with("\r\n")) ++i;
      lines.emplace_back();
    } else {
      lines.back() += stream[i];
    }
  }
  rest = lines.back();
  lines.pop_back();
  return lines;
}

/// The plain parser of the whole text.
StreamReading read_plainly(std::string_view stream, const EventLimits& limits) {
  StreamReading reading;
  std::string rest;
  std::vector<std::string> lines = lines_of(stream, rest);
  std::string type, id;
  std::optional<std::string> data;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string line = lines[i];
    reading.failed = line.size() > limits.line_bytes_max;
    if (reading.failed) return reading;
    if (i == 0 && line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);
    if (line.empty()) {
      reading.last_id = id;
      if (data)
        reading.events.push_back(
            text_of({.type = type.empty() ? "message" : type, .data = *data, .id = id}));
      data.reset();
      type.clear();
      continue;
    }
    const std::size_t colon = line.find(':');
    const std::string name = line.substr(0, colon);
    std::string value = colon == std::string::npos ? "" : line.substr(colon + 1);
    if (value.starts_with(' ')) value.erase(0, 1);
    if (name == "data") {
      data = data ? *data + '\n' + value : value;
      reading.failed = data->size() > limits.data_bytes_max;
    } else if (name == "event") {
      type = value;
    } else if (name == "id") {
      reading.failed = value.size() > limits.id_bytes_max;
      if (value.find('\0') == std::string::npos) id = value;
    } else if (name == "retry" && !value.empty() &&
               value.find_first_not_of("0123456789") == std::string::npos) {
      std::uint64_t number = 0;
      for (const char digit : value)
        number = std::min<std::uint64_t>(number * 10 + (digit - '0'), 0xffffffff);
      reading.retry = std::chrono::milliseconds(number);
    }
    if (reading.failed) return {.events = reading.events, .failed = true};
  }
  if (rest.size() > limits.line_bytes_max) return {.events = reading.events, .failed = true};
  return reading;
}

}  // namespace

void check_event_stream(Bytes bytes) {
  if (bytes.size() < 4) return;
  Input input(bytes.first(4));
  const bool is_unlimited = input.flag();
  EventLimits limits;
  if (!is_unlimited) {
    limits = {.line_bytes_max = input.below(40) + std::size_t{4},
              .data_bytes_max = input.below(30),
              .id_bytes_max = input.below(8)};
  }
  const std::string_view stream = text_of(bytes.subspan(4));
  StreamReading expected = read_plainly(stream, limits);
  if (expected.failed) expected = {.events = expected.events, .failed = true};
  Input pieces(bytes);
  expect(read(
             stream, limits, [&] { return stream.size(); }, false) == expected,
         "the events differ when the text arrives at once");
  expect(read(
             stream, limits, [] { return 1U; }, false) == expected,
         "the events differ when the text arrives byte by byte");
  expect(read(
             stream, limits, [] { return 1U; }, true) == expected,
         "the events differ when each byte arrives in a block of its own");
  expect(read(
             stream, limits, [&] { return pieces.below(9); }, true) == expected,
         "the events differ when the text arrives in random pieces");
}

}  // namespace tambour::fuzz
