// Characters of HTTP messages, examined several at a time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <tambour/detail/namespaces.h>

#include "http_message/characters.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace tambour::http::detail {

/// `size` bytes of a text. The functions return the index of a byte in the block, or `size` if
/// there is none. Without SSE2, they may return 0 instead of a higher index.
class CharacterBlock {
 public:
#ifdef __SSE2__
  static constexpr std::size_t size = 16;

  /// Reads `size` bytes.
  explicit CharacterBlock(const char* from) noexcept
      : bytes_(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))) {}

  /// The first byte that is below 0x20, or 0x7F.
  [[nodiscard]] std::size_t first_control() const noexcept {
    const __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(bytes_, _mm_set1_epi8(0x1F)), bytes_);
    return first(_mm_or_si128(low, equal(bytes_, 0x7F)));
  }
  /// The first byte that is neither a letter nor "-".
  [[nodiscard]] std::size_t first_unusual_in_name() const noexcept {
    // Bytes from 0x80 are negative.
    return first_outside(_mm_or_si128(letters(), equal(bytes_, '-')));
  }
  /// The first byte that is neither a letter nor a digit, nor "-" or ".".
  [[nodiscard]] std::size_t first_unusual_in_host() const noexcept {
    const __m128i others = _mm_andnot_si128(equal(bytes_, '/'), between(bytes_, '-', '9'));
    return first_outside(_mm_or_si128(letters(), others));
  }
  /// The first byte that is no target_path_char.
  [[nodiscard]] std::size_t first_outside_path() const noexcept {
    const __m128i marks = _mm_or_si128(outside_query(), equal(bytes_, '%'));
    return first(_mm_or_si128(marks, equal(bytes_, '?')));
  }
  /// The first byte that is no target_query_char.
  [[nodiscard]] std::size_t first_outside_query() const noexcept { return first(outside_query()); }

 private:
  /// Marks the bytes from `first` to `last`.
  static __m128i between(__m128i bytes, char first, char last) noexcept {
    const __m128i distance = _mm_sub_epi8(bytes, _mm_set1_epi8(first));
    const __m128i limit = _mm_set1_epi8(static_cast<char>(last - first));
    return _mm_cmpeq_epi8(_mm_min_epu8(distance, limit), distance);
  }
  [[nodiscard]] __m128i letters() const noexcept {
    return between(_mm_or_si128(bytes_, _mm_set1_epi8(0x20)), 'a', 'z');
  }
  static __m128i equal(__m128i bytes, char c) noexcept {
    return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(c));
  }
  /// Controls, spaces, bytes from 0x7F, and the characters " # < >.
  [[nodiscard]] __m128i outside_query() const noexcept {
    const __m128i outside_ascii =
        _mm_or_si128(_mm_cmplt_epi8(bytes_, _mm_set1_epi8('!')), equal(bytes_, 0x7F));
    // The two have codes that differ in the lowest bit only.
    const __m128i quote_or_hash = equal(_mm_or_si128(bytes_, _mm_set1_epi8(1)), '#');
    const __m128i angles = _mm_or_si128(equal(bytes_, '<'), equal(bytes_, '>'));
    return _mm_or_si128(_mm_or_si128(outside_ascii, quote_or_hash), angles);
  }
  static std::size_t first(__m128i marks) noexcept {
    const auto bits = static_cast<unsigned>(_mm_movemask_epi8(marks));
    return static_cast<unsigned>(std::countr_zero(bits | 1U << 16U));
  }
  /// The first byte that is not marked.
  static std::size_t first_outside(__m128i marks) noexcept {
    const auto bits = static_cast<unsigned>(_mm_movemask_epi8(marks));
    return static_cast<unsigned>(std::countr_one(bits));
  }

  __m128i bytes_;
#else
  static constexpr std::size_t size = 8;

  explicit CharacterBlock(const char* from) noexcept { std::memcpy(&bytes_, from, sizeof bytes_); }

  [[nodiscard]] std::size_t first_control() const noexcept {
    return first(marks_of_controls(bytes_));
  }
  [[nodiscard]] std::size_t first_unusual_in_name() const noexcept {
    return first(marks_of_unusual_in_name(bytes_));
  }
  // Not known.
  [[nodiscard]] static std::size_t first_unusual_in_host() noexcept { return 0; }
  [[nodiscard]] static std::size_t first_outside_path() noexcept { return 0; }
  [[nodiscard]] static std::size_t first_outside_query() noexcept { return 0; }

 private:
  static std::size_t first(std::uint64_t marks) noexcept {
    // Of the other order, the first byte is the highest one, which may be marked wrongly.
    if constexpr (std::endian::native == std::endian::little)
      return static_cast<std::size_t>(std::countr_zero(marks)) / 8;
    return marks == 0 ? size : 0;
  }

  std::uint64_t bytes_;
#endif
};

}  // namespace tambour::http::detail
