// Decodes field blocks: HPACK, RFC 7541.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string_view>

#include <tambour/detail/namespaces.h>

#include "http_message/h2/dynamic_table.h"
#include "http_message/h2/field_section.h"
#include "http_message/h2/violation.h"

namespace tambour::http::detail::h2 {

/// The decoder of one connection. Each block of the connection must be decoded, in the order in
/// which it was received, also if its stream is not wanted: it may change the dynamic table.
///
/// Memory: at most 9/4 of the size of the table; none before the peer adds an entry.
class HpackDecoder {
 public:
  /// `table_size_max` is the SETTINGS_HEADER_TABLE_SIZE that this endpoint sends first.
  explicit HpackDecoder(std::uint32_t table_size_max = DynamicTable::default_size_max) noexcept;

  /// Call it when the peer has acknowledged another SETTINGS_HEADER_TABLE_SIZE, at most
  /// DynamicTable::size_limit. If it is smaller, the next block must begin with a change of the
  /// table's size.
  void set_table_size_max(std::uint32_t bytes) noexcept;

  /// Decodes a complete block into `section`, which must be new. An error ends the connection: each
  /// further call fails with Violation::decoder_failed. Throws std::bad_alloc, which is such an
  /// error too. That the fields are not valid, or too many, is no error: see the section.
  [[nodiscard]] std::expected<void, Violation> decode(std::string_view block,
                                                      FieldSection& section);

  [[nodiscard]] const DynamicTable& table() const noexcept { return table_; }

 private:
  struct Name;
  class Reader;

  [[nodiscard]] std::expected<void, Violation> decode_size_updates(Reader& input) noexcept;
  [[nodiscard]] std::expected<void, Violation> decode_field(Reader& input, FieldSection& section);
  [[nodiscard]] std::expected<void, Violation> decode_indexed(Reader& input, FieldSection& section);
  [[nodiscard]] std::expected<void, Violation> decode_literal(Reader& input, unsigned prefix_bits,
                                                              FieldSection& section);
  [[nodiscard]] std::expected<Name, Violation> decode_name(Reader& input, unsigned prefix_bits,
                                                           FieldSection& section) const;

  DynamicTable table_;
  std::uint32_t table_size_max_;
  /// The smallest limit since the last block, if it requires a change of the size.
  std::uint32_t required_size_max_ = UINT32_MAX;
  bool has_failed_ = false;
};

}  // namespace tambour::http::detail::h2
