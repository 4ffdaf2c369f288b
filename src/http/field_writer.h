// Fills Fields with received lines, whose text is copied once, when all of them are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include <tambour/http_fields.h>

#include "http/field_hash.h"

namespace tambour::http::detail {

class FieldWriter {
 public:
  /// Where a field is in the text.
  struct Place {
    std::size_t name_at = 0;
    std::size_t name_size = 0;
    std::size_t value_at = 0;
    std::size_t value_size = 0;
  };

  /// Returns false if the field exceeds what an entry can describe. The fields cannot be read until
  /// finish() is called.
  [[nodiscard]] static bool add(Fields& fields, std::string_view text, const Place& place) {
    constexpr std::size_t size_max = std::numeric_limits<std::uint16_t>::max();
    const std::size_t gap = place.value_at - place.name_at - place.name_size;
    if (place.name_size > size_max || gap > size_max ||
        place.value_at + place.value_size > Fields::bytes_max)
      return false;
    fields.entries_.push_back({.at = static_cast<std::uint32_t>(place.name_at),
                               .hash = hash_of_name(text.substr(place.name_at, place.name_size)),
                               .value_size = static_cast<std::uint32_t>(place.value_size),
                               .name_size = static_cast<std::uint16_t>(place.name_size),
                               .value_gap = static_cast<std::uint16_t>(gap)});
    fields.bytes_ += place.name_size + place.value_size;
    return true;
  }

  /// `text` contains all places.
  static void finish(Fields& fields, std::string_view text) { fields.text_.assign(text); }
};

}  // namespace tambour::http::detail
