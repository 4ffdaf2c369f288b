// The parser of frames: headers, payloads in pieces, fragments, and the limits of messages.
#include "http_message/ws/frame_parser.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "bytes/buffer_memory.h"
#include "http_message/ws/masking.h"

namespace tambour::http::detail::ws {
namespace {

constexpr std::uint8_t final_bit = 0x80;
constexpr std::uint8_t compressed_bit = 0x40;
constexpr std::uint8_t other_reserved_bits = 0x30;
constexpr std::uint8_t mask_bit = 0x80;
/// A size in the second byte that announces a size of two or eight bytes.
constexpr std::uint8_t size_of_two_bytes = 126;
constexpr std::uint8_t size_of_eight_bytes = 127;

/// Payloads of at most so many bytes, which are most of them, are copied.
constexpr std::size_t short_bytes_max = 128;

constexpr bool is_known_opcode(unsigned opcode) noexcept {
  return opcode <= 2 || (opcode >= 8 && opcode <= 10);
}

constexpr std::uint64_t read_be(std::span<const std::uint8_t> bytes) noexcept {
  std::uint64_t value = 0;
  for (const std::uint8_t byte : bytes) value = value << 8U | byte;
  return value;
}

void move_unmasked(Buffer& input, Buffer& payload, std::size_t size, auto&& visit) {
  while (size > 0) {
    const std::size_t here = std::min(input.front().size(), size);
    visit(input.front().first(here));
    payload.append(input.take(here));
    size -= here;
  }
}

}  // namespace

bool FrameParser::fail(WebSocketError error) noexcept {
  stage_ = Stage::failed;
  error_ = error;
  return false;
}

/// Called for each message.
[[gnu::flatten]] Result<FrameParser::Event> FrameParser::parse(Buffer& input, Buffer& payload,
                                                               std::size_t bytes_max) {
  auto event = Event::none;
  if (stage_ == Stage::closed) {
    input.clear();
  } else if (stage_ != Stage::failed) {
    event = parse_event(input, payload, bytes_max);
  }
  if (stage_ == Stage::failed) return failure(error_);
  return event;
}

FrameParser::Event FrameParser::parse_event(Buffer& input, Buffer& payload, std::size_t bytes_max) {
  std::size_t added = 0;
  for (;;) {
    std::size_t header_bytes = 0;
    if (stage_ == Stage::header) {
      header_bytes = parse_header(input);
      if (header_bytes == 0) break;
    }
    if (is_control(header_.opcode)) {
      input.consume(header_bytes);
      // The event that reports the data comes first.
      if (added > 0) break;
      return read_control_frame(input);
    }
    const auto size = static_cast<std::size_t>(
        std::min<std::uint64_t>(left_, std::min(input.size() - header_bytes, bytes_max - added)));
    move_data(input, header_bytes, payload, size);
    added += size;
    if (left_ > 0 || stage_ == Stage::failed) break;
    stage_ = Stage::header;
    if (!header_.is_final) continue;
    if (!validator_.is_complete()) fail(WebSocketError::invalid_utf8);
    is_within_message_ = false;
    control_frames_ = 0;
    return Event::message_end;
  }
  if (added == 0) return Event::none;
  control_frames_ = 0;
  return Event::data;
}

/// A wrong byte is an error as soon as it has arrived.
std::size_t FrameParser::parse_header(const Buffer& input) {
  std::array<std::byte, frame_header_bytes_max> copy;
  std::span<const std::byte> front = input.front();
  if (front.size() < copy.size()) front = std::span(copy).first(input.copy_to(copy));
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(front.data());
  const std::size_t size = front.size();
  if (size == 0 || !check_first_byte(bytes[0])) return 0;
  if (size == 1 || !check_second_byte(bytes[1])) return 0;
  const std::uint8_t short_size = bytes[1] & static_cast<std::uint8_t>(~mask_bit);
  const std::size_t size_bytes = short_size == size_of_eight_bytes ? 8
                                 : short_size == size_of_two_bytes ? 2
                                                                   : 0;
  const std::size_t mask_bytes = role_ == Role::server ? 4 : 0;
  if (size < 2 + size_bytes) return 0;
  std::uint64_t payload_bytes = short_size;
  if (size_bytes > 0) {
    payload_bytes = read_be(std::span(bytes + 2, size_bytes));
    if (payload_bytes < (size_bytes == 2 ? size_of_two_bytes : 65536U)) {
      fail(WebSocketError::size_not_minimal);
      return 0;
    }
    if (payload_bytes > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
      fail(WebSocketError::size_out_of_range);
      return 0;
    }
  }
  header_ = {.opcode = static_cast<Opcode>(bytes[0] & 15U),
             .is_final = (bytes[0] & final_bit) != 0,
             .is_compressed = (bytes[0] & compressed_bit) != 0,
             .payload_bytes = payload_bytes};
  if (!(is_control(header_.opcode) ? begin_control_frame() : begin_data_frame())) return 0;
  if (size < 2 + size_bytes + mask_bytes) return 0;
  if (mask_bytes > 0) {
    std::memcpy(header_.mask.emplace().data(), bytes + 2 + size_bytes, sizeof(MaskKey));
  }
  const std::size_t header_bytes = 2 + size_bytes + mask_bytes;
  left_ = payload_bytes;
  stage_ = Stage::payload;
  if (is_control(header_.opcode)) {
    ++control_frames_;
    return header_bytes;
  }
  if (!is_within_message_) {
    is_within_message_ = true;
    is_text_ = header_.opcode == Opcode::text;
    is_compressed_ = header_.is_compressed;
    message_bytes_ = 0;
    fragments_ = 0;
  }
  message_bytes_ += payload_bytes;
  ++fragments_;
  return header_bytes;
}

bool FrameParser::check_first_byte(std::uint8_t byte) noexcept {
  const unsigned opcode = byte & 15U;
  if (!is_known_opcode(opcode)) return fail(WebSocketError::reserved_opcode);
  const bool is_first = opcode == static_cast<unsigned>(Opcode::text) ||
                        opcode == static_cast<unsigned>(Opcode::binary);
  // Only the first fragment of a message tells whether it is compressed: RFC 7692, section 6.1.
  if ((byte & other_reserved_bits) != 0 ||
      ((byte & compressed_bit) != 0 && (!is_first || !allows_compressed_)))
    return fail(WebSocketError::reserved_bits);
  if (is_control(static_cast<Opcode>(opcode))) {
    if ((byte & final_bit) == 0) return fail(WebSocketError::fragmented_control_frame);
    return true;
  }
  if (is_first && is_within_message_) return fail(WebSocketError::missing_continuation);
  if (!is_first && !is_within_message_) return fail(WebSocketError::unexpected_continuation);
  return true;
}

bool FrameParser::check_second_byte(std::uint8_t byte) noexcept {
  const bool is_masked = (byte & mask_bit) != 0;
  if (is_masked && role_ == Role::client) return fail(WebSocketError::masked_frame);
  if (!is_masked && role_ == Role::server) return fail(WebSocketError::unmasked_frame);
  return true;
}

bool FrameParser::begin_control_frame() noexcept {
  if (header_.payload_bytes > control_bytes_max)
    return fail(WebSocketError::control_frame_too_large);
  if (header_.opcode != Opcode::close && control_frames_ >= limits_->control_frames_max)
    return fail(WebSocketError::too_many_control_frames);
  return true;
}

bool FrameParser::begin_data_frame() noexcept {
  const std::uint64_t before = is_within_message_ ? message_bytes_ : 0;
  const std::uint32_t fragments_before = is_within_message_ ? fragments_ : 0;
  if (header_.payload_bytes > limits_->frame_bytes_max)
    return fail(WebSocketError::frame_too_large);
  // Both are at most message_bytes_max or 2^63, so the difference cannot wrap around.
  if (header_.payload_bytes > limits_->message_bytes_max ||
      before > limits_->message_bytes_max - header_.payload_bytes)
    return fail(WebSocketError::message_too_large);
  if (fragments_before >= limits_->fragments_max) return fail(WebSocketError::too_many_fragments);
  return true;
}

/// Moves the next `size` bytes of the current payload, which follow `header_bytes` to discard.
void FrameParser::move_data(Buffer& input, std::size_t header_bytes, Buffer& payload,
                            std::size_t size) {
  bool is_valid = true;
  const auto validate = [&, is_validated =
                                is_text_ && !is_compressed_](std::span<const std::byte> bytes) {
    if (is_validated && is_valid) is_valid = validator_.append(bytes);
  };
  const auto offset = static_cast<std::size_t>(header_.payload_bytes - left_);
  left_ -= size;
  const std::span<const std::byte> front = input.front();
  if (size > 0 && size <= short_bytes_max && front.size() >= header_bytes + size) {
    const std::span<const std::byte> bytes = front.subspan(header_bytes, size);
    const std::span<std::byte> target = tambour::detail::BufferMemory::extend(payload, size);
    if (header_.mask) {
      mask_copy(bytes, target.data(), *header_.mask, offset);
    } else {
      std::memcpy(target.data(), bytes.data(), size);
    }
    validate(target);
    input.consume(header_bytes + size);
  } else {
    input.consume(header_bytes);
    if (header_.mask) {
      move_masked(input, payload, size, *header_.mask, offset, validate);
    } else {
      move_unmasked(input, payload, size, validate);
    }
  }
  if (!is_valid) fail(WebSocketError::invalid_utf8);
}

FrameParser::Event FrameParser::read_control_frame(Buffer& input) {
  const auto size = static_cast<std::size_t>(left_);
  if (input.size() < size) return Event::none;
  control_payload_.resize(size);
  const auto bytes = std::as_writable_bytes(std::span(control_payload_));
  input.copy_to(bytes);
  input.consume(size);
  if (header_.mask) mask_copy(bytes, bytes.data(), *header_.mask, 0);
  left_ = 0;
  stage_ = Stage::header;
  if (header_.opcode == Opcode::ping) return Event::ping;
  if (header_.opcode == Opcode::pong) return Event::pong;
  if (!read_close()) return Event::none;
  stage_ = Stage::closed;
  input.clear();
  return Event::close;
}

bool FrameParser::read_close() {
  if (control_payload_.empty()) return true;
  if (control_payload_.size() == 1) return fail(WebSocketError::bad_close_payload);
  const auto byte = [&](std::size_t at) {
    return static_cast<unsigned char>(control_payload_[at]);
  };
  close_code_ = static_cast<CloseCode>(byte(0) << 8U | byte(1));
  if (!is_sent(close_code_)) return fail(WebSocketError::bad_close_code);
  control_payload_.erase(0, 2);
  return is_utf8(control_payload_) || fail(WebSocketError::invalid_utf8);
}

}  // namespace tambour::http::detail::ws
