// Decodes the representations of fields: RFC 7541, section 6.
#include "http_message/h2/hpack_decoder.h"

#include <algorithm>
#include <new>

#include "bytes/short_copy.h"
#include "http_message/h2/huffman.h"
#include "http_message/url_syntax.h"

namespace tambour::http::detail::h2 {
namespace {

constexpr std::uint8_t indexed_bit = 0x80;
constexpr std::uint8_t incremental_bit = 0x40;
constexpr std::uint8_t size_update_bit = 0x20;
constexpr std::uint8_t huffman_bit = 0x80;

std::uint32_t tag_of(FieldTraits traits) noexcept {
  return static_cast<std::uint32_t>(traits.kind) | (traits.has_bad_value ? 256U : 0U) |
         (traits.is_valid_authority ? 512U : 0U);
}

FieldTraits traits_of(std::uint32_t tag) noexcept {
  return {.kind = static_cast<NameKind>(tag & 255),
          .has_bad_value = (tag & 256) != 0,
          .is_valid_authority = (tag & 512) != 0};
}

}  // namespace

/// A name that decode_name() has written to the memory of the section.
struct HpackDecoder::Name {
  std::size_t size = 0;
  std::uint32_t hash = 0;
  NameKind kind = NameKind::regular;
};

class HpackDecoder::Reader {
 public:
  explicit Reader(std::string_view block) noexcept
      : at_(block.data()), end_(block.data() + block.size()) {}

  [[nodiscard]] bool empty() const noexcept { return at_ == end_; }
  /// The next byte, which must exist.
  [[nodiscard]] std::uint8_t peek() const noexcept { return static_cast<std::uint8_t>(*at_); }

  /// RFC 7541, section 5.1. The first byte must exist.
  [[nodiscard]] std::expected<std::uint32_t, Violation> read_integer(
      unsigned prefix_bits) noexcept {
    const std::uint32_t mask = (1U << prefix_bits) - 1;
    const std::uint32_t prefix = static_cast<std::uint8_t>(*at_++) & mask;
    if (prefix != mask) return prefix;
    return read_long_integer(mask);
  }

  /// Appends a text to the `used` bytes of the memory of `section`. Returns its size.
  [[nodiscard]] std::expected<std::size_t, Violation> read_text(FieldSection& section,
                                                                std::size_t used) {
    if (empty()) return std::unexpected(Violation::truncated_field_block);
    const bool is_coded = (peek() & huffman_bit) != 0;
    const auto size = read_integer(7);
    if (!size) return std::unexpected(size.error());
    if (*size > static_cast<std::size_t>(end_ - at_))
      return std::unexpected(Violation::truncated_field_block);
    const std::string_view text(at_, *size);
    at_ += *size;
    if (is_coded)
      return decode_huffman(text, section.reserve(used, used + decoded_size_max(*size)) + used);
    bytes::copy_short(section.reserve(used, used + *size) + used, text);
    return text.size();
  }

 private:
  [[nodiscard]] std::expected<std::uint32_t, Violation> read_long_integer(
      std::uint32_t prefix) noexcept {
    constexpr unsigned shift_max = 28;
    std::uint64_t value = prefix;
    for (unsigned shift = 0; shift <= shift_max; shift += 7) {
      if (empty()) return std::unexpected(Violation::truncated_field_block);
      const auto byte = static_cast<std::uint8_t>(*at_++);
      value += std::uint64_t{byte & 127U} << shift;
      if (value > UINT32_MAX) break;
      if (byte < 128) return static_cast<std::uint32_t>(value);
    }
    return std::unexpected(Violation::integer_too_large);
  }

  const char* at_;
  const char* end_;
};

HpackDecoder::HpackDecoder(std::uint32_t table_size_max) noexcept
    : table_size_max_(table_size_max) {
  // The encoder of the peer begins with the default size, but must not exceed the limit.
  table_.set_size_max(std::min(table_size_max, DynamicTable::default_size_max));
}

void HpackDecoder::set_table_size_max(std::uint32_t bytes) noexcept {
  table_size_max_ = bytes;
  if (bytes >= table_.size_max()) return;
  table_.set_size_max(bytes);
  required_size_max_ = std::min(required_size_max_, bytes);
}

std::expected<void, Violation> HpackDecoder::decode(std::string_view block, FieldSection& section) {
  if (has_failed_) return std::unexpected(Violation::decoder_failed);
  has_failed_ = true;  // Also after an exception.
  Reader input(block);
  if (auto decoded = decode_size_updates(input); !decoded) return decoded;
  while (!input.empty()) {
    if (auto decoded = decode_field(input, section); !decoded) return decoded;
    if (section.has_far_too_many()) return std::unexpected(Violation::far_too_many_fields);
  }
  has_failed_ = false;
  return {};
}

std::expected<void, Violation> HpackDecoder::decode_size_updates(Reader& input) noexcept {
  while (!input.empty() && (input.peek() & 0xE0) == size_update_bit) {
    const auto size = input.read_integer(5);
    if (!size) return std::unexpected(size.error());
    if (*size > std::min(table_size_max_, required_size_max_))
      return std::unexpected(Violation::table_size_too_large);
    required_size_max_ = UINT32_MAX;
    table_.set_size_max(*size);
  }
  if (required_size_max_ != UINT32_MAX)
    return std::unexpected(Violation::missing_table_size_update);
  return {};
}

std::expected<void, Violation> HpackDecoder::decode_field(Reader& input, FieldSection& section) {
  const std::uint8_t first = input.peek();
  if ((first & indexed_bit) != 0) return decode_indexed(input, section);
  if ((first & incremental_bit) != 0) return decode_literal(input, 6, section);
  if ((first & size_update_bit) != 0) return std::unexpected(Violation::late_table_size_update);
  return decode_literal(input, 4, section);
}

std::expected<void, Violation> HpackDecoder::decode_indexed(Reader& input, FieldSection& section) {
  const auto index = input.read_integer(7);
  if (!index) return std::unexpected(index.error());
  if (*index - 1 < static_entry_count) {
    section.add(static_table[*index - 1]);
    return {};
  }
  const std::uint32_t age = *index - static_entry_count - 1;
  if (*index == 0 || age >= table_.count()) return std::unexpected(Violation::bad_index);
  const DynamicTable::Entry& entry = table_.entry(age);
  const std::string_view text = table_.text(entry);
  if (!section.count(text.size())) return {};
  bytes::copy_short(section.reserve(0, text.size()), text);
  section.add(entry.name_size, entry.value_size, entry.hash, traits_of(entry.tag));
  return {};
}

std::expected<HpackDecoder::Name, Violation> HpackDecoder::decode_name(
    Reader& input, unsigned prefix_bits, FieldSection& section) const {
  const auto index = input.read_integer(prefix_bits);
  if (!index) return std::unexpected(index.error());
  const auto copy = [&section](std::string_view name, std::uint32_t hash, NameKind kind) {
    bytes::copy_short(section.reserve(0, name.size()), name);
    return Name{.size = name.size(), .hash = hash, .kind = kind};
  };
  if (*index == 0) {
    const auto size = input.read_text(section, 0);
    if (!size) return std::unexpected(size.error());
    const std::string_view name(section.reserve(*size, *size), *size);
    const std::uint32_t hash = hash_of_name(name);
    return Name{.size = *size, .hash = hash, .kind = kind_of_name(name, hash)};
  }
  if (*index <= static_entry_count) {
    const StaticEntry& entry = static_table[*index - 1];
    return copy(entry.text.substr(0, entry.name_size), entry.hash, entry.kind);
  }
  const std::uint32_t age = *index - static_entry_count - 1;
  if (age >= table_.count()) return std::unexpected(Violation::bad_index);
  const DynamicTable::Entry& entry = table_.entry(age);
  return copy(table_.text(entry).substr(0, entry.name_size), entry.hash, traits_of(entry.tag).kind);
}

std::expected<void, Violation> HpackDecoder::decode_literal(Reader& input, unsigned prefix_bits,
                                                            FieldSection& section) {
  const auto name = decode_name(input, prefix_bits, section);
  if (!name) return std::unexpected(name.error());
  const auto value_size = input.read_text(section, name->size);
  if (!value_size) return std::unexpected(value_size.error());
  const std::size_t size = name->size + *value_size;
  const std::string_view text(section.reserve(size, size), size);
  FieldTraits traits = {.kind = name->kind,
                        .has_bad_value = !is_valid_value(text.substr(name->size))};
  const bool is_added = prefix_bits == 6;
  if (is_added && name->kind == NameKind::authority)
    traits.is_valid_authority = parse_host_and_port(text.substr(name->size)).has_value();
  if (is_added &&
      !table_.add(text.substr(0, name->size), text.substr(name->size), name->hash, tag_of(traits)))
    throw std::bad_alloc();
  if (section.count(size)) section.add(name->size, *value_size, name->hash, traits);
  return {};
}

}  // namespace tambour::http::detail::h2
