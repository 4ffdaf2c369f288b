// The hash of field names.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <tambour/detail/namespaces.h>

namespace tambour::http {

/// The same for names that differ only in the case of letters. It distinguishes names; it does not
/// resist attacks, because lookups compare each name with equal hash.
[[nodiscard]] constexpr std::uint32_t hash_of_name(std::string_view name) noexcept {
  // The bit that distinguishes lower case from upper case, and other characters from others, which
  // then have equal hashes.
  constexpr std::uint64_t lower_case = 0x2020202020202020;
  const auto load = [](const char* from, auto word) -> std::uint64_t {
    if consteval {
      constexpr bool is_little = std::endian::native == std::endian::little;
      for (std::size_t i = 0; i < sizeof(word); ++i) {
        const std::size_t at = is_little ? i : sizeof(word) - 1 - i;
        word |= static_cast<decltype(word)>(static_cast<unsigned char>(from[i])) << (8 * at);
      }
    } else {
      std::memcpy(&word, from, sizeof(word));
    }
    return word;
  };
  const std::size_t size = name.size();
  const char* const end = name.data() + size;
  std::uint64_t first = size;
  std::uint64_t last = 0;
  if (size >= 8) {
    first = load(name.data(), std::uint64_t{});
    last = load(end - 8, std::uint64_t{});
  } else if (size >= 4) {
    first = load(name.data(), std::uint32_t{});
    last = load(end - 4, std::uint32_t{});
  } else {
    for (const char c : name) first = first << 8 | static_cast<unsigned char>(c);
  }
  first = (first | lower_case) * 0x9E3779B97F4A7C15;
  last = ((last | lower_case) + size) * 0xC2B2AE3D27D4EB4F;
  const std::uint64_t mixed = (first ^ (first >> 29)) + last;
  return static_cast<std::uint32_t>(mixed ^ (mixed >> 32));
}

namespace detail {

/// A bit for the names with this hash, of a set of names that may have others too. These bits of
/// the hash distinguish the names that frame a message from those of most messages.
[[nodiscard]] constexpr std::uint64_t mark_of(std::uint32_t hash) noexcept {
  return std::uint64_t{1} << (hash >> 23U) % 64;
}

/// A name that is known when the program is compiled, so that a lookup need not compute its hash.
struct KnownName {
  // NOLINTNEXTLINE(google-explicit-constructor): a literal is passed as a name.
  consteval KnownName(const char* literal) : text(literal), hash(hash_of_name(text)) {}

  std::string_view text;
  std::uint32_t hash;
};

}  // namespace detail

}  // namespace tambour::http
