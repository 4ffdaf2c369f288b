// The ends of the parts of a line of a head, examined several bytes at a time.
//
// Each function reads up to `end`, and a byte that ends its part must be before `end`.
#pragma once

#include <cstddef>

#include <tambour/detail/namespaces.h>

#include "http_message/character_block.h"
#include "http_message/characters.h"

namespace tambour::http::detail {

/// The number of bytes from `at` on that belong to `wanted`. A byte that does not must follow.
[[nodiscard]] inline std::size_t length_of(const char* at, CharacterClass wanted) noexcept {
  const char* end = at;
  while (is(*end, wanted)) ++end;
  return static_cast<std::size_t>(end - at);
}

/// The same, where `find` returns the index of the first byte of a block that does not belong to
/// `wanted`, or of an earlier one.
template <class Find>
[[nodiscard]] std::size_t length_of(const char* at, const char* end, CharacterClass wanted,
                                    Find find) noexcept {
  const char* const begin = at;
  while (static_cast<std::size_t>(end - at) >= CharacterBlock::size) {
    const std::size_t index = find(CharacterBlock(at));
    at += index;
    if (index < CharacterBlock::size) break;
  }
  return static_cast<std::size_t>(at - begin) + length_of(at, wanted);
}

/// The first byte from `at` on that no name of a field may have.
[[nodiscard]] inline const char* end_of_name(const char* at, const char* end) noexcept {
  while (static_cast<std::size_t>(end - at) >= CharacterBlock::size) {
    const std::size_t index = CharacterBlock(at).first_unusual_in_name();
    at += index;
    if (index < CharacterBlock::size) break;
  }
  // Behind most names.
  return *at == ':' ? at : at + length_of(at, token_char);
}

/// The first byte from `at` on that no value of a field may have.
[[nodiscard]] inline const char* end_of_value(const char* at, const char* end) noexcept {
  while (static_cast<std::size_t>(end - at) >= CharacterBlock::size) {
    const std::size_t index = CharacterBlock(at).first_control();
    at += index;
    if (index == CharacterBlock::size) continue;
    // Another one is a tab, or not known to the block.
    if (*at == '\r' || !is(*at, value_char)) return at;
    ++at;
  }
  return at + length_of(at, value_char);
}

}  // namespace tambour::http::detail
