// The compression of names: a small table of the names that the message contains already.
#include "dns_message/writer.h"

namespace tambour::dns::detail {
namespace {

constexpr std::uint16_t pointer_bits = 0xc000;
constexpr std::size_t offset_max = 0x3fff;

std::uint32_t mix(std::uint32_t hash, std::string_view label) noexcept {
  for (const char byte : label) hash = (hash ^ static_cast<std::uint8_t>(byte)) * 16777619U;
  return hash ^ hash >> 15U;
}

}  // namespace

bool Writer::is_at(std::size_t at, std::string_view wire) const noexcept {
  std::size_t matched = 0;
  std::size_t limit = at + 1;
  while (at < out_.size()) {
    const auto length = static_cast<std::uint8_t>(out_[at]);
    if (length > dns::Name::label_bytes_max) {
      // What was truncated may have left an offset of something else than a name.
      if (at + 2 > out_.size()) return false;
      const std::size_t target = (length & 0x3fU) << 8U | static_cast<std::uint8_t>(out_[at + 1]);
      if (target >= limit) return false;
      at = target;
      limit = target;
      continue;
    }
    const std::size_t size = length + 1U;
    if (at + size > out_.size() || matched + size > wire.size()) return false;
    if (wire.substr(matched, size) != std::string_view(out_).substr(at, size)) return false;
    matched += size;
    at += size;
    if (length == 0) return matched == wire.size();
  }
  return false;
}

void Writer::compressed_name(std::string_view wire) {
  if (!offsets_) offsets_.emplace();
  auto& offsets = *offsets_;
  // The hash of each suffix, from the shortest.
  std::array<std::uint8_t, dns::Name::bytes_max / 2> labels;
  std::size_t count = 0;
  for (std::size_t at = 0; wire[at] != 0; at += static_cast<std::uint8_t>(wire[at]) + 1U)
    labels[count++] = static_cast<std::uint8_t>(at);
  std::array<std::uint32_t, dns::Name::bytes_max / 2> hashes;
  std::uint32_t hash = 2166136261U;
  for (std::size_t i = count; i-- != 0;) {
    const std::size_t size = static_cast<std::uint8_t>(wire[labels[i]]) + 1U;
    hashes[i] = hash = mix(hash, wire.substr(labels[i], size));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view suffix = wire.substr(labels[i]);
    std::size_t slot = hashes[i] % slots;
    std::size_t probes = 0;
    for (; probes < probes_max && offsets[slot] != 0; ++probes, slot = (slot + 1) % slots) {
      if (!is_at(offsets[slot], suffix)) continue;
      return u16(static_cast<std::uint16_t>(pointer_bits | offsets[slot]));
    }
    if (probes < probes_max && size() <= offset_max)
      offsets[slot] = static_cast<std::uint16_t>(size());
    text(suffix.substr(0, static_cast<std::uint8_t>(suffix[0]) + 1U));
  }
  u8(0);
}

}  // namespace tambour::dns::detail
