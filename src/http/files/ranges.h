// The Range field: RFC 9110, section 14.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <tambour/detail/namespaces.h>

namespace tambour::http {

struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  ///< The index after the last byte.

  [[nodiscard]] std::uint64_t size() const noexcept { return end - begin; }
  bool operator==(const ByteRange&) const = default;
};

inline constexpr std::size_t ranges_max = 16;

/// The ranges of a representation of `size` bytes that "bytes=..." asks for; empty if none of them
/// has a byte, which is answered with 416. No value if the field is malformed, of another unit, or
/// asks for more than `ranges_max` ranges or more bytes than there are, and if there are no bytes:
/// then it is ignored.
[[nodiscard]] std::optional<std::vector<ByteRange>> parse_ranges(std::string_view value,
                                                                 std::uint64_t size);

}  // namespace tambour::http
