// Messages in a stream that is divided in several ways, compared with a parser of the whole stream.
#include <cerrno>
#include <functional>
#include <vector>

#include <tambour/net/codec.h>

#include "fuzz/bytes_checks.h"
#include "fuzz/input.h"
#include "support/blocks.h"

namespace tambour::fuzz {
namespace {

/// The messages of a stream, read until its end or until an error.
struct Reading {
  std::vector<std::string> messages;
  bool refused = false;
  std::string left;

  bool operator==(const Reading&) const = default;
};

using Take = std::function<Result<std::optional<Buffer>>(Buffer&)>;

/// Reads the stream in pieces of the sizes that `next` returns.
Reading read(std::string_view stream, const Take& take, const std::function<std::size_t()>& next,
             bool in_own_blocks) {
  Buffer buffer;
  Reading reading;
  while (!stream.empty()) {
    const std::string_view piece = stream.substr(0, std::max<std::size_t>(next(), 1));
    stream.remove_prefix(piece.size());
    in_own_blocks ? test::append_block(buffer, piece) : buffer.append(piece);
    while (!reading.refused) {
      const std::size_t size = buffer.size();
      auto message = take(buffer);
      if (!message) {
        expect(message.error() == system_error(EMSGSIZE), "the error is not EMSGSIZE");
        expect(buffer.size() == size, "a failed call changed the buffer");
        reading.refused = true;
      } else if (*message) {
        reading.messages.push_back((*message)->to_string());
      } else {
        break;
      }
    }
  }
  reading.left = buffer.to_string();
  return reading;
}

/// The simple parser of the whole stream.
Reading read_lines(std::string_view stream, std::size_t bytes_max) {
  Reading reading;
  for (;;) {
    const std::size_t end = stream.find('\n');
    std::string_view line = stream.substr(0, end);
    const bool is_whole = end != std::string_view::npos;
    if (line.ends_with('\r') && (is_whole || line.size() == bytes_max + 1)) line.remove_suffix(1);
    reading.refused = line.size() > bytes_max;
    if (reading.refused || !is_whole) break;
    reading.messages.emplace_back(line);
    stream.remove_prefix(end + 1);
  }
  reading.left = stream;
  return reading;
}

Reading read_messages(std::string_view stream, const LengthOptions& options) {
  Reading reading;
  const auto bytes = static_cast<std::size_t>(options.length_bytes);
  while (stream.size() >= bytes) {
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      const bool is_big = options.byte_order == std::endian::big;
      length = length * 256 + static_cast<unsigned char>(stream[is_big ? i : bytes - 1 - i]);
    }
    reading.refused = length > options.bytes_max || length > Buffer::max_size() - bytes;
    if (reading.refused || stream.size() - bytes < length) break;
    const auto size = static_cast<std::size_t>(length);
    reading.messages.emplace_back(stream.substr(bytes, size));
    stream.remove_prefix(bytes + size);
  }
  reading.left = stream;
  return reading;
}

Reading read_sizes(std::string_view stream, std::size_t size) {
  Reading reading;
  for (; stream.size() >= size; stream.remove_prefix(size))
    reading.messages.emplace_back(stream.substr(0, size));
  reading.left = stream;
  return reading;
}

void check_splits(std::string_view stream, const Take& take, const Reading& expected,
                  Input& pieces) {
  expect(read(
             stream, take, [&] { return stream.size(); }, false) == expected,
         "the result differs when the stream arrives at once");
  expect(read(
             stream, take, [] { return 1U; }, false) == expected,
         "the result differs when the stream arrives byte by byte");
  expect(read(
             stream, take, [] { return 1U; }, true) == expected,
         "the result differs when each byte arrives in a block of its own");
  expect(read(
             stream, take, [&] { return pieces.below(9); }, true) == expected,
         "the result differs when the stream arrives in random pieces");
}

/// Messages that were read can be written and read again.
void check_line_writer(const Reading& reading, std::size_t bytes_max) {
  Buffer written;
  std::string expected;
  for (const std::string& line : reading.messages) {
    const bool may = line.find_first_of("\r\n") == std::string::npos;
    expect(append_line(written, line, "\r\n").has_value() == may,
           "append_line() accepted or rejected the wrong line");
    if (may) expected += line + "\r\n";
  }
  expect(written == expected, "append_line() appended the wrong bytes");
  const auto again = read_lines(expected, bytes_max);
  for (const std::string& line : again.messages) {
    auto taken = take_line(written, {.bytes_max = bytes_max});
    expect(taken && *taken && **taken == line,
           "take_line() returned another line than was appended");
  }
}

void check_message_writer(const Reading& reading, const LengthOptions& options) {
  Buffer copied, moved;
  for (const std::string& message : reading.messages) {
    expect(append_message(copied, message, options).has_value(),
           "append_message() rejected a message that was read");
    expect(append_message(moved, Buffer(message), options).has_value(),
           "append_message() rejected a message that was read");
  }
  expect(copied == moved.to_string(),
         "append_message() appended different bytes for a span and a Buffer");
  expect(read_messages(copied.to_string(), options).messages == reading.messages,
         "the model read other messages than were appended");
}

}  // namespace

void check_codec(Bytes bytes) {
  if (bytes.size() < 4) return;
  Input input(bytes.first(4));
  const std::size_t kind = input.below(3);
  const std::size_t number = input.byte();
  const std::size_t number_of_bytes = input.below(8) + 1;
  const bool is_unlimited = input.flag();
  Input pieces(bytes);
  const std::string_view stream = text_of(bytes.subspan(4));
  if (kind == 0) {
    const std::size_t bytes_max = is_unlimited ? SIZE_MAX : number;
    const auto expected = read_lines(stream, bytes_max);
    const Take take = [bytes_max](Buffer& from) {
      return take_line(from, {.bytes_max = bytes_max});
    };
    check_splits(stream, take, expected, pieces);
    check_line_writer(expected, bytes_max);
  } else if (kind == 1) {
    const LengthOptions options{
        .length_bytes = int(number_of_bytes),
        .byte_order = number % 2 == 0 ? std::endian::big : std::endian::little,
        .bytes_max = is_unlimited ? SIZE_MAX : number};
    const auto expected = read_messages(stream, options);
    const Take take = [&options](Buffer& from) { return take_message(from, options); };
    check_splits(stream, take, expected, pieces);
    check_message_writer(expected, options);
  } else {
    const std::size_t size = number + 1;
    const Take take = [size](Buffer& from) -> Result<std::optional<Buffer>> {
      return take_exactly(from, size);
    };
    check_splits(stream, take, read_sizes(stream, size), pieces);
  }
}

}  // namespace tambour::fuzz
