// Hosts: parses the lines of hosts(5), and finds addresses by name in a hash table.
#include "dns_message/hosts.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "dns_message/wire_name.h"
#include "dns_message/words.h"

namespace tambour::dns::detail {
namespace {

constexpr std::size_t name_bytes_max = 1024;
constexpr std::size_t buckets_min = 64;

/// Equal for names that differ only in case: letters differ only in the bit that is set here. Eight
/// bytes at a time, because a large file has many names.
std::uint32_t hash_of(std::string_view name) noexcept {
  constexpr std::uint64_t case_bits = 0x2020'2020'2020'2020U;
  constexpr std::uint64_t factor = 0x9e37'79b9'7f4a'7c15U;
  std::uint64_t hash = name.size();
  for (std::size_t at = 0; at < name.size(); at += sizeof hash) {
    std::uint64_t word = 0;
    std::memcpy(&word, name.data() + at, std::min(sizeof word, name.size() - at));
    hash = (hash ^ (word | case_bits)) * factor;
    hash ^= hash >> 32U;
  }
  return static_cast<std::uint32_t>(hash);
}

}  // namespace

void Hosts::reserve(std::size_t file_bytes) {
  constexpr std::size_t name_bytes = 20;
  constexpr std::size_t line_bytes = 32;
  text_.reserve(file_bytes);
  lines_.reserve(file_bytes / line_bytes);
  names_.reserve(file_bytes / name_bytes);
  rehash(std::bit_ceil(std::max(file_bytes / name_bytes, buckets_min)));
}

void Hosts::add(std::string_view lines) {
  while (!lines.empty()) add_line(take_line(lines));
}

void Hosts::add_line(std::string_view line) {
  line = line.substr(0, line.find('#'));
  const std::string_view address = take_word(line);
  if (address.empty()) return;
  std::string_view name = take_word(line);
  // As in glibc, without zones.
  if (name.empty() || lines_.size() == none || address.contains('%')) return;
  const auto parsed = IpAddress::parse(address);
  if (!parsed) return;
  lines_.push_back(*parsed);
  for (; !name.empty(); name = take_word(line)) add_name(name);
}

void Hosts::add_name(std::string_view name) {
  if (name.size() > name_bytes_max || text_.size() + name.size() >= none) return;
  if (names_.size() >= buckets_.size()) rehash(std::max(buckets_.size() * 2, buckets_min));
  const std::uint32_t hash = hash_of(name);
  std::uint32_t& bucket = buckets_[hash & (buckets_.size() - 1)];
  names_.push_back({.hash = hash,
                    .next = bucket,
                    .text = static_cast<std::uint32_t>(text_.size()),
                    .line = static_cast<std::uint32_t>(lines_.size() - 1),
                    .size = static_cast<std::uint16_t>(name.size())});
  bucket = static_cast<std::uint32_t>(names_.size() - 1);
  text_ += name;
}

void Hosts::rehash(std::size_t buckets) {
  buckets_.assign(buckets, none);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    std::uint32_t& bucket = buckets_[names_[i].hash & (buckets_.size() - 1)];
    names_[i].next = bucket;
    bucket = static_cast<std::uint32_t>(i);
  }
}

void Hosts::find(std::string_view name, std::vector<IpAddress>& into) const {
  if (buckets_.empty()) return;
  const std::size_t before = into.size();
  const std::uint32_t hash = hash_of(name);
  for (std::uint32_t i = buckets_[hash & (buckets_.size() - 1)]; i != none; i = names_[i].next) {
    const Name& current_name = names_[i];
    if (current_name.hash != hash || !equal_ignoring_case(text_of(current_name), name)) continue;
    into.push_back(lines_[current_name.line]);
  }
  // A bucket begins with its last name.
  std::reverse(into.begin() + static_cast<std::ptrdiff_t>(before), into.end());
  // A name may be on several lines with the same address.
  for (auto entry = into.begin() + static_cast<std::ptrdiff_t>(before); entry != into.end();) {
    entry = std::find(into.begin(), entry, *entry) == entry ? entry + 1 : into.erase(entry);
  }
}

std::vector<std::string> Hosts::names_of(const IpAddress& address) const {
  std::vector<std::string> found;
  const auto line = std::ranges::find(lines_, address);
  if (line == lines_.end()) return found;
  const auto number = static_cast<std::uint32_t>(line - lines_.begin());
  // Names are in the order of their lines.
  auto entry = std::ranges::lower_bound(names_, number, {}, &Name::line);
  for (; entry != names_.end() && entry->line == number; ++entry)
    found.emplace_back(text_of(*entry));
  return found;
}

}  // namespace tambour::dns::detail
