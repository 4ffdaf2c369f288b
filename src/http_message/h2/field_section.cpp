// Checks and stores decoded fields.
#include "http_message/h2/field_section.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "bytes/short_copy.h"
#include "http_message/characters.h"

namespace tambour::http::detail::h2 {
namespace {

constexpr std::string_view cookie_name = "cookie";
constexpr std::string_view cookie_separator = "; ";

bool is_upper_case(char c) noexcept { return c >= 'A' && c <= 'Z'; }
bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

}  // namespace

NameKind kind_of_name(std::string_view name, std::uint32_t hash) noexcept {
  if (const KnownName* known = find_known_name(name, hash); known && known->name == name)
    return known->kind;
  if (name.starts_with(':')) return NameKind::unknown_pseudo_header;
  if (name.empty() || !all_are(name, token_char)) return NameKind::malformed;
  return std::ranges::any_of(name, is_upper_case) ? NameKind::upper_case : NameKind::regular;
}

bool is_valid_value(std::string_view value) noexcept {
  if (value.empty()) return true;
  return !is_blank(value.front()) && !is_blank(value.back()) && is_field_value(value);
}

void FieldSection::grow_text(std::size_t used, std::size_t size) {
  const std::size_t capacity = std::max(2 * text_capacity_, text_size_ + size);
  auto text = std::make_unique_for_overwrite<char[]>(capacity);
  std::memcpy(text.get(), text_, text_size_ + used);
  large_text_ = std::move(text);
  text_ = large_text_.get();
  text_capacity_ = capacity;
}

void FieldSection::grow_entries() {
  const std::size_t capacity = 2 * entry_capacity_;
  auto entries = std::make_unique_for_overwrite<Entry[]>(capacity);
  std::copy_n(entries_, entry_count_, entries.get());
  large_entries_ = std::move(entries);
  entries_ = large_entries_.get();
  entry_capacity_ = capacity;
}

void FieldSection::add(std::size_t name_size, std::size_t value_size, std::uint32_t hash,
                       FieldTraits traits) {
  constexpr std::size_t name_size_max = std::numeric_limits<std::uint16_t>::max();
  const std::size_t end = text_size_ + name_size + value_size;
  if (name_size > name_size_max || end > Fields::bytes_max) [[unlikely]] {
    is_too_large_ = true;
    return;
  }
  if (kind_ == SectionKind::unchecked) traits = {};
  if (traits.has_bad_value) [[unlikely]] {
    violation_ = Violation::bad_field_value;
  } else if (is_pseudo_header(traits.kind)) {
    violation_ = add_pseudo_header({.at = static_cast<std::uint32_t>(text_size_ + name_size),
                                    .size = static_cast<std::uint32_t>(value_size),
                                    .is_present = true},
                                   traits.kind);
    has_valid_authority_ |= traits.is_valid_authority;
  } else {
    const Entry entry = {.at = static_cast<std::uint32_t>(text_size_),
                         .hash = hash,
                         .value_size = static_cast<std::uint32_t>(value_size),
                         .name_size = static_cast<std::uint16_t>(name_size)};
    if (is_special(traits.kind)) violation_ = check_special(entry, traits.kind);
    add_entry(entry);
  }
  text_size_ = end;
}

void FieldSection::add(const StaticEntry& entry) {
  if (!count(entry.text.size())) return;
  if (is_pseudo_header(entry.kind) && kind_ == SectionKind::message) {
    violation_ = add_pseudo_header({.static_text = entry.value().data(),
                                    .size = static_cast<std::uint32_t>(entry.value().size()),
                                    .is_present = true},
                                   entry.kind);
    return;
  }
  bytes::copy_short(reserve(0, entry.text.size()), entry.text);
  add(entry.name_size, entry.value().size(), entry.hash, {.kind = entry.kind});
}

std::optional<Violation> FieldSection::add_pseudo_header(const Place& added, NameKind kind) {
  if (kind == NameKind::unknown_pseudo_header) return Violation::unknown_pseudo_header;
  if (entry_count_ > 0) return Violation::pseudo_header_after_field;
  Place& place = pseudo_headers_[index_of(kind)];
  if (place.is_present) return Violation::repeated_pseudo_header;
  place = added;
  ++pseudo_header_count_;
  return std::nullopt;
}

std::optional<Violation> FieldSection::check_special(const Entry& entry, NameKind kind) noexcept {
  switch (kind) {
    case NameKind::malformed:
      return Violation::bad_field_name;
    case NameKind::upper_case:
      return Violation::upper_case_field_name;
    case NameKind::connection_specific:
      return Violation::connection_specific_field;
    case NameKind::te:
      if (!equal_ignoring_case({text_ + entry.at + entry.name_size, entry.value_size}, "trailers"))
        return Violation::bad_te;
      break;
    default:
      if (cookie_count_++ == 0) first_cookie_ = entry_count_;
      break;
  }
  return std::nullopt;
}

void FieldSection::add_entry(const Entry& entry) {
  if (entry_count_ == entry_capacity_) grow_entries();
  if (entry_count_ == 0) fields_at_ = text_size_;
  Entry& added = entries_[entry_count_++];
  added = entry;
  added.at -= static_cast<std::uint32_t>(fields_at_);
}

void FieldSection::join_cookies() {
  const auto is_cookie = [this](const Entry& entry) {
    return std::string_view(text_ + fields_at_ + entry.at, entry.name_size) == cookie_name;
  };
  std::size_t size = cookie_name.size();
  for (std::size_t i = first_cookie_; i < entry_count_; ++i) {
    if (is_cookie(entries_[i])) size += entries_[i].value_size + cookie_separator.size();
  }
  char* to = reserve(0, size);
  Entry joined = entries_[first_cookie_];
  joined.at = static_cast<std::uint32_t>(text_size_ - fields_at_);
  const auto append = [&](std::string_view text) {
    to = std::copy(text.begin(), text.end(), to);
    text_size_ += text.size();
  };
  append(cookie_name);
  std::size_t kept = first_cookie_ + 1;
  for (std::size_t i = first_cookie_; i < entry_count_; ++i) {
    const Entry entry = entries_[i];
    if (is_cookie(entry)) {
      if (i != first_cookie_) append(cookie_separator);
      append({text_ + fields_at_ + entry.at + entry.name_size, entry.value_size});
    } else {
      entries_[kept++] = entry;
    }
  }
  joined.value_size = static_cast<std::uint32_t>(text_size_ - fields_at_ - joined.at) -
                      static_cast<std::uint32_t>(cookie_name.size());
  entries_[first_cookie_] = joined;
  entry_count_ = kept;
}

void FieldSection::move_fields_to(Fields& fields) {
  if (cookie_count_ > 1) {
    join_cookies();
    cookie_count_ = 1;
  }
  if (entry_count_ == 0) fields_at_ = text_size_;
  detail::FieldWriter::assign(fields, {text_ + fields_at_, text_size_ - fields_at_},
                              {entries_, entry_count_});
}

}  // namespace tambour::http::detail::h2
