// The fields of one message, while they are decoded: RFC 9113, section 8.2 and 8.3.
//
// A section separates pseudo-header fields from the others, checks each field by itself, and counts
// the fields. Of a section that breaks a rule or exceeds its limits, nothing more is stored: the
// rest of its block must be decoded nevertheless, because it changes the state of the decoder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include <tambour/detail/namespaces.h>
#include <tambour/http/fields.h>

#include "http_message/field_writer.h"
#include "http_message/h2/known_names.h"
#include "http_message/h2/violation.h"

namespace tambour::http::detail::h2 {

/// Limits of the fields of a message, pseudo-header fields and each part of a Cookie included.
struct FieldLimits {
  /// A message with more is rejected with 431.
  std::size_t fields_max = 100;
  /// More end the connection: they only cost time.
  std::size_t fields_hard_max = 1000;
  /// Of all names and values, and 32 bytes for each field (RFC 9113, section 6.5.2). A larger
  /// message is rejected with 431.
  std::size_t bytes_max = std::size_t{48} * 1024;
};

/// The kind of a name, and whether the value may be sent. Decoded fields keep them in the dynamic
/// table, so that a text is checked once.
struct FieldTraits {
  NameKind kind = NameKind::regular;
  bool has_bad_value = false;
  /// The value is a host and a port. False if it was not checked.
  bool is_valid_authority = false;
};

/// Returns the kind of a name that is not in the static table.
[[nodiscard]] NameKind kind_of_name(std::string_view name, std::uint32_t hash) noexcept;
/// True if the value has no control character, and no blank at either end.
[[nodiscard]] bool is_valid_value(std::string_view value) noexcept;

enum class SectionKind : std::uint8_t {
  message,
  /// No field is checked, cookies are not joined, and pseudo-header fields are fields like others.
  /// For comparisons with other decoders.
  unchecked,
};

/// Use it as a local variable of a function, not of a coroutine: it has about 5 KiB.
class FieldSection {
 public:
  /// `limits` must outlive the section.
  explicit FieldSection(const FieldLimits& limits, SectionKind kind = SectionKind::message) noexcept
      : limits_(&limits), kind_(kind) {}
  FieldSection(const FieldSection&) = delete;
  FieldSection& operator=(const FieldSection&) = delete;

  // For the decoder.

  /// Returns memory of `size` bytes for the text of the next field. Its first `used` bytes are
  /// those of the memory that was returned before. Throws std::bad_alloc.
  [[nodiscard]] char* reserve(std::size_t used, std::size_t size) {
    if (size > text_capacity_ - text_size_) grow_text(used, size);
    return text_ + text_size_;
  }
  /// Adds a field, whose name and value are the text that reserve() returned, after count() has
  /// returned true. Throws std::bad_alloc.
  void add(std::size_t name_size, std::size_t value_size, std::uint32_t hash, FieldTraits traits);
  /// The same for an entry of the static table, which has not been counted yet.
  void add(const StaticEntry& entry);
  /// Returns false if a field of `size` bytes is only counted, because the section is rejected.
  [[nodiscard]] bool count(std::size_t size) noexcept {
    ++count_;
    bytes_ += size + overhead;
    is_too_large_ |= count_ > limits_->fields_max || bytes_ > limits_->bytes_max;
    return !is_rejected();
  }
  [[nodiscard]] bool has_far_too_many() const noexcept { return count_ > limits_->fields_hard_max; }

  // The result.

  /// The first rule that the fields break. It concerns the message, not the connection.
  [[nodiscard]] std::optional<Violation> violation() const noexcept { return violation_; }
  /// True if the section exceeds FieldLimits::fields_max or bytes_max.
  [[nodiscard]] bool is_too_large() const noexcept { return is_too_large_; }
  [[nodiscard]] bool is_rejected() const noexcept { return is_too_large_ || violation_; }

  /// The number of all fields.
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  /// The size of all fields, with 32 bytes for each.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// The value of a pseudo-header field; null, not only empty, if the section does not have it.
  /// Valid while the section is.
  [[nodiscard]] std::string_view pseudo_header(NameKind kind) const noexcept {
    const Place& place = pseudo_headers_[index_of(kind)];
    if (!place.is_present) return {};
    return {place.static_text != nullptr ? place.static_text : text_ + place.at, place.size};
  }
  /// True if :authority was valid when the peer has sent it first, and is still in the table.
  [[nodiscard]] bool has_valid_authority() const noexcept { return has_valid_authority_; }
  /// The number of pseudo-header fields.
  [[nodiscard]] std::size_t pseudo_header_count() const noexcept { return pseudo_header_count_; }

  /// Replaces `fields` by the other fields. Several Cookie fields become one (RFC 9113, section
  /// 8.2.3). Throws std::bad_alloc; `fields` are then empty. Call it once.
  void move_fields_to(Fields& fields);

 private:
  using Entry = detail::FieldWriter::Entry;

  static constexpr std::size_t overhead = 32;
  static constexpr std::size_t inline_bytes = 4096;
  static constexpr std::size_t inline_entries = 48;
  static constexpr std::size_t pseudo_header_kinds = 6;

  struct Place {
    const char* static_text = nullptr;  ///< Of the static table; null: the place is in `text_`.
    std::uint32_t at = 0;
    std::uint32_t size = 0;
    bool is_present = false;
  };

  [[nodiscard]] static constexpr std::size_t index_of(NameKind kind) noexcept {
    return static_cast<std::size_t>(kind) - static_cast<std::size_t>(NameKind::authority);
  }
  void grow_text(std::size_t used, std::size_t size);
  void grow_entries();
  [[nodiscard]] std::optional<Violation> add_pseudo_header(const Place& place, NameKind kind);
  [[nodiscard]] std::optional<Violation> check_special(const Entry& entry, NameKind kind) noexcept;
  void add_entry(const Entry& entry);
  void join_cookies();

  std::array<char, inline_bytes> inline_text_;  ///< Not initialized, like the next one.
  alignas(Entry) std::array<std::byte, inline_entries * sizeof(Entry)> inline_entry_bytes_;
  const FieldLimits* limits_;
  SectionKind kind_;
  bool is_too_large_ = false;
  bool has_valid_authority_ = false;
  char* text_ = inline_text_.data();
  std::size_t text_size_ = 0;
  std::size_t text_capacity_ = inline_bytes;
  Entry* entries_ = reinterpret_cast<Entry*>(inline_entry_bytes_.data());
  std::size_t entry_count_ = 0;
  std::size_t entry_capacity_ = inline_entries;
  std::size_t fields_at_ = 0;  ///< Where the text of the first field begins that is no pseudo one.
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
  std::size_t cookie_count_ = 0;
  std::size_t first_cookie_ = 0;
  std::size_t pseudo_header_count_ = 0;
  std::array<Place, pseudo_header_kinds> pseudo_headers_{};
  std::optional<Violation> violation_;
  std::unique_ptr<char[]> large_text_;
  std::unique_ptr<Entry[]> large_entries_;
};

}  // namespace tambour::http::detail::h2
