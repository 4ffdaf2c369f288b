// Chooses and writes the representations of fields: RFC 7541, section 6.
#include "http_message/h2/hpack_encoder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "http_message/characters.h"
#include "http_message/h2/huffman.h"

namespace tambour::http::detail::h2 {
namespace {

/// The first bits of a representation, and how many bits of the first byte the index has.
struct Representation {
  std::uint8_t bits = 0;
  unsigned prefix_bits = 0;
};

constexpr Representation indexed{.bits = 0x80, .prefix_bits = 7};
constexpr Representation added{.bits = 0x40, .prefix_bits = 6};
constexpr Representation not_added{.bits = 0x00, .prefix_bits = 4};
constexpr Representation never_added{.bits = 0x10, .prefix_bits = 4};
constexpr Representation size_update{.bits = 0x20, .prefix_bits = 5};
constexpr Representation coded_text{.bits = 0x80, .prefix_bits = 7};
constexpr Representation plain_text{.bits = 0x00, .prefix_bits = 7};

/// Shorter values could be guessed: RFC 7541, section 7.1.3.
constexpr std::size_t guessable_cookie_size = 20;
/// How many entries with the same hash are compared.
constexpr int compared_max = 16;

char* write_integer(char* to, Representation kind, std::uint32_t value) noexcept {
  const std::uint32_t mask = (1U << kind.prefix_bits) - 1;
  if (value < mask) {
    *to++ = static_cast<char>(kind.bits | value);
    return to;
  }
  *to++ = static_cast<char>(kind.bits | mask);
  value -= mask;
  for (; value >= 128; value >>= 7) *to++ = static_cast<char>(128U | (value & 127U));
  *to++ = static_cast<char>(value);
  return to;
}

std::size_t integer_size(std::uint32_t value, unsigned prefix_bits) noexcept {
  const std::uint32_t mask = (1U << prefix_bits) - 1;
  if (value < mask) return 1;
  std::size_t size = 2;
  for (value -= mask; value >= 128; value >>= 7) ++size;
  return size;
}

char* write_text(char* to, std::string_view text) noexcept {
  // The coded text has at most the size of the text, so its size takes at most as many bytes.
  const auto size = static_cast<std::uint32_t>(text.size());
  char* const at = to + integer_size(size, plain_text.prefix_bits);
  if (const char* const end = encode_huffman(text, at)) {
    const auto coded_size = static_cast<std::uint32_t>(end - at);
    to = write_integer(to, coded_text, coded_size);
    if (to != at) std::memmove(to, at, coded_size);
    return to + coded_size;
  }
  to = write_integer(to, plain_text, size);
  return std::copy(text.begin(), text.end(), to);
}

char* write_name(char* to, std::string_view name) noexcept {
  std::array<char, 64> lower;
  if (name.size() <= lower.size()) {
    std::ranges::transform(name, lower.begin(), [](char c) { return to_lower(c); });
    return write_text(to, {lower.data(), name.size()});
  }
  to = write_integer(to, plain_text, static_cast<std::uint32_t>(name.size()));
  return std::ranges::transform(name, to, [](char c) { return to_lower(c); }).out;
}

bool are_equal_names(std::string_view a, std::string_view b) noexcept {
  return are_equal(a, b) || equal_ignoring_case(a, b);
}

}  // namespace

HpackEncoder::HpackEncoder(std::uint32_t table_size_max) noexcept
    : table_size_max_(std::min(table_size_max, DynamicTable::size_limit)) {
  // The decoder of the peer begins with the default size.
  set_peer_table_size_max(DynamicTable::default_size_max);
}

void HpackEncoder::set_peer_table_size_max(std::uint32_t bytes) noexcept {
  const std::uint32_t size = std::min(bytes, table_size_max_);
  if (size == table_.size_max()) return;
  pending_size_min_ = std::min(pending_size_min_, size);
  has_pending_size_ = true;
  table_.set_size_max(size);
}

char* HpackEncoder::begin(char* to) noexcept {
  if (!has_pending_size_) return to;
  // The smallest size tells the decoder which entries were evicted: RFC 7541, section 4.2.
  if (pending_size_min_ < table_.size_max()) to = write_integer(to, size_update, pending_size_min_);
  has_pending_size_ = false;
  pending_size_min_ = UINT32_MAX;
  return write_integer(to, size_update, table_.size_max());
}

HpackEncoder::Match HpackEncoder::find(std::string_view name, std::uint32_t hash,
                                       std::string_view value,
                                       const KnownName* known) const noexcept {
  Match match;
  if (known != nullptr && known->static_index != 0) {
    match.name_index = known->static_index;
    for (std::uint32_t i = known->static_index;
         i <= static_entry_count && static_table[i - 1].hash == hash; ++i) {
      if (are_equal(static_table[i - 1].value(), value)) return {.index = i};
    }
  }
  std::uint32_t serial = newest_[hash % bucket_count];
  for (int compared = 0; compared < compared_max; ++compared) {
    const std::uint32_t age = table_.serial() - serial;
    if (age >= table_.count()) break;
    const DynamicTable::Entry& entry = table_.entry(age);
    if (entry.hash == hash && entry.name_size == name.size()) {
      const std::string_view text = table_.text(entry);
      if (are_equal_names(text.substr(0, name.size()), name)) {
        const std::uint32_t index = static_entry_count + 1 + age;
        if (are_equal(text.substr(name.size()), value)) return {.index = index};
        if (match.name_index == 0) match.name_index = index;
      }
    }
    serial = entry.tag;
  }
  return match;
}

bool HpackEncoder::is_to_be_added(std::size_t size, std::uint32_t hash, std::string_view value,
                                  Indexing indexing) noexcept {
  // A large entry would evict most others.
  if (2 * (size + DynamicTable::entry_overhead) > table_.size_max()) return false;
  if (indexing == Indexing::always) return true;
  const std::uint32_t field_hash = hash ^ (hash_of_name(value) * 31);
  const auto part = static_cast<std::uint16_t>(field_hash >> 16);
  return std::exchange(seen_[field_hash % seen_count], part) == part;
}

bool HpackEncoder::add(std::string_view name, std::uint32_t hash, std::string_view value) noexcept {
  std::uint32_t& newest = newest_[hash % bucket_count];
  if (!table_.add(name, value, hash, newest)) return false;
  newest = table_.serial();
  return true;
}

char* HpackEncoder::encode(char* to, std::string_view name, std::uint32_t hash,
                           const KnownName* known, std::string_view value) noexcept {
  Indexing indexing = known == nullptr ? Indexing::repeated : known->indexing;
  if (known != nullptr && known->kind == NameKind::cookie && value.size() < guessable_cookie_size)
    indexing = Indexing::never;
  Representation kind = never_added;
  Match match;
  if (indexing == Indexing::never) {
    match.name_index = known->static_index;
  } else {
    match = find(name, hash, value, known);
    if (match.index != 0) return write_integer(to, indexed, match.index);
    const bool is_added =
        is_to_be_added(name.size() + value.size(), hash, value, indexing) && add(name, hash, value);
    kind = is_added ? added : not_added;
  }
  to = write_integer(to, kind, match.name_index);
  if (match.name_index == 0) to = write_name(to, name);
  return write_text(to, value);
}

}  // namespace tambour::http::detail::h2
