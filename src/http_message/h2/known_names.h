// The names of fields that HTTP/2 treats specially, and the static table of HPACK (RFC 7541,
// appendix A).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <tambour/detail/namespaces.h>

#include "http_message/characters.h"
#include "http_message/field_hash.h"

namespace tambour::http::detail::h2 {

/// The same as a == b, without a function call for short texts.
[[nodiscard]] inline bool are_equal(std::string_view a, std::string_view b) noexcept {
  constexpr std::size_t short_max = 32;
  const auto differ = [&]<class Word>(std::size_t at, Word of_a) {
    Word of_b = 0;
    std::memcpy(&of_a, a.data() + at, sizeof of_a);
    std::memcpy(&of_b, b.data() + at, sizeof of_b);
    return of_a != of_b;
  };
  const std::size_t size = a.size();
  if (size != b.size()) return false;
  if (size > short_max) return a == b;
  if (size >= 8) {
    // The last word overlaps the one before.
    for (std::size_t at = 0; at < size - 8; at += 8) {
      if (differ(at, std::uint64_t{})) return false;
    }
    return !differ(size - 8, std::uint64_t{});
  }
  if (size >= 4) return !differ(0, std::uint32_t{}) && !differ(size - 4, std::uint32_t{});
  for (std::size_t at = 0; at < size; ++at) {
    if (a[at] != b[at]) return false;
  }
  return true;
}

/// What a name means for a message.
enum class NameKind : std::uint8_t {
  regular,
  content_length,
  cookie,
  host,
  te,
  connection_specific,  ///< RFC 9113, section 8.2.2.
  // Pseudo-header fields.
  authority,
  method,
  path,
  protocol,  ///< RFC 8441.
  scheme,
  status,
  unknown_pseudo_header,
  // Names that no message may have.
  upper_case,
  malformed,
};

[[nodiscard]] constexpr bool is_pseudo_header(NameKind kind) noexcept {
  return kind >= NameKind::authority && kind <= NameKind::unknown_pseudo_header;
}

/// True if a message treats the name in a special way, apart from pseudo-header fields.
[[nodiscard]] constexpr bool is_special(NameKind kind) noexcept {
  return kind == NameKind::cookie || kind == NameKind::te ||
         kind == NameKind::connection_specific || kind >= NameKind::upper_case;
}

/// When the encoder adds a field to the dynamic table.
enum class Indexing : std::uint8_t {
  always,
  repeated,  ///< When the same value occurs again: most values occur once.
  never,     ///< The value is a secret: "never indexed" (RFC 7541, section 7.1.3).
};

struct KnownName {
  std::string_view name;          ///< In lower case.
  std::uint8_t static_index = 0;  ///< The first entry of the static table; 0 if there is none.
  NameKind kind = NameKind::regular;
  Indexing indexing = Indexing::always;
};

inline constexpr std::size_t known_name_count = 58;
extern const std::array<KnownName, known_name_count> known_names;
/// The index into known_names of the name that may have a hash; see slot_of_hash().
extern const std::array<std::uint8_t, 256> known_name_slots;

/// No two known names have the same slot.
[[nodiscard]] constexpr std::size_t slot_of_hash(std::uint32_t hash) noexcept {
  return hash * std::uint32_t{0xAB6FE7D5} >> 24;
}

/// Returns null if the name is not known. `hash` is hash_of_name(name).
[[nodiscard]] inline const KnownName* find_known_name(std::string_view name,
                                                      std::uint32_t hash) noexcept {
  const KnownName& found = known_names[known_name_slots[slot_of_hash(hash)]];
  if (are_equal(found.name, name)) return &found;
  return equal_ignoring_case(found.name, name) ? &found : nullptr;
}

/// The known name that has a hash; `hash` must be that of a known name.
[[nodiscard]] inline const KnownName& known_name_of(std::uint32_t hash) noexcept {
  return known_names[known_name_slots[slot_of_hash(hash)]];
}

/// An entry of the static table.
struct StaticEntry {
  std::string_view text;  ///< The name and the value.
  std::uint32_t hash = 0;
  std::uint8_t name_size = 0;
  NameKind kind = NameKind::regular;

  [[nodiscard]] constexpr std::string_view value() const noexcept { return text.substr(name_size); }
};

inline constexpr std::uint32_t static_entry_count = 61;
/// The first entry has the index 1.
extern const std::array<StaticEntry, static_entry_count> static_table;

}  // namespace tambour::http::detail::h2
