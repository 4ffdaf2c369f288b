#include <cerrno>
#include <functional>
#include <vector>

#include <tambour/codec.h>

#include "fuzz/bytes_checks.h"
#include "fuzz/input.h"

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
    in_own_blocks ? buffer.append(Buffer(piece)) : buffer.append(piece);
    while (!reading.refused) {
      const std::size_t size = buffer.size();
      auto message = take(buffer);
      if (!message) {
        expect(message.error() == system_error(EMSGSIZE), "which error");
        expect(buffer.size() == size, "what an error leaves");
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
Reading read_lines(std::string_view stream, std::size_t most) {
  Reading reading;
  for (;;) {
    const std::size_t end = stream.find('\n');
    std::string_view line = stream.substr(0, end);
    const bool is_whole = end != std::string_view::npos;
    if (line.ends_with('\r') && (is_whole || line.size() == most + 1)) line.remove_suffix(1);
    reading.refused = line.size() > most;
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
  expect(read(stream, take, [&] { return stream.size(); }, false) == expected, "all at once");
  expect(read(stream, take, [] { return 1U; }, false) == expected, "byte by byte");
  expect(read(stream, take, [] { return 1U; }, true) == expected, "byte by byte, in blocks");
  expect(read(stream, take, [&] { return pieces.below(9); }, true) == expected, "in pieces");
}

/// Messages that were read can be written and read again.
void check_line_writer(const Reading& reading, std::size_t most) {
  Buffer written;
  std::string expected;
  for (const std::string& line : reading.messages) {
    const bool may = line.find_first_of("\r\n") == std::string::npos;
    expect(append_line(written, line, "\r\n").has_value() == may, "which lines are appended");
    if (may) expected += line + "\r\n";
  }
  expect(written == expected, "what is appended");
  const auto again = read_lines(expected, most);
  for (const std::string& line : again.messages) {
    auto taken = take_line(written, {.bytes_max = most});
    expect(taken && *taken && **taken == line, "lines that were appended");
  }
}

void check_message_writer(const Reading& reading, const LengthOptions& options) {
  Buffer copied, moved;
  for (const std::string& message : reading.messages) {
    expect(append_message(copied, message, options).has_value(), "append_message()");
    expect(append_message(moved, Buffer(message), options).has_value(), "append_message()");
  }
  expect(copied == moved.to_string(), "copied as moved");
  expect(read_messages(copied.to_string(), options).messages == reading.messages,
         "messages that were appended");
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
    const std::size_t most = is_unlimited ? SIZE_MAX : number;
    const auto expected = read_lines(stream, most);
    const Take take = [most](Buffer& from) { return take_line(from, {.bytes_max = most}); };
    check_splits(stream, take, expected, pieces);
    check_line_writer(expected, most);
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
