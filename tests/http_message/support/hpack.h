// What tests of HPACK share: lists of fields, and the library's decoder and encoder on them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http_message/h2/hpack_decoder.h"
#include "http_message/h2/hpack_encoder.h"

namespace tambour::test {

/// Names and values, pseudo-header fields included.
using FieldList = std::vector<std::pair<std::string, std::string>>;

inline FieldList list_of(const http::Fields& fields) {
  FieldList list;
  for (const http::Field field : fields)
    list.emplace_back(std::string(field.name), std::string(field.value));
  return list;
}

/// Limits that no test reaches by accident.
inline constexpr http::detail::h2::FieldLimits wide_limits{
    .fields_max = 100'000, .fields_hard_max = 100'000, .bytes_max = std::size_t{16} << 20};

/// Decodes a block without checking the fields.
inline std::expected<FieldList, http::detail::h2::Violation> decode(
    http::detail::h2::HpackDecoder& decoder, std::string_view block) {
  http::detail::h2::FieldSection section(wide_limits, http::detail::h2::SectionKind::unchecked);
  if (auto decoded = decoder.decode(block, section); !decoded)
    return std::unexpected(decoded.error());
  http::Fields fields;
  section.move_fields_to(fields);
  return list_of(fields);
}

inline std::string encode(http::detail::h2::HpackEncoder& encoder, const FieldList& list) {
  std::size_t size = http::detail::h2::HpackEncoder::begin_size_max;
  for (const auto& [name, value] : list)
    size += http::detail::h2::HpackEncoder::encoded_size_max(name.size(), value.size());
  std::string block(size, '\0');
  char* to = encoder.begin(block.data());
  for (const auto& [name, value] : list) {
    const std::uint32_t hash = http::hash_of_name(name);
    to = encoder.encode(to, name, hash, http::detail::h2::find_known_name(name, hash), value);
  }
  block.resize(static_cast<std::size_t>(to - block.data()));
  return block;
}

/// "82 84 41" or "828441" as bytes.
inline std::string from_hex(std::string_view text) {
  std::string bytes;
  int high = -1;
  for (const char c : text) {
    const int digit = http::hex_value(c);
    if (digit < 0) continue;
    if (high >= 0) bytes += static_cast<char>(high * 16 + digit);
    high = high >= 0 ? -1 : digit;
  }
  return bytes;
}

}  // namespace tambour::test
