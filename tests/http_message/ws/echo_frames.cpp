// Reads the frames of a peer and writes each message back, for compare_with_wsproto.py. Reads
// records: a byte of flags (1: as a server, 2: permessage-deflate, 4: without context takeover),
// the window bits, a length of four bytes, and the frames. Writes for each a line for each event,
// with payloads as hexadecimal digits, and a line with the close code of the error, or 0.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <string_view>

#include <tambour/bytes/buffer.h>

#include "http/websocket/deflate.h"
#include "http_message/ws/frame_parser.h"
#include "http_message/ws/frame_writer.h"
#include "http_message/ws/utf8.h"

namespace {

using namespace tambour;
using http::detail::ws::FrameParser;
using http::detail::ws::Role;

std::string hexadecimal(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    digits += "0123456789abcdef"[byte >> 4U];
    digits += "0123456789abcdef"[byte & 15U];
  }
  return digits;
}

void fill(std::span<std::byte> bytes) {
  static std::minstd_rand random(1);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
}

class Echo {
 public:
  Echo(Role role, bool has_deflate, bool has_context, int window_bits)
      : parser_(role, limits_, has_deflate),
        writer_(role, fill),
        deflater_({.window_bits = window_bits, .has_context_takeover = has_context}),
        inflater_({.window_bits = window_bits, .has_context_takeover = has_context}),
        has_deflate_(has_deflate) {}

  void read(std::string_view frames) {
    // Some frames arrive in two pieces.
    for (const std::string_view piece :
         {frames.substr(0, frames.size() / 2), frames.substr(frames.size() / 2)}) {
      input_.append(piece);
      for (bool has_more = true; has_more;) {
        const auto event = parser_.parse(input_, payload_);
        const auto handled = event ? handle(*event) : Result<bool>(std::unexpected(event.error()));
        if (!handled) {
          std::cout << static_cast<int>(http::detail::ws::close_code_for(handled.error())) << '\n';
          return;
        }
        has_more = *handled;
      }
    }
    std::cout << "0\n";
  }

 private:
  Result<bool> handle(FrameParser::Event event) {
    switch (event) {
      case FrameParser::Event::none:
        return false;
      case FrameParser::Event::data:
        return true;
      case FrameParser::Event::message_end:
        return echo();
      case FrameParser::Event::close:
        std::cout << "close " << static_cast<int>(parser_.close_code()) << ' '
                  << hexadecimal(parser_.control_payload()) << '\n';
        return true;
      default:
        std::cout << (event == FrameParser::Event::ping ? "ping " : "pong ")
                  << hexadecimal(parser_.control_payload()) << '\n';
        return true;
    }
  }

  Result<bool> echo() {
    Buffer message;
    if (parser_.is_compressed()) {
      const auto progress = inflater_.decompress(payload_, true, message, SIZE_MAX);
      if (!progress) return std::unexpected(progress.error());
      if (parser_.is_text() && !http::detail::ws::is_utf8(message.coalesce()))
        return http::detail::ws::failure(http::WebSocketError::invalid_utf8);
    } else {
      message.append(std::move(payload_));
    }
    const auto opcode =
        parser_.is_text() ? http::detail::ws::Opcode::text : http::detail::ws::Opcode::binary;
    std::cout << (parser_.is_text() ? "text " : "binary ") << hexadecimal(message.coalesce());
    Buffer frames;
    if (has_deflate_) {
      Buffer compressed;
      deflater_.compress(std::move(message), true, compressed);
      message = std::move(compressed);
    }
    writer_.append_message(
        frames, std::move(message),
        {.opcode = opcode, .is_compressed = has_deflate_, .fragment_bytes_max = 1000});
    std::cout << ' ' << hexadecimal(frames.coalesce()) << '\n';
    return true;
  }

  http::detail::ws::FrameLimits limits_{};
  FrameParser parser_;
  http::detail::ws::FrameWriter writer_;
  http::detail::websocket::Deflater deflater_;
  http::detail::websocket::Inflater inflater_;
  bool has_deflate_;
  Buffer input_;
  Buffer payload_;
};

}  // namespace

int main() {
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  std::string_view left = input;
  while (left.size() >= 6) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(left[at]); };
    const unsigned flags = byte(0);
    const std::size_t size = (std::size_t{byte(2)} << 24U) + (std::size_t{byte(3)} << 16U) +
                             (std::size_t{byte(4)} << 8U) + byte(5);
    Echo echo((flags & 1U) != 0 ? Role::server : Role::client, (flags & 2U) != 0, (flags & 4U) == 0,
              byte(1));
    echo.read(left.substr(6, size));
    left.remove_prefix(6 + size);
  }
  return 0;
}
