// Writes a message of limited size, with compressed names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tambour/detail/namespaces.h>
#include <tambour/dns/name.h>

namespace tambour::dns::detail {

class Writer {
 public:
  /// Appends to `out`, which must be empty and exist as long as the writer.
  explicit Writer(std::string& out) noexcept : out_(out) {}

  [[nodiscard]] std::size_t size() const noexcept { return out_.size(); }
  void u8(std::uint8_t value) { out_ += static_cast<char>(value); }
  void u16(std::uint16_t value) {
    u8(static_cast<std::uint8_t>(value >> 8U));
    u8(static_cast<std::uint8_t>(value));
  }
  void u32(std::uint32_t value) {
    u16(static_cast<std::uint16_t>(value >> 16U));
    u16(static_cast<std::uint16_t>(value));
  }
  void text(std::string_view bytes) { out_ += bytes; }
  /// A length byte and the bytes, of which there are at most 255.
  void counted_text(std::string_view bytes) {
    u8(static_cast<std::uint8_t>(bytes.size()));
    text(bytes);
  }
  void set_u16(std::size_t at, std::uint16_t value) noexcept {
    out_[at] = static_cast<char>(value >> 8U);
    out_[at + 1] = static_cast<char>(value);
  }
  /// Removes what was written after `size` bytes.
  void truncate(std::size_t size) { out_.resize(size); }

  /// A name in wire form. Where equal labels, in the same case, were written before, refers to
  /// them.
  void compressed_name(std::string_view wire);
  void name(std::string_view wire) { text(wire); }

 private:
  /// Returns true if the name at `at` in the message is `wire`.
  [[nodiscard]] bool is_at(std::size_t at, std::string_view wire) const noexcept;

  /// The offsets of the names in the message, by hash; 0: none. When it is nearly full, further
  /// names are not compressed against.
  static constexpr std::size_t slots = 512;
  static constexpr std::size_t probes_max = 8;
  std::string& out_;
  std::optional<std::array<std::uint16_t, slots>> offsets_;  ///< Made for the first such name.
};

}  // namespace tambour::dns::detail
