// Names in wire form in memory of fixed size, for code that must not allocate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <tambour/detail/namespaces.h>
#include <tambour/dns/name.h>

#include "base/ascii.h"

namespace tambour::dns::detail {

/// Makes a dns::Name of bytes that are known to be one.
struct NameAccess {
  static Name make(std::string_view wire) { return Name(std::string(wire)); }
};

// A length byte of a label is at most 63, below the letters: whole names can be compared.
using base::equal_ignoring_case;
using base::to_lower;

/// A name in wire form; empty if there is none.
class WireName {
 public:
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_.data(), size_}; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void clear() noexcept { size_ = 0; }

  /// Returns false if the name would have more than 255 bytes.
  [[nodiscard]] bool append(const void* bytes, std::size_t size) noexcept {
    if (size > bytes_.size() - size_) return false;
    std::memcpy(bytes_.data() + size_, bytes, size);
    size_ = static_cast<std::uint8_t>(size_ + size);
    return true;
  }
  [[nodiscard]] bool push(char byte) noexcept { return append(&byte, 1); }
  /// Replaces a byte that was appended.
  void set(std::size_t at, char byte) noexcept { bytes_[at] = byte; }
  void assign(std::string_view wire) noexcept {
    size_ = 0;
    static_cast<void>(append(wire.data(), wire.size()));
  }
  void lower() noexcept {
    for (std::size_t i = 0; i < size_; ++i) bytes_[i] = to_lower(bytes_[i]);
  }

 private:
  std::uint8_t size_ = 0;
  std::array<char, dns::Name::bytes_max> bytes_;  ///< Only the first `size_` are defined.
};

/// Parses the presentation format; see dns::Name::parse(). Returns 0 or the error.
[[nodiscard]] dns::ErrorCode parse_name(std::string_view text, WireName& into) noexcept;

inline constexpr dns::ErrorCode no_error{};

}  // namespace tambour::dns::detail
