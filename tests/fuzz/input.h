// A byte string as a source of decisions, from a fuzzer or from a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tambour::fuzz {

/// After the last byte it returns zeros, which stand for the smallest choice everywhere.
class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) noexcept : bytes_(bytes) {}

  [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }

  std::uint8_t byte() noexcept {
    if (bytes_.empty()) return 0;
    const std::uint8_t first = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return first;
  }

  /// Returns a number from 0 to `end` - 1. `end` is from 1 to 256.
  std::size_t below(std::size_t end) noexcept { return byte() % end; }
  bool flag() noexcept { return (byte() & 1) != 0; }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace tambour::fuzz
