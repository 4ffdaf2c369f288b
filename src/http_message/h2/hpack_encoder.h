// Encodes field blocks: HPACK, RFC 7541.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tambour/detail/namespaces.h>

#include "http_message/h2/dynamic_table.h"
#include "http_message/h2/known_names.h"

namespace tambour::http::detail::h2 {

/// The encoder of one connection. Blocks must be sent in the order in which they were encoded, and
/// each one must be sent.
///
/// What is added to the dynamic table depends on the name (known_names.h): fields whose value
/// usually stays the same, at once; other fields, such as a path, a date or a field that is not in
/// the static table, when the same value occurs again; never Authorization, Proxy-Authorization,
/// Set-Cookie and short values of Cookie, which an attacker could guess by the size of blocks, and
/// which are marked so that proxies do not add them either.
///
/// Memory: about 350 bytes and at most 9/4 of the size of the table. Out of memory, fields are
/// encoded without adding them to the table: the encoder never throws.
class HpackEncoder {
 public:
  /// `table_size_max` limits the memory, whatever the peer allows.
  explicit HpackEncoder(std::uint32_t table_size_max = DynamicTable::default_size_max) noexcept;

  /// Call it when the SETTINGS_HEADER_TABLE_SIZE of the peer changes, before the acknowledgement is
  /// sent.
  void set_peer_table_size_max(std::uint32_t bytes) noexcept;

  /// The maximum that begin() writes.
  static constexpr std::size_t begin_size_max = 12;
  /// The maximum that encode() writes.
  [[nodiscard]] static constexpr std::size_t encoded_size_max(std::size_t name_size,
                                                              std::size_t value_size) noexcept {
    return name_size + value_size + 13;
  }

  /// Begins a block: writes pending changes of the table's size to `to`. Returns their end.
  [[nodiscard]] char* begin(char* to) noexcept;
  /// Writes a field to `to`. Returns its end. Upper-case letters of `name` are converted. `hash` is
  /// hash_of_name(name), `known` find_known_name(name, hash). The name and the value must be valid.
  [[nodiscard]] char* encode(char* to, std::string_view name, std::uint32_t hash,
                             const KnownName* known, std::string_view value) noexcept;

  [[nodiscard]] const DynamicTable& table() const noexcept { return table_; }
  /// While it does not change, and is not 0, the indices of a block stay valid.
  [[nodiscard]] std::uint64_t table_state() const noexcept {
    if (has_pending_size_) return 0;
    return std::uint64_t{table_.serial()} << 32 | (std::uint64_t{table_.count()} << 1U) | 1U;
  }

 private:
  struct Match {
    std::uint32_t index = 0;       ///< Of an entry with the same name and value, or 0.
    std::uint32_t name_index = 0;  ///< Of an entry with the same name, or 0.
  };

  [[nodiscard]] Match find(std::string_view name, std::uint32_t hash, std::string_view value,
                           const KnownName* known) const noexcept;
  [[nodiscard]] bool is_to_be_added(std::size_t size, std::uint32_t hash, std::string_view value,
                                    Indexing indexing) noexcept;
  [[nodiscard]] bool add(std::string_view name, std::uint32_t hash,
                         std::string_view value) noexcept;

  static constexpr std::size_t bucket_count = 32;
  static constexpr std::size_t seen_count = 64;

  DynamicTable table_;
  std::uint32_t table_size_max_;
  std::uint32_t pending_size_min_ = UINT32_MAX;  ///< The smallest size since the last block.
  bool has_pending_size_ = false;
  /// The serial number of the newest entry whose name has a hash; the tag of an entry is that of
  /// the next older one.
  std::array<std::uint32_t, bucket_count> newest_{};
  /// Parts of the hashes of fields that were not added.
  std::array<std::uint16_t, seen_count> seen_{};
};

}  // namespace tambour::http::detail::h2
