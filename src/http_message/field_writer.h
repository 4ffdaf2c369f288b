// Collects received lines and makes Fields of them, whose text is copied once, when all are known;
// and finds fields by names whose hashes are known.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/detail/namespaces.h>
#include <tambour/http/fields.h>

#include "bytes/short_copy.h"
#include "http_message/characters.h"
#include "http_message/field_hash.h"

namespace tambour::http::detail {

class FieldWriter {
 public:
  /// A field of the list, as a place in the text.
  using Entry = Fields::Entry;

  /// Where a field is in the text.
  struct Place {
    std::size_t name_at = 0;
    std::size_t name_size = 0;
    std::size_t value_at = 0;
    std::size_t value_size = 0;
  };

  /// The number of fields that were added.
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

  /// Returns false if the field exceeds what an entry can describe.
  [[nodiscard]] bool add(std::string_view text, const Place& place) {
    constexpr std::size_t size_max = std::numeric_limits<std::uint16_t>::max();
    const std::size_t gap = place.value_at - place.name_at - place.name_size;
    // Most texts are so short that all their places fit.
    if (text.size() > size_max && (place.name_size > size_max || gap > size_max ||
                                   place.value_at + place.value_size > Fields::bytes_max))
        [[unlikely]]
      return false;
    entries_.push_back({.at = static_cast<std::uint32_t>(place.name_at),
                        .hash = hash_of_name(text.substr(place.name_at, place.name_size)),
                        .value_size = static_cast<std::uint32_t>(place.value_size),
                        .name_size = static_cast<std::uint16_t>(place.name_size),
                        .value_gap = static_cast<std::uint16_t>(gap)});
    names_ |= mark_of(entries_.back().hash);
    bytes_ += static_cast<std::uint32_t>(place.name_size + place.value_size);
    return true;
  }

  /// The same for a line of at most 65,535 bytes, in a text of at most Fields::bytes_max bytes.
  void add_short(const char* text, const char* name, std::size_t name_size,
                 std::string_view value) {
    const std::uint32_t hash = hash_of_name({name, name_size});
    entries_.push_back({.at = static_cast<std::uint32_t>(name - text),
                        .hash = hash,
                        .value_size = static_cast<std::uint32_t>(value.size()),
                        .name_size = static_cast<std::uint16_t>(name_size),
                        .value_gap = static_cast<std::uint16_t>(value.data() - name - name_size)});
    names_ |= mark_of(hash);
    bytes_ += static_cast<std::uint32_t>(name_size + value.size());
  }

  /// False if no field has one of these names. It may be true, too, if none has.
  template <std::same_as<KnownName>... Names>
  [[nodiscard]] bool may_have(const Names&... names) const noexcept {
    return (names_ & (mark_of(names.hash) | ...)) != 0;
  }

  /// The name of the last field that was added.
  [[nodiscard]] std::string_view last_name(std::string_view text) const noexcept {
    return text.substr(entries_.back().at, entries_.back().name_size);
  }

  /// The value of the last field ends at `end`, in a further line. Returns false like add().
  [[nodiscard]] bool continue_last(std::size_t end) noexcept {
    if (end > Fields::bytes_max) return false;
    Fields::Entry& last = entries_.back();
    last.value_size = static_cast<std::uint32_t>(end - last.at - last.name_size - last.value_gap);
    request_repair();
    return true;
  }
  /// A value has several lines or control characters: finish() replaces them by spaces.
  void request_repair() noexcept { needs_repair_ = true; }

  /// Replaces `fields` by those that were added. `text` contains all places. may_have() then refers
  /// to these until the next call of clear() or add().
  void finish(Fields& fields, std::string_view text) {
    // If the text has to grow, GCC 12 passes the new capacity in place of the size.
    fields.text_.resize_and_overwrite(text.size(), [text](char* memory, std::size_t /*size*/) {
      std::memcpy(memory, text.data(), text.size());
      return text.size();
    });
    fields.entries_.swap(entries_);
    fields.names_ = names_;
    fields.bytes_ = bytes_;
    fields.has_lines_ = false;
    if (needs_repair_) [[unlikely]]
      repair(fields);
    entries_.clear();
    bytes_ = 0;
    needs_repair_ = false;
  }

  void clear() noexcept {
    entries_.clear();
    bytes_ = 0;
    names_ = 0;
    needs_repair_ = false;
  }

  /// Replaces `fields` by `entries`, whose places are in `text`. If memory is exhausted, `fields`
  /// are empty.
  static void assign(Fields& fields, std::string_view text, std::span<const Entry> entries) {
    fields.clear();
    fields.entries_.reserve(entries.size());
    fields.text_.assign(text);
    fields.entries_.assign(entries.begin(), entries.end());
    fields.has_lines_ = fields.text_.empty();
    for (const Entry& entry : entries) {
      fields.names_ |= mark_of(entry.hash);
      fields.bytes_ += entry.name_size + entry.value_size;
    }
  }
  /// The hash of the name of a field.
  [[nodiscard]] static std::uint32_t hash_of(const Fields& fields, std::size_t index) noexcept {
    return fields.entries_[index].hash;
  }

  /// The same as Fields::find(). `from` is at most the number of fields.
  [[nodiscard]] static std::size_t find(const Fields& fields, const KnownName& name,
                                        std::size_t from = 0) noexcept {
    const std::vector<Entry>& entries = fields.entries_;
    if ((fields.names_ & mark_of(name.hash)) == 0) return entries.size();
    std::size_t i = from;
    while (i < entries.size() &&
           (entries[i].hash != name.hash || !is_name(fields.field_of(entries[i]).name, name)))
      ++i;
    return i;
  }
  [[nodiscard]] static bool contains(const Fields& fields, const KnownName& name) noexcept {
    return find(fields, name) != fields.size();
  }
  /// False if `fields` have none of these names. It may be true, too, if they have none.
  template <std::same_as<KnownName>... Names>
  [[nodiscard]] static bool may_have(const Fields& fields, const Names&... names) noexcept {
    return (fields.names_ & (mark_of(names.hash) | ...)) != 0;
  }
  /// All fields as lines of HTTP/1, if they are together in memory: lines_bytes() of them.
  [[nodiscard]] static std::optional<std::string_view> lines(const Fields& fields) noexcept {
    // The caller has memory for lines_bytes().
    if (!fields.has_lines_ || fields.text_.size() != lines_bytes(fields)) return std::nullopt;
    return fields.text_;
  }
  /// What all fields take as lines of HTTP/1, with ": " and line ends.
  [[nodiscard]] static std::size_t lines_bytes(const Fields& fields) noexcept {
    return fields.bytes_ + 4 * fields.entries_.size();
  }
  /// The same as Fields::has_token().
  [[nodiscard]] static bool has_token(const Fields& fields, const KnownName& name,
                                      std::string_view token) noexcept {
    return contains(fields, name) && fields.has_token(name.text, token);
  }
  /// Replaces `to` by those fields of `from` for which `is_wanted(field, hash)` is true, and keeps
  /// its memory. If memory is exhausted, `to` is empty.
  template <class Predicate>
  static void copy_if(Fields& to, const Fields& from, Predicate is_wanted) {
    to.clear();
    to.entries_.reserve(from.entries_.size());
    to.text_.assign(from.text_);
    to.names_ = from.names_;
    // The text of a received head is more than its fields, even if it has none.
    to.has_lines_ = to.text_.empty();
    for (const Entry& entry : from.entries_) {
      if (!is_wanted(from.field_of(entry), entry.hash)) continue;
      to.entries_.push_back(entry);
      to.bytes_ += entry.name_size + entry.value_size;
    }
  }
  /// True if they are equal, in the same way in memory too. False if it would take longer to find
  /// out: operator== compares all fields.
  [[nodiscard]] static bool are_same(const Fields& one, const Fields& other) noexcept {
    constexpr auto are_equal_entries = [](const Entry& a, const Entry& b) noexcept {
      return a.at == b.at && a.value_size == b.value_size && a.name_size == b.name_size &&
             a.value_gap == b.value_gap;
    };
    return one.names_ == other.names_ && one.entries_.size() == other.entries_.size() &&
           one.text_ == other.text_ &&
           std::equal(one.entries_.begin(), one.entries_.end(), other.entries_.begin(),
                      are_equal_entries);
  }
  /// Like std::swap(): both keep their memory.
  static void swap(Fields& one, Fields& other) noexcept {
    one.text_.swap(other.text_);
    one.entries_.swap(other.entries_);
    std::swap(one.names_, other.names_);
    std::swap(one.bytes_, other.bytes_);
    std::swap(one.has_lines_, other.has_lines_);
  }
  /// Removes the fields for which `is_removed(field, hash)` is true.
  template <class Predicate>
  static void remove_if(Fields& fields, Predicate is_removed) {
    std::erase_if(fields.entries_, [&](const Entry& entry) {
      if (!is_removed(fields.field_of(entry), entry.hash)) return false;
      fields.bytes_ -= entry.name_size + entry.value_size;
      fields.has_lines_ = false;
      return true;
    });
  }
  /// Appends a field without the checks of Fields::add(): its name and value are known to be valid,
  /// and are no views into `fields`.
  static void append(Fields& fields, std::string_view name, std::string_view value) {
    const std::size_t at = fields.text_.size();
    const std::size_t added = name.size() + value.size();
    if (added > fields.text_.capacity() - at ||
        fields.entries_.size() == fields.entries_.capacity())
      return static_cast<void>(fields.add(name, value));
    fields.text_.resize_and_overwrite(at + added, [&](char* text, std::size_t size) {
      bytes::copy_short(bytes::copy_short(text + at, name), value);
      return size;
    });
    fields.entries_.push_back({.at = static_cast<std::uint32_t>(at),
                               .hash = hash_of_name(name),
                               .value_size = static_cast<std::uint32_t>(value.size()),
                               .name_size = static_cast<std::uint16_t>(name.size()),
                               .value_gap = 0});
    fields.names_ |= mark_of(fields.entries_.back().hash);
    fields.bytes_ += static_cast<std::uint32_t>(added);
    fields.has_lines_ = false;
  }

  /// Prefetches the memory that `fields` have kept, or the part of it that most messages need.
  static void prefetch(const Fields& fields) noexcept {
    constexpr std::size_t line_bytes = 64;
    __builtin_prefetch(fields.text_.data(), 1);
    __builtin_prefetch(fields.text_.data() + line_bytes, 1);
    __builtin_prefetch(fields.entries_.data(), 1);
  }

  /// Clears `fields`, and frees their memory if it is large.
  static void release(Fields& fields) noexcept {
    constexpr std::size_t kept_bytes_max = 4096;
    fields.clear();
    // Assigning an empty string would keep the memory.
    if (fields.text_.capacity() > kept_bytes_max) std::string().swap(fields.text_);
    if (fields.entries_.capacity() > kept_bytes_max / sizeof(Fields::Entry))
      fields.entries_ = std::vector<Fields::Entry>();
  }

 private:
  static void repair(Fields& fields) noexcept;
  /// Most peers write a name in the same way.
  [[nodiscard]] static bool is_name(std::string_view text, const KnownName& name) noexcept {
    if (text.size() != name.text.size()) return false;
    return std::memcmp(text.data(), name.text.data(), name.text.size()) == 0 ||
           equal_ignoring_case(text, name.text);
  }

  std::vector<Fields::Entry> entries_;
  std::uint32_t bytes_ = 0;  ///< At most Fields::bytes_max.
  std::uint64_t names_ = 0;  ///< The marks of all names.
  bool needs_repair_ = false;
};

}  // namespace tambour::http::detail
