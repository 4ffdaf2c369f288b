// A cursor over the bytes of a message. The first error is kept; after it, every read returns
// zeros, so that a caller checks once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <tambour/detail/namespaces.h>
#include <tambour/dns/error.h>
#include <tambour/dns/record.h>

#include "dns_message/wire_name.h"

namespace tambour::dns::detail {

using Bytes = std::span<const std::byte>;

[[nodiscard]] inline Bytes as_bytes(std::string_view text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Aliases may stand in any order, so that an answer section is read several times. It is read
/// again as long as fewer records than this were read: a chain of 90 aliases in reverse order is
/// followed to its end, and a message with thousands of them is read twice.
inline constexpr unsigned alias_records_max = 8192;

class Reader {
 public:
  explicit Reader(Bytes message) noexcept : message_(message), end_(message.size()) {}

  [[nodiscard]] dns::ErrorCode error() const noexcept { return error_; }
  [[nodiscard]] bool has_failed() const noexcept { return error_ != no_error; }
  /// Keeps an earlier error.
  void fail(dns::ErrorCode error) noexcept {
    if (!has_failed()) error_ = error;
    at_ = end_;
  }

  [[nodiscard]] std::size_t position() const noexcept { return at_; }
  [[nodiscard]] std::size_t left() const noexcept { return end_ - at_; }

  std::uint8_t u8() noexcept { return static_cast<std::uint8_t>(number<1>()); }
  std::uint16_t u16() noexcept { return static_cast<std::uint16_t>(number<2>()); }
  std::uint32_t u32() noexcept { return number<4>(); }
  /// Bytes of the message.
  std::string_view text(std::size_t size) noexcept {
    if (size > left()) {
      fail(dns::ErrorCode::bad_message);
      return {};
    }
    const auto* const begin = reinterpret_cast<const char*>(message_.data()) + at_;
    at_ += size;
    return {begin, size};
  }
  /// A character-string: a length byte and that many bytes.
  std::string_view counted_text() noexcept { return text(u8()); }
  std::string_view rest() noexcept { return text(left()); }

  /// Reads a name and follows its pointers, each of which must point before everything that was
  /// read of the name so far: a name without a loop has no other. A name with more pointers than
  /// labels fit into it fails, because its pointers cost work and shorten nothing.
  void name(WireName& into) noexcept;
  dns::Name name();
  /// Moves past a name without following its pointers.
  void skip_name() noexcept;

  /// Limits reading to the next `size` bytes, until leave(); returns the former end.
  std::size_t enter(std::size_t size) noexcept;
  /// Fails with dns::ErrorCode::bad_record unless all bytes since enter() were read.
  void leave(std::size_t former_end) noexcept;

 private:
  template <std::size_t size>
  std::uint32_t number() noexcept {
    if (left() < size) {
      fail(dns::ErrorCode::bad_message);
      return 0;
    }
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8U | static_cast<std::uint32_t>(message_[at_ + i]);
    at_ += size;
    return value;
  }
  [[nodiscard]] std::uint8_t byte(std::size_t at) const noexcept {
    return static_cast<std::uint8_t>(message_[at]);
  }

  Bytes message_;
  std::size_t end_;  ///< The end of what may be read; names may refer to bytes before.
  std::size_t at_ = 0;
  dns::ErrorCode error_ = no_error;
};

/// The first 12 bytes of a message.
struct Header {
  static constexpr std::size_t bytes = 12;
  static constexpr std::uint16_t response = 0x8000;
  static constexpr std::uint16_t authoritative = 0x0400;
  static constexpr std::uint16_t truncated = 0x0200;
  static constexpr std::uint16_t recursion_desired = 0x0100;
  static constexpr std::uint16_t recursion_available = 0x0080;
  static constexpr std::uint16_t reserved = 0x0040;
  static constexpr std::uint16_t authentic_data = 0x0020;
  static constexpr std::uint16_t checking_disabled = 0x0010;

  std::uint16_t id;
  std::uint16_t flags;
  std::uint16_t questions;
  std::uint16_t answers;
  std::uint16_t authorities;
  std::uint16_t additionals;

  /// The reader must be at the beginning of the message.
  static Header read(Reader& reader) noexcept;
  [[nodiscard]] std::uint8_t opcode() const noexcept { return flags >> 11U & 0xfU; }
  [[nodiscard]] std::uint8_t rcode() const noexcept { return flags & 0xfU; }
};

/// The fixed fields of a record, after its name.
struct RecordHead {
  dns::Type type;
  dns::Class record_class;
  std::uint32_t ttl;  ///< As sent. See ttl_of().
  std::uint16_t size;

  static RecordHead read(Reader& reader) noexcept;
};

/// A time to live with the highest bit set counts as zero: RFC 2181, section 8.
[[nodiscard]] constexpr std::uint32_t ttl_of(std::uint32_t sent) noexcept {
  return sent > 0x7fff'ffffU ? 0 : sent;
}

}  // namespace tambour::dns::detail
