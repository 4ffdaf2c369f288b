// WebSocket frames, divided in several ways, compared with a plain parser of the whole text; text
// compared with the table of UTF-8; handshakes, extensions and compressed messages.
#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#ifndef TAMBOUR_NO_ZLIB
#include <zlib.h>
#endif

#include "fuzz/bytes_checks.h"
#include "fuzz/input.h"
#include "http/websocket/deflate.h"
#include "http_message/ws/extensions.h"
#include "http_message/ws/frame_writer.h"
#include "http_message/ws/frames.h"
#include "http_message/ws/handshake.h"
#include "http_message/ws/utf8.h"

namespace tambour::fuzz {
namespace {

using http::detail::ws::close_code_for;
using test::FrameLimits;
using test::FrameReader;
using test::Received;
using test::Role;

constexpr FrameLimits small_limits{
    .frame_bytes_max = 300, .message_bytes_max = 400, .fragments_max = 6, .control_frames_max = 8};

enum class Text { valid, incomplete, invalid };

/// RFC 3629, section 4.
Text verdict_of_text(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = [&](std::size_t i) {
      return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : -1;
    };
    const int first = byte(0);
    std::size_t size = 1;
    int min = 0x80;
    int max = 0xBF;
    if (first >= 0xC2 && first <= 0xDF) size = 2;
    if (first >= 0xE0 && first <= 0xEF) size = 3;
    if (first >= 0xF0 && first <= 0xF4) size = 4;
    if (first == 0xE0) min = 0xA0;
    if (first == 0xED) max = 0x9F;
    if (first == 0xF0) min = 0x90;
    if (first == 0xF4) max = 0x8F;
    if (first >= 0x80 && size == 1) return Text::invalid;
    for (std::size_t i = 1; i < size; ++i) {
      if (byte(i) < 0) return Text::incomplete;
      if (byte(i) < min || byte(i) > max) return Text::invalid;
      min = 0x80;
      max = 0xBF;
    }
    at += size;
  }
  return Text::valid;
}

/// A plain parser of the whole text.
class FrameModel {
 public:
  FrameModel(std::string text, Role role, bool allows_compressed)
      : text_(std::move(text)), role_(role), allows_compressed_(allows_compressed) {}

  struct Verdict {
    std::vector<std::string> events{};
    std::string incomplete{};
    int code = 0;  ///< With which the connection is closed; zero if there is no error.
  };

  Verdict run() {
    while (verdict_.code == 0 && read_frame()) {
    }
    verdict_.incomplete = is_within_ ? message_ : "";
    return verdict_;
  }

 private:
  bool fail(int code) {
    verdict_.code = code;
    return false;
  }

  /// Returns false at the end.
  bool read_frame() {
    const std::string_view rest = std::string_view(text_).substr(at_);
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
    if (rest.empty()) return false;
    const unsigned opcode = byte(0) & 0x0F;
    const bool is_final = (byte(0) & 0x80) != 0;
    const bool is_control = opcode >= 8;
    const unsigned reserved = byte(0) & 0x70;
    if ((opcode > 2 && opcode < 8) || opcode > 10) return fail(1002);
    const bool begins = opcode == 1 || opcode == 2;
    if (reserved != 0 && (reserved != 0x40 || !allows_compressed_ || !begins)) return fail(1002);
    if (is_control ? !is_final : begins == is_within_) return fail(1002);
    if (rest.size() < 2) return false;
    const bool is_masked = (byte(1) & 0x80) != 0;
    if (is_masked != (role_ == Role::server)) return fail(1002);
    std::uint64_t size = byte(1) & 0x7F;
    const std::size_t more = size == 126 ? 2 : size == 127 ? 8 : 0;
    if (rest.size() < 2 + more) return false;
    if (more > 0) {
      size = 0;
      for (std::size_t i = 0; i < more; ++i) size = size * 256 + byte(2 + i);
      if (size < (more == 2 ? 126U : 65536U) || size >> 63 != 0) return fail(1002);
    }
    if (is_control && size > 125) return fail(1002);
    if (is_control && controls_ == small_limits.control_frames_max) return fail(1008);
    const std::size_t before = is_within_ ? message_.size() : 0;
    if (!is_control &&
        (size > small_limits.frame_bytes_max || before + size > small_limits.message_bytes_max ||
         (is_within_ && fragments_ == small_limits.fragments_max)))
      return fail(1009);
    const std::size_t header = 2 + more + (is_masked ? 4 : 0);
    if (rest.size() < header) return false;
    std::string payload(rest.substr(header, static_cast<std::size_t>(size)));
    for (std::size_t i = 0; is_masked && i < payload.size(); ++i)
      payload[i] = static_cast<char>(payload[i] ^ rest[header - 4 + i % 4]);
    const bool is_whole = payload.size() == size;
    at_ += header + payload.size();
    if (is_control) return is_whole && read_control(opcode, payload);
    return read_data(opcode, reserved != 0, is_final, is_whole, payload);
  }

  bool read_control(unsigned opcode, const std::string& payload) {
    ++controls_;
    if (opcode != 8) {
      verdict_.events.push_back((opcode == 9 ? "ping " : "pong ") + payload);
      return true;
    }
    int code = 1005;
    if (payload.size() == 1) return fail(1002);
    if (payload.size() > 1) {
      code = static_cast<unsigned char>(payload[0]) * 256 + static_cast<unsigned char>(payload[1]);
      const bool is_sent = (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
                           (code >= 3000 && code <= 4999);
      if (!is_sent) return fail(1002);
      if (verdict_of_text(payload.substr(2)) != Text::valid) return fail(1007);
    }
    verdict_.events.push_back("close " + std::to_string(code) + " " +
                              (payload.empty() ? "" : payload.substr(2)));
    return false;
  }

  bool read_data(unsigned opcode, bool is_compressed, bool is_final, bool is_whole,
                 const std::string& payload) {
    if (!is_within_) {
      message_.clear();
      fragments_ = 0;
      is_text_ = opcode == 1;
      is_compressed_ = is_compressed;
      is_within_ = true;
    }
    ++fragments_;
    message_ += payload;
    if (!payload.empty() || (is_final && is_whole)) controls_ = 0;
    const Text text = is_text_ && !is_compressed_ ? verdict_of_text(message_) : Text::valid;
    if (text == Text::invalid) return fail(1007);
    if (!is_whole) return false;
    if (!is_final) return true;
    if (text == Text::incomplete) return fail(1007);
    verdict_.events.push_back((is_compressed_ ? "compressed " : "") +
                              ((is_text_ ? "text " : "binary ") + message_));
    is_within_ = false;
    return true;
  }

  std::string text_;
  Role role_;
  bool allows_compressed_;
  std::size_t at_ = 0;
  std::string message_;
  std::uint32_t fragments_ = 0;
  std::uint32_t controls_ = 0;
  bool is_within_ = false;
  bool is_text_ = false;
  bool is_compressed_ = false;
  Verdict verdict_;
};

void check_frames(const std::string& text, Role role, bool allows_compressed, Bytes choices) {
  const FrameModel::Verdict model = FrameModel(text, role, allows_compressed).run();
  const auto compare = [&](const std::vector<std::size_t>& ends, bool in_blocks,
                           std::size_t bytes_max) {
    FrameReader reader(role, small_limits, allows_compressed, bytes_max);
    test::add_in_pieces(reader, text, ends, in_blocks);
    const Received received = reader.finish();
    const int code = received.error ? static_cast<int>(close_code_for(received.error)) : 0;
    expect(code == model.code, "frames fail in another way, or not at all");
    expect(received.events == model.events, "frames have other messages or control frames");
    if (code == 0)
      expect(received.incomplete == model.incomplete, "another part of an incomplete message");
  };
  compare({}, false, SIZE_MAX);
  std::vector<std::size_t> all;
  for (std::size_t i = 1; i < text.size(); ++i) all.push_back(i);
  compare(all, false, SIZE_MAX);
  compare(all, true, 1);
  if (text.size() < 2 || choices.size() < 3) return;
  std::vector<std::size_t> ends;
  for (const std::uint8_t choice : choices.first(3)) ends.push_back(choice % text.size());
  std::ranges::sort(ends);
  compare(ends, choices[0] % 2 == 0, 1 + choices[1]);
}

/// Frames that are mostly valid, made from the choices.
std::string make_frames(Input& choices, Role role) {
  std::string text;
  bool is_within = false;
  while (!choices.empty() && text.size() < 2000) {
    constexpr unsigned controls[] = {0x88, 0x89, 0x89, 0x8A};
    const std::size_t kind = choices.below(16);
    const bool is_final = choices.flag();
    unsigned first = is_within ? 0 : 1 + kind % 2;
    if (is_final) first |= 0x80;
    if (kind < 4) first = controls[kind];
    if (kind == 15) first = choices.byte();
    if (kind == 14 && !is_within) first |= 0x40;
    if (kind >= 4) is_within = !is_final;
    std::string payload;
    const std::size_t size = choices.below(8) == 0 ? 120 + choices.below(12) : choices.below(5);
    const std::string_view characters[] = {"a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
    while (payload.size() < size) payload += characters[choices.below(4)];
    if (kind == 0 && size > 0)
      payload = std::string{static_cast<char>(3 + choices.below(3)),
                            static_cast<char>(0xE0 + choices.below(32))} +
                payload;
    if (choices.below(16) == 0) payload.resize(payload.size() / 2);
    const std::size_t form = choices.below(32) == 0 ? 2 : 0;
    text += test::frame_for(role, first, payload, payload.size() > 65535 ? 0 : form);
  }
  return text;
}

/// What the writer writes is what the parser reads.
void check_writer(const std::string& payload, std::size_t fragment_bytes_max) {
  constexpr FrameLimits no_limits{UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX};
  const auto fill = [](std::span<std::byte> bytes) {
    static std::minstd_rand random(1);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  };
  for (const Role role : {Role::server, Role::client}) {
    Buffer buffer;
    http::detail::ws::FrameWriter writer(role, fill);
    writer.append_message(buffer, Buffer(payload), {.fragment_bytes_max = fragment_bytes_max});
    FrameReader reader(role == Role::server ? Role::client : Role::server, no_limits);
    reader.add(buffer.to_string());
    expect(reader.finish() == Received{.events = {"binary " + payload}},
           "a message that was written is not read again");
  }
}

void check_text(const std::string& text) {
  // Vectors are used for long text only.
  for (const std::size_t before : {0, 61, 100}) {
    const std::string whole = std::string(before, 'a') + text + std::string(before / 2, 'b');
    http::detail::ws::Utf8Validator validator;
    Text found = Text::invalid;
    if (validator.append(std::as_bytes(std::span(whole))))
      found = validator.is_complete() ? Text::valid : Text::incomplete;
    expect(found == verdict_of_text(whole), "another verdict on UTF-8");
  }
}

/// What a server accepts is what a client confirms.
void check_handshake(const std::string& text) {
  http::RequestHead head;
  if (!head.fields.add("Sec-WebSocket-Extensions", text) ||
      !head.fields.add("Sec-WebSocket-Protocol", text) ||
      !head.fields.add("Sec-WebSocket-Key", text) || !head.fields.add("Origin", text))
    return;
  static_cast<void>(head.fields.add("Upgrade", "websocket"));
  static_cast<void>(head.fields.add("Connection", "upgrade"));
  static_cast<void>(head.fields.add("Sec-WebSocket-Version", "13"));
  if (const auto request = http::detail::ws::read_request(head))
    expect(request->key.size() == 24, "a key of another size was accepted");
  const auto offers = http::detail::ws::parse_extensions(head.fields);
  if (!offers) return;
  const auto accepted = http::detail::ws::accept_deflate(*offers, {});
  if (!accepted) return;
  http::Fields answer;
  expect(answer.add("Sec-WebSocket-Extensions", accepted->field).has_value(),
         "the answer is not a value of a field");
  const auto chosen = http::detail::ws::parse_extensions(answer);
  expect(chosen.has_value(), "the answer cannot be parsed");
  const http::detail::ws::DeflateOptions options{.window_bits = 15, .peer_window_bits = 15};
  const auto confirmed = http::detail::ws::confirm_deflate(*chosen, &options);
  expect(confirmed && *confirmed == accepted->agreement, "the client reads another agreement");
}

#ifndef TAMBOUR_NO_ZLIB

constexpr std::size_t inflated_bytes_max = 100000;

/// A message without a context, with zlib at once; no value if it is malformed or too large.
std::optional<std::string> inflate_at_once(std::string coded) {
  coded += std::string_view("\0\0\xFF\xFF", 4);
  std::string text(inflated_bytes_max + 1, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK) throw std::bad_alloc();
  stream.next_in = reinterpret_cast<Bytef*>(coded.data());
  stream.avail_in = static_cast<uInt>(coded.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  const int result = inflate(&stream, Z_SYNC_FLUSH);
  const bool is_complete = stream.avail_in == 0 && (stream.data_type & 128) != 0;
  text.resize(text.size() - stream.avail_out);
  inflateEnd(&stream);
  // Another stream may follow the end of one, which zlib does not read.
  if (result == Z_STREAM_END) throw std::out_of_range("a final block");
  if (result != Z_OK || !is_complete || text.size() > inflated_bytes_max) return std::nullopt;
  return text;
}

std::optional<std::string> inflate_in_pieces(const std::string& coded, std::size_t piece_bytes,
                                             std::size_t bytes_max) {
  using namespace http::detail::websocket;
  Inflater inflater({}, {.message_bytes_max = inflated_bytes_max, .ratio_max = 0});
  Buffer input;
  Buffer output;
  for (std::size_t at = 0;; at += piece_bytes) {
    const bool is_last = at + piece_bytes >= coded.size();
    input.append(std::string_view(coded).substr(std::min(at, coded.size()), piece_bytes));
    for (;;) {
      const auto progress = inflater.decompress(input, is_last, output, bytes_max);
      if (!progress) return std::nullopt;
      expect(progress->added <= bytes_max, "more was decompressed than was asked for");
      if (progress->is_done) return output.to_string();
      if (progress->added < bytes_max) break;
    }
    expect(!is_last, "a message has no end");
  }
}

void check_deflate(const std::string& text, std::size_t piece) {
  const auto pieces = inflate_in_pieces(text, piece, 1 + piece / 2);
  expect(inflate_in_pieces(text, SIZE_MAX / 2, SIZE_MAX) == pieces,
         "a compressed message depends on its pieces");
  try {
    expect(inflate_at_once(text) == pieces, "zlib decompresses to something else");
  } catch (const std::out_of_range&) {
    // Nothing to compare with.
  }
  http::detail::websocket::Deflater deflater({.window_bits = 8 + static_cast<int>(piece % 8)});
  http::detail::websocket::Inflater inflater({.window_bits = 8 + static_cast<int>(piece % 8)});
  for (int i = 0; i < 2; ++i) {
    Buffer coded;
    deflater.compress(Buffer(text.substr(0, piece)), false, coded);
    deflater.compress(Buffer(text.substr(std::min(piece, text.size()))), true, coded);
    Buffer output;
    const auto progress = inflater.decompress(coded, true, output, SIZE_MAX);
    expect(progress && progress->is_done && output == text,
           "a compressed message decompresses to another one");
  }
}

#else

void check_deflate(const std::string&, std::size_t) {}

#endif

}  // namespace

void check_websocket(Bytes bytes) {
  const std::string text(text_of(bytes));
  Input choices(bytes);
  const auto role = choices.flag() ? Role::server : Role::client;
  const bool allows_compressed = choices.flag();
  const std::size_t piece = 1 + choices.below(200);
  check_frames(text.substr(std::min<std::size_t>(text.size(), 3)), role, allows_compressed, bytes);
  check_frames(make_frames(choices, role), role, allows_compressed, bytes);
  check_writer(text, text.size() / piece < 1000 ? piece : 0);
  check_text(text);
  check_handshake(text);
  check_deflate(text, piece);
}

}  // namespace tambour::fuzz
