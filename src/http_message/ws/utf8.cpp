// The state machine of UTF-8, which accepts a character that continues in the next piece.
#include "http_message/ws/utf8.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "http_message/ws/processor.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace tambour::http::detail::ws {
namespace {

constexpr bool is_continuation(std::uint8_t byte) noexcept { return (byte & 0xC0U) == 0x80; }

constexpr std::uint64_t high_bits = 0x8080808080808080;

/// The number of ASCII bytes at the beginning, rounded down to whole words.
std::size_t ascii_words(const std::uint8_t* bytes, std::size_t size) noexcept {
  std::size_t at = 0;
  // The sum of several words needs one branch; the compiler makes vectors of it.
  for (; size - at >= 64; at += 64) {
    std::uint64_t words[8];
    std::memcpy(&words, bytes + at, sizeof words);
    std::uint64_t all = 0;
    for (const std::uint64_t word : words) all |= word;
    if ((all & high_bits) != 0) break;
  }
  for (; size - at >= 8; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, sizeof word);
    if ((word & high_bits) != 0) break;
  }
  return at;
}

/// The same for a short text of at least eight bytes.
bool is_short_ascii(const std::uint8_t* bytes, std::size_t size) noexcept {
  std::uint64_t all = 0;
  std::uint64_t word = 0;
  for (std::size_t at = 0; at + sizeof word < size; at += sizeof word) {
    std::memcpy(&word, bytes + at, sizeof word);
    all |= word;
  }
  std::memcpy(&word, bytes + size - sizeof word, sizeof word);
  return ((all | word) & high_bits) == 0;
}

#ifdef __x86_64__

// The algorithm of John Keiser and Daniel Lemire, "Validating UTF-8 In Less Than One Instruction
// Per Byte" (2021). Each rule forbids pairs of bytes. It has one bit, and is the conjunction of
// three conditions: on the high and the low half of the first byte, and on the high half of the
// second. Each half selects the bits of the rules that it may break from a table of 16 bytes.
struct ForbiddenPairs {
  std::uint8_t rule;
  std::uint8_t first_min;
  std::uint8_t first_max;
  std::uint8_t second_min;
  std::uint8_t second_max;
};

/// Two continuations are allowed as the third or fourth byte of a character only.
constexpr std::uint8_t two_continuations = 128;

constexpr ForbiddenPairs forbidden_pairs[] = {
    {1, 0xC0, 0xFF, 0x00, 0x7F},   // A character that is cut,
    {1, 0xC0, 0xFF, 0xC0, 0xFF},   // by ASCII or by another one.
    {2, 0x00, 0x7F, 0x80, 0xBF},   // A continuation after ASCII.
    {4, 0xE0, 0xE0, 0x80, 0x9F},   // Below U+0800, in three bytes.
    {8, 0xF4, 0xFF, 0x90, 0xBF},   // Above U+10FFFF.
    {16, 0xED, 0xED, 0xA0, 0xBF},  // Surrogates.
    {32, 0xC0, 0xC1, 0x80, 0xBF},  // Below U+0080, in two bytes.
    {64, 0xF0, 0xF0, 0x80, 0x8F},  // Below U+10000, in four bytes.
    {64, 0xF5, 0xFF, 0x80, 0x8F},  // Above U+10FFFF. No byte belongs to both.
    {two_continuations, 0x80, 0xBF, 0x80, 0xBF},
};

struct Tables {
  // Twice each, for both halves of a vector.
  std::array<std::uint8_t, 32> first_high{};
  std::array<std::uint8_t, 32> first_low{};
  std::array<std::uint8_t, 32> second_high{};
};

constexpr Tables make_tables() noexcept {
  Tables tables;
  const auto add = [](std::array<std::uint8_t, 32>& table, unsigned half, std::uint8_t rule) {
    table[half] |= rule;
    table[half + 16] |= rule;
  };
  for (const ForbiddenPairs& pairs : forbidden_pairs) {
    for (unsigned byte = pairs.first_min; byte <= pairs.first_max; ++byte) {
      add(tables.first_high, byte >> 4U, pairs.rule);
      add(tables.first_low, byte & 15U, pairs.rule);
    }
    for (unsigned byte = pairs.second_min; byte <= pairs.second_max; ++byte)
      add(tables.second_high, byte >> 4U, pairs.rule);
  }
  return tables;
}

constexpr Tables tables = make_tables();

constexpr std::size_t vector_bytes = sizeof(__m256i);

[[gnu::target("avx2")]] inline __m256i load(const std::uint8_t* at) noexcept {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

/// Collects the errors of vectors.
class VectorValidator {
 public:
  [[gnu::target("avx2")]] VectorValidator() noexcept
      : first_high_(load(tables.first_high.data())),
        first_low_(load(tables.first_low.data())),
        second_high_(load(tables.second_high.data())),
        previous_(_mm256_setzero_si256()),
        errors_(_mm256_setzero_si256()) {}

  [[gnu::target("avx2"), gnu::always_inline]] inline void append(__m256i current) noexcept {
    const bool is_ascii = _mm256_movemask_epi8(current) == 0;
    if (is_ascii && was_ascii_) return;
    was_ascii_ = is_ascii;
    const __m256i half = _mm256_set1_epi8(15);
    // The last half of the previous vector and the first half of this one: the bytes before.
    const __m256i joined = _mm256_permute2x128_si256(previous_, current, 0x21);
    previous_ = current;
    const __m256i before = _mm256_alignr_epi8(current, joined, 15);
    const __m256i before_2 = _mm256_alignr_epi8(current, joined, 14);
    const __m256i before_3 = _mm256_alignr_epi8(current, joined, 13);
    const __m256i before_high = _mm256_and_si256(_mm256_srli_epi16(before, 4), half);
    const __m256i current_high = _mm256_and_si256(_mm256_srli_epi16(current, 4), half);
    const __m256i broken = _mm256_and_si256(
        _mm256_and_si256(_mm256_shuffle_epi8(first_high_, before_high),
                         _mm256_shuffle_epi8(first_low_, _mm256_and_si256(before, half))),
        _mm256_shuffle_epi8(second_high_, current_high));
    // The high bit stays set in what is left of the first byte of three or four.
    const __m256i third = _mm256_subs_epu8(before_2, _mm256_set1_epi8(0xE0 - 0x80));
    const __m256i fourth =
        _mm256_subs_epu8(before_3, _mm256_set1_epi8(static_cast<char>(0xF0 - 0x80)));
    const __m256i is_late =
        _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8(static_cast<char>(0x80)));
    // Late bytes must be the second of two continuations, and no others may.
    errors_ = _mm256_or_si256(errors_, _mm256_xor_si256(broken, is_late));
  }

  /// True if the next four vectors need not be appended: they are ASCII, and so is what precedes.
  [[gnu::target("avx2"), gnu::always_inline]] inline bool may_skip_four(
      const std::uint8_t* at) const noexcept {
    if (!was_ascii_) return false;
    const __m256i first = _mm256_or_si256(load(at), load(at + vector_bytes));
    const __m256i second =
        _mm256_or_si256(load(at + 2 * vector_bytes), load(at + 3 * vector_bytes));
    return _mm256_movemask_epi8(_mm256_or_si256(first, second)) == 0;
  }

  [[gnu::target("avx2")]] [[nodiscard]] bool is_valid() const noexcept {
    return _mm256_testz_si256(errors_, errors_) != 0;
  }

 private:
  __m256i first_high_;
  __m256i first_low_;
  __m256i second_high_;
  __m256i previous_;
  __m256i errors_;
  bool was_ascii_ = true;
};

/// Whether `size` bytes are whole characters.
[[gnu::target("avx2")]] bool is_valid_with_avx2(const std::uint8_t* bytes,
                                                std::size_t size) noexcept {
  VectorValidator validator;
  std::size_t at = 0;
  while (size - at >= vector_bytes) {
    if (size - at >= 4 * vector_bytes && validator.may_skip_four(bytes + at)) {
      at += 4 * vector_bytes;
      continue;
    }
    validator.append(load(bytes + at));
    at += vector_bytes;
  }
  // At least one zero follows, which no character contains.
  std::uint8_t rest[vector_bytes] = {};
  std::memcpy(rest, bytes + at, size - at);
  validator.append(load(rest));
  return validator.is_valid();
}

#else

bool is_valid_with_avx2(const std::uint8_t*, std::size_t) noexcept { return false; }

#endif

/// The index of the last character of valid bytes if it may be cut; else `size`. At most three
/// bytes of a cut character are there.
std::size_t last_character(const std::uint8_t* bytes, std::size_t size) noexcept {
  for (std::size_t at = size; at > 0 && at + 3 > size; --at) {
    const std::uint8_t byte = bytes[at - 1];
    if (!is_continuation(byte)) return byte < 0x80 ? size : at - 1;
  }
  return size;
}

}  // namespace

bool Utf8Validator::step(std::uint8_t byte) noexcept {
  if (missing_ > 0) {
    if (byte < next_min_ || byte > next_max_) return false;
    --missing_;
    next_min_ = 0x80;
    next_max_ = 0xBF;
    return true;
  }
  if (byte < 0x80) return true;
  if (byte < 0xC2 || byte > 0xF4) return false;
  missing_ = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
  if (byte == 0xE0) next_min_ = 0xA0;
  if (byte == 0xED) next_max_ = 0x9F;
  if (byte == 0xF0) next_min_ = 0x90;
  if (byte == 0xF4) next_max_ = 0x8F;
  return true;
}

bool Utf8Validator::append(std::span<const std::byte> bytes) noexcept {
  /// Shorter pieces gain less than the call costs.
  constexpr std::size_t avx2_bytes_min = 24;
  if (bytes.size() < avx2_bytes_min || !has_avx2()) return append_portable(bytes);
  const auto* at = reinterpret_cast<const std::uint8_t*>(bytes.data());
  /// Most short texts are ASCII, and need no tables.
  constexpr std::size_t short_bytes_max = 256;
  if (bytes.size() <= short_bytes_max && missing_ == 0 && is_short_ascii(at, bytes.size()))
    return true;
  const auto* const end = at + bytes.size();
  while (missing_ > 0) {
    if (!step(*at++)) return false;
  }
  const std::size_t whole = last_character(at, static_cast<std::size_t>(end - at));
  if (!is_valid_with_avx2(at, whole)) return false;
  at += whole;
  while (at != end) {
    if (!step(*at++)) return false;
  }
  return true;
}

bool Utf8Validator::append_portable(std::span<const std::byte> bytes) noexcept {
  const auto* at = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const auto* const end = at + bytes.size();
  while (at != end) {
    if (missing_ == 0) at += ascii_words(at, static_cast<std::size_t>(end - at));
    // After a word of other characters, the search for ASCII continues.
    for (int i = 0; (i < 8 || missing_ > 0) && at != end; ++i) {
      if (!step(*at++)) return false;
    }
  }
  return true;
}

bool Utf8Validator::append(const Buffer& bytes) {
  const std::span<const std::byte> front = bytes.front();
  if (front.size() == bytes.size()) return append(front);
  Buffer rest = bytes.slice();
  while (!rest.empty()) {
    const std::span<const std::byte> piece = rest.front();
    if (!append(piece)) return false;
    rest.consume(piece.size());
  }
  return true;
}

}  // namespace tambour::http::detail::ws
