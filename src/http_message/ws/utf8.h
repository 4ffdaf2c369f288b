// Validation of UTF-8 (RFC 3629) that arrives in pieces.
//
// Overlong forms, surrogates and code points above U+10FFFF are invalid. A validator keeps the
// state of a character that a piece has cut, so that invalid text is found as soon as it arrives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>

namespace tambour::http::detail::ws {

class Utf8Validator {
 public:
  /// Validates the next bytes of the text. Returns false if no text begins with the bytes so far;
  /// the validator must then be restarted.
  [[nodiscard]] bool append(std::span<const std::byte> bytes) noexcept;
  [[nodiscard]] bool append(const Buffer& bytes);
  /// The same without instructions that not every processor has.
  [[nodiscard]] bool append_portable(std::span<const std::byte> bytes) noexcept;
  /// True if the text may end here: not within a character.
  [[nodiscard]] bool is_complete() const noexcept { return missing_ == 0; }
  void restart() noexcept { *this = Utf8Validator(); }

 private:
  /// One byte. Returns false if it is invalid.
  [[nodiscard]] bool step(std::uint8_t byte) noexcept;

  std::uint8_t missing_ = 0;  ///< Bytes of the current character that have not arrived.
  // The range of the next of them: RFC 3629, section 4.
  std::uint8_t next_min_ = 0x80;
  std::uint8_t next_max_ = 0xBF;
};

/// True if `text` is valid and complete.
[[nodiscard]] inline bool is_utf8(const Buffer& text) {
  Utf8Validator validator;
  return validator.append(text) && validator.is_complete();
}
[[nodiscard]] inline bool is_utf8(std::string_view text) noexcept {
  Utf8Validator validator;
  return validator.append(std::as_bytes(std::span(text))) && validator.is_complete();
}

}  // namespace tambour::http::detail::ws
