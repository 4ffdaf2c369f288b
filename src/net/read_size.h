// How much room the next read of a stream is given.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tambour::net {

/// What the blocks hold that buffers keep for their next use, their headers not counted: as much as
/// many a program writes at a time, so that none of it needs a second read; and the last one as
/// much as a kernel hands over, where there is much.
inline constexpr std::size_t small_room_bytes = 4096;
inline constexpr std::size_t large_room_bytes = std::size_t{64} * 1024;
inline constexpr std::size_t huge_room_bytes = std::size_t{256} * 1024;

/// What the block of a short message holds that was copied out of one of the blocks above.
inline constexpr std::size_t tiny_room_bytes = 128;

/// Whoever has more to say than a block holds is given a larger one for the next read; who has not,
/// goes back to what is at hand, 0, but by and by: messages of two reads have small ends.
inline std::uint32_t next_read_size(std::uint32_t last, std::size_t room,
                                    std::size_t got) noexcept {
  const auto needed = [&]() -> std::size_t {
    if (got == room) return room < large_room_bytes ? large_room_bytes : huge_room_bytes;
    if (got > large_room_bytes) return huge_room_bytes;
    return got > small_room_bytes ? large_room_bytes : 0;
  }();
  const std::size_t less = last - last / 8;
  if (less < large_room_bytes / 4) return static_cast<std::uint32_t>(needed);
  return static_cast<std::uint32_t>(std::max(needed, less));
}

}  // namespace tambour::net
