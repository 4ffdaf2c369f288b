// How much room the next read of a stream is given.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tambour::net {

/// What the large blocks hold that buffers keep for their next use: as much as many a program
/// writes at a time, and then none of it needs a second read.
inline constexpr std::size_t large_room_bytes = std::size_t{64} * 1024;

/// Who fills its room has more to say: the next read is given four times as much, up to what a
/// kernel hands over at a time. Who leaves most of it unused goes back to what is at hand: 0.
inline std::uint32_t next_read_size(std::uint32_t last, std::size_t room,
                                    std::size_t got) noexcept {
  constexpr std::size_t least = 4096;
  if (got == room)
    return static_cast<std::uint32_t>(std::min(large_room_bytes, std::max(least, room) * 4));
  return got < last / 4 ? 0 : last;
}

}  // namespace tambour::net
