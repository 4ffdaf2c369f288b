// Lists of fields.
#include <tambour/http/fields.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "bytes/short_copy.h"
#include "http_message/characters.h"
#include "http_message/failure.h"
#include "http_message/field_hash.h"
#include "http_message/line_scan.h"

namespace tambour::http {
namespace {

constexpr std::size_t name_size_max = std::numeric_limits<std::uint16_t>::max();
constexpr std::size_t colon_size = 2;  ///< Of ": ".
constexpr std::size_t line_end_size = 2;
constexpr std::size_t separators_size = colon_size + line_end_size;

/// Why a field cannot be added.
[[gnu::cold, gnu::noinline]] std::unexpected<Error> refusal_of(std::string_view name,
                                                               std::string_view value) noexcept {
  if (!is_field_name(name)) return failure(ErrorCode::bad_field_name);
  return failure(is_field_value(value) ? ErrorCode::fields_too_large : ErrorCode::bad_field_value);
}

/// Returns the end of the line.
inline char* write_line(char* to, std::string_view name, std::string_view value) noexcept {
  to = detail::bytes::copy_short(to, name);
  std::memcpy(to, ": ", colon_size);
  to = detail::bytes::copy_short(to + colon_size, value);
  std::memcpy(to, "\r\n", line_end_size);
  return to + line_end_size;
}

/// Calls `function` for each element of a list until it returns true; returns whether it did.
template <class Function>
bool any_element(std::string_view list, Function function) {
  while (true) {
    const std::size_t comma = list.find(',');
    if (function(trim(list.substr(0, comma)))) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace

bool Fields::has_name(const Entry& entry, std::string_view name,
                      std::uint32_t hash) const noexcept {
  return entry.hash == hash && equal_ignoring_case(field_of(entry).name, name);
}

std::size_t Fields::find(std::string_view name, std::size_t from) const noexcept {
  return find(name, hash_of_name(name), from);
}

std::size_t Fields::find(std::string_view name, std::uint32_t hash,
                         std::size_t from) const noexcept {
  if ((names_ & detail::mark_of(hash)) == 0) return size();
  const auto found =
      std::find_if(entries_.begin() + static_cast<std::ptrdiff_t>(std::min(from, size())),
                   entries_.end(), [&](const Entry& entry) { return has_name(entry, name, hash); });
  return static_cast<std::size_t>(found - entries_.begin());
}

std::optional<std::string_view> Fields::get(std::string_view name) const noexcept {
  const std::size_t index = find(name);
  if (index == size()) return std::nullopt;
  return field_of(entries_[index]).value;
}

std::size_t Fields::count(std::string_view name) const noexcept {
  std::size_t found = 0;
  for (std::size_t i = find(name); i < size(); i = find(name, i + 1)) ++found;
  return found;
}

std::string Fields::joined(std::string_view name) const {
  std::string list;
  bool is_first = true;
  for (std::size_t i = find(name); i < size(); i = find(name, i + 1)) {
    if (!is_first) list += ", ";
    is_first = false;
    list += (*this)[i].value;
  }
  return list;
}

bool Fields::has_token(std::string_view name, std::string_view token) const noexcept {
  const auto is_token = [token](std::string_view element) {
    return equal_ignoring_case(element, token);
  };
  for (std::size_t i = find(name); i < size(); i = find(name, i + 1)) {
    if (any_element((*this)[i].value, is_token)) return true;
  }
  return false;
}

/// Appends a line to the text, not to the list, and returns where. The arguments may be part of the
/// text. Behind the line, the memory of a block can be read: see is_valid_line().
[[gnu::always_inline]] inline std::uint32_t Fields::append(std::string_view name,
                                                           std::string_view value) {
  const std::size_t at = text_.size();
  const std::size_t end = at + name.size() + value.size() + separators_size;
  if (end + detail::CharacterBlock::size > text_.capacity()) return append_to_new_text(name, value);
  text_.resize_and_overwrite(end, [&](char* text, std::size_t /*size*/) {
    write_line(text + at, name, value);
    return end;
  });
  return static_cast<std::uint32_t>(at);
}

/// Copies the fields that are still in use to a larger text.
[[gnu::noinline]] std::uint32_t Fields::append_to_new_text(std::string_view name,
                                                           std::string_view value) {
  constexpr std::size_t capacity_min = 256;
  const std::size_t added = name.size() + value.size() + separators_size;
  const std::size_t lines = bytes_ + separators_size * entries_.size();
  std::string text;
  text.reserve(std::max(capacity_min, 2 * (lines + added) + detail::CharacterBlock::size));
  text.resize_and_overwrite(lines + added, [&](char* begin, std::size_t /*size*/) {
    char* to = begin;
    for (Entry& entry : entries_) {
      const Field field = field_of(entry);
      entry.at = static_cast<std::uint32_t>(to - begin);
      entry.value_gap = colon_size;
      to = write_line(to, field.name, field.value);
    }
    write_line(to, name, value);
    return lines + added;
  });
  text_ = std::move(text);
  has_lines_ = true;
  return static_cast<std::uint32_t>(lines);
}

/// Of a line that was appended, whose end stops each search.
[[gnu::always_inline]] inline bool Fields::is_valid_line(const char* name, std::size_t name_size,
                                                         std::size_t value_size) noexcept {
  const char* const value = name + name_size + colon_size;
  const char* const readable_end =
      value + value_size + line_end_size + detail::CharacterBlock::size;
  return name_size > 0 && detail::end_of_name(name, readable_end) == name + name_size &&
         detail::end_of_value(value, readable_end) == value + value_size;
}

Result<> Fields::add(std::string_view name, std::string_view value) {
  return add(name, value, hash_of_name(name));
}

[[gnu::always_inline]] inline Result<> Fields::add(std::string_view name, std::string_view value,
                                                   std::uint32_t hash) {
  value = trim(value);
  const std::size_t added = name.size() + value.size();
  if (name.size() > name_size_max || added > bytes_max - bytes_) [[unlikely]]
    return refusal_of(name, value);
  if (entries_.size() == entries_.capacity()) [[unlikely]]
    entries_.reserve(std::max<std::size_t>(8, 2 * entries_.size()));
  const std::uint32_t at = append(name, value);
  const char* const line = text_.data() + at;
  if (!is_valid_line(line, name.size(), value.size())) [[unlikely]] {
    // The arguments may have been a part of the old text.
    const std::unexpected<Error> refusal =
        refusal_of({line, name.size()}, {line + name.size() + colon_size, value.size()});
    text_.resize(at);
    return refusal;
  }
  entries_.push_back({.at = at,
                      .hash = hash,
                      .value_size = static_cast<std::uint32_t>(value.size()),
                      .name_size = static_cast<std::uint16_t>(name.size()),
                      .value_gap = colon_size});
  names_ |= detail::mark_of(hash);
  bytes_ += static_cast<std::uint32_t>(added);
  return {};
}

Result<> Fields::set(std::string_view name, std::string_view value) {
  const std::uint32_t hash = hash_of_name(name);
  if ((names_ & detail::mark_of(hash)) == 0) return add(name, value, hash);
  const std::size_t first = find(name, hash, 0);
  const bool is_new = first == size();
  const auto added = add(name, value, hash);
  if (!added || is_new) return added;
  const Entry entry = entries_.back();
  entries_.pop_back();
  // add() may have replaced the text that `name` refers to.
  drop_named({text_.data() + entry.at, entry.name_size}, first);
  entries_.insert(entries_.begin() + static_cast<std::ptrdiff_t>(first), entry);
  return {};
}

std::size_t Fields::remove(std::string_view name) noexcept { return drop_named(name, 0); }

std::size_t Fields::drop_named(std::string_view name, std::size_t from) noexcept {
  const std::uint32_t hash = hash_of_name(name);
  const auto dropped = std::remove_if(entries_.begin() + static_cast<std::ptrdiff_t>(from),
                                      entries_.end(), [&](Entry& entry) {
                                        if (!has_name(entry, name, hash)) return false;
                                        bytes_ -= entry.name_size + entry.value_size;
                                        has_lines_ = false;
                                        return true;
                                      });
  const auto count = static_cast<std::size_t>(entries_.end() - dropped);
  entries_.erase(dropped, entries_.end());
  return count;
}

void Fields::clear() noexcept {
  text_.clear();
  entries_.clear();
  names_ = 0;
  bytes_ = 0;
  has_lines_ = true;
}

bool Fields::operator==(const Fields& other) const noexcept {
  return std::ranges::equal(*this, other, [](const Field& a, const Field& b) {
    return equal_ignoring_case(a.name, b.name) && a.value == b.value;
  });
}

}  // namespace tambour::http
