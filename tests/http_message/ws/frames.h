// WebSocket frames as text, and what the library's parser finds in them, in any division into
// pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/bytes/buffer.h>

#include "http_message/ws/frame_parser.h"
#include "support/blocks.h"

namespace tambour::test {

using http::detail::ws::FrameLimits;
using http::detail::ws::FrameParser;
using http::detail::ws::Role;

/// A frame as a peer of `role` receives it: masked for a server. Its size has the fewest bytes, or
/// `size_bytes`, which is 1, 2 or 8.
inline std::string frame_for(Role role, unsigned first_byte, std::string_view payload,
                             std::size_t size_bytes = 0) {
  constexpr std::string_view key = "\x37\xFA\x21\x3D";
  const bool is_masked = role == Role::server;
  const std::uint64_t size = payload.size();
  if (size_bytes == 0) size_bytes = size < 126 ? 1 : size < 65536 ? 2 : 8;
  std::string frame(1, static_cast<char>(first_byte));
  frame += static_cast<char>((is_masked ? 128U : 0U) | (size_bytes == 1   ? size
                                                        : size_bytes == 2 ? 126U
                                                                          : 127U));
  for (std::size_t i = size_bytes > 1 ? size_bytes : 0; i > 0; --i)
    frame += static_cast<char>(size >> 8 * (i - 1));
  if (is_masked) frame += key;
  for (std::size_t i = 0; i < payload.size(); ++i)
    frame += static_cast<char>(payload[i] ^ (is_masked ? key[i % 4] : '\0'));
  return frame;
}

/// Complete messages and control frames, for example "text hello" or "close 1000 bye", the part of
/// a message that is not complete, and the error.
struct Received {
  std::vector<std::string> events{};
  std::string incomplete{};
  Error error{};

  bool operator==(const Received&) const = default;
};

inline void PrintTo(const Received& received, std::ostream* out) {  // NOLINT: GoogleTest's name.
  for (const std::string& event : received.events) *out << event.substr(0, 200) << '\n';
  *out << "incomplete: " << received.incomplete.substr(0, 200)
       << "\nerror: " << received.error.message();
}

class FrameReader {
 public:
  explicit FrameReader(Role role, const FrameLimits& limits = {}, bool allows_compressed = false,
                       std::size_t bytes_max = std::numeric_limits<std::size_t>::max())
      : limits_(limits), parser_(role, limits_, allows_compressed), bytes_max_(bytes_max) {}

  /// The piece has a block of its own, or shares one with others.
  void add(std::string_view piece, bool in_block = false) {
    if (in_block) {
      append_block(input_, piece);
    } else {
      input_.append(piece);
    }
    while (!received_.error && read_event()) {
    }
  }

  [[nodiscard]] Received finish() {
    received_.incomplete = payload_.to_string();
    return std::move(received_);
  }
  [[nodiscard]] FrameParser& parser() noexcept { return parser_; }
  [[nodiscard]] std::size_t unread_bytes() const noexcept { return input_.size(); }

 private:
  bool read_event() {
    const auto event = parser_.parse(input_, payload_, bytes_max_);
    if (!event) {
      received_.error = event.error();
      return false;
    }
    switch (*event) {
      case FrameParser::Event::none:
        return false;
      case FrameParser::Event::data:
        return true;
      case FrameParser::Event::message_end: {
        const char* const compressed = parser_.is_compressed() ? "compressed " : "";
        const char* const type = parser_.is_text() ? "text " : "binary ";
        received_.events.push_back(compressed + (type + payload_.to_string()));
        payload_.clear();
        return true;
      }
      case FrameParser::Event::ping:
        received_.events.push_back("ping " + parser_.control_payload());
        return true;
      case FrameParser::Event::pong:
        received_.events.push_back("pong " + parser_.control_payload());
        return true;
      case FrameParser::Event::close:
        received_.events.push_back("close " +
                                   std::to_string(static_cast<int>(parser_.close_code())) + " " +
                                   parser_.control_payload());
        return true;
    }
    return false;
  }

  FrameLimits limits_;
  FrameParser parser_;
  std::size_t bytes_max_;
  Buffer input_;
  Buffer payload_;
  Received received_;
};

/// Adds `text` in pieces of which each ends at one of `ends`, and one more.
inline void add_in_pieces(FrameReader& reader, std::string_view text,
                          const std::vector<std::size_t>& ends, bool in_blocks = false) {
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    reader.add(text.substr(begin, end - begin), in_blocks);
    begin = end;
  }
  reader.add(text.substr(begin), in_blocks);
}

}  // namespace tambour::test
