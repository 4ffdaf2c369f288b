// How much room the next read of a stream is given.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tambour::net {

/// Of the large blocks that buffers keep for their next use, header included.
inline constexpr std::size_t large_block_bytes = std::size_t{64} * 1024;

/// Who fills its room has more to say: the next read is given four times as much, up to what a
/// kernel hands over at a time. Who leaves most of it unused goes back to what is at hand: 0.
inline std::uint32_t next_read_size(std::uint32_t last, std::size_t room,
                                    std::size_t got) noexcept {
  constexpr std::size_t least = 4096;
  constexpr std::size_t most = large_block_bytes - 256;  // Which leaves room for its header.
  if (got == room) return static_cast<std::uint32_t>(std::min(most, std::max(least, room) * 4));
  return got < last / 4 ? 0 : last;
}

}  // namespace tambour::net
