// Lists of fields.
#include <tambour/http/fields.h>

#include <algorithm>
#include <limits>

#include "bytes/short_copy.h"
#include "http_message/characters.h"
#include "http_message/failure.h"
#include "http_message/field_hash.h"

namespace tambour::http {
namespace {

constexpr std::size_t name_size_max = std::numeric_limits<std::uint16_t>::max();

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

/// Appends to the text, not to the list, and returns where. When the text has to grow, the names
/// and values that are still in use are copied to a new one. The arguments may be part of the old
/// text.
[[gnu::always_inline]] inline std::uint32_t Fields::append(std::string_view name,
                                                           std::string_view value) {
  const std::size_t added = name.size() + value.size();
  if (added > text_.capacity() - text_.size()) {
    std::string text;
    text.reserve(std::max<std::size_t>(256, 2 * (bytes_ + added)));
    for (Entry& current_entry : entries_) {
      const Field field = field_of(current_entry);
      current_entry.at = static_cast<std::uint32_t>(text.size());
      current_entry.value_gap = 0;
      text.append(field.name).append(field.value);
    }
    const auto at = static_cast<std::uint32_t>(text.size());
    text.append(name).append(value);
    text_ = std::move(text);
    return at;
  }
  const std::size_t at = text_.size();
  text_.resize_and_overwrite(at + added, [&](char* text, std::size_t size) {
    detail::bytes::copy_short(detail::bytes::copy_short(text + at, name), value);
    return size;
  });
  return static_cast<std::uint32_t>(at);
}

Result<> Fields::add(std::string_view name, std::string_view value) {
  return add(name, value, hash_of_name(name));
}

Result<> Fields::add(std::string_view name, std::string_view value, std::uint32_t hash) {
  if (!is_field_name(name)) return failure(ErrorCode::bad_field_name);
  if (!is_field_value(value)) return failure(ErrorCode::bad_field_value);
  value = trim(value);
  const std::size_t added = name.size() + value.size();
  if (name.size() > name_size_max || added > bytes_max - bytes_)
    return failure(ErrorCode::fields_too_large);
  if (entries_.size() == entries_.capacity())
    entries_.reserve(std::max<std::size_t>(8, 2 * entries_.size()));
  entries_.push_back({.at = append(name, value),
                      .hash = hash,
                      .value_size = static_cast<std::uint32_t>(value.size()),
                      .name_size = static_cast<std::uint16_t>(name.size())});
  bytes_ += added;
  return {};
}

Result<> Fields::set(std::string_view name, std::string_view value) {
  const std::uint32_t hash = hash_of_name(name);
  if (entries_.empty()) return add(name, value, hash);
  const std::size_t first = find(name, hash, 0);
  const auto added = add(name, value, hash);
  if (!added || first == size() - 1) return added;
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
                                        return true;
                                      });
  const auto count = static_cast<std::size_t>(entries_.end() - dropped);
  entries_.erase(dropped, entries_.end());
  return count;
}

void Fields::clear() noexcept {
  text_.clear();
  entries_.clear();
  bytes_ = 0;
}

bool Fields::operator==(const Fields& other) const noexcept {
  return std::ranges::equal(*this, other, [](const Field& a, const Field& b) {
    return equal_ignoring_case(a.name, b.name) && a.value == b.value;
  });
}

}  // namespace tambour::http
