// A question as a key: of the cache, and of the queries in flight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tambour/detail/namespaces.h>
#include <tambour/dns/record.h>

#include "bytes/siphash.h"
#include "dns_message/wire_name.h"

namespace tambour::dns::detail {

/// The name in wire form and lower case, and two bytes of the type.
class QuestionKey {
 public:
  QuestionKey(std::string_view wire_name, dns::Type type) noexcept : size_(wire_name.size()) {
    for (std::size_t i = 0; i < size_; ++i) bytes_[i] = to_lower(wire_name[i]);
    set_type(type);
  }

  [[nodiscard]] std::string_view view() const noexcept { return {bytes_.data(), size_ + 2}; }
  [[nodiscard]] std::string_view name() const noexcept { return {bytes_.data(), size_}; }

  void set_type(dns::Type type) noexcept {
    bytes_[size_] = static_cast<char>(static_cast<std::uint16_t>(type) >> 8U);
    bytes_[size_ + 1] = static_cast<char>(type);
  }

 private:
  std::array<char, dns::Name::bytes_max + 2> bytes_;
  std::size_t size_;
};

[[nodiscard]] inline std::string_view name_of_key(std::string_view key) noexcept {
  return key.substr(0, key.size() - 2);
}
[[nodiscard]] inline dns::Type type_of_key(std::string_view key) noexcept {
  return dns::Type(static_cast<std::uint8_t>(key[key.size() - 2]) << 8U |
                   static_cast<std::uint8_t>(key.back()));
}

/// For maps that are searched with a view. The key is random: peers choose many of the names that a
/// program looks up, and must not find some with the same hash.
struct KeyHash {
  using is_transparent = void;  // NOLINT(readability-identifier-naming): the standard's own name.

  bytes::SipKey key;
  /// Not noexcept, so that libstdc++ stores the hash codes: comparing codes first avoids most
  /// accesses to other keys, and removing a node needs none.
  // NOLINTNEXTLINE(bugprone-exception-escape)
  std::size_t operator()(std::string_view text) const { return bytes::siphash(key, text); }
};

}  // namespace tambour::dns::detail
