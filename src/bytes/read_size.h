// Chooses the size of the buffer for the next read from a stream.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tambour::detail::bytes {

/// Capacities of the pooled blocks of Buffer, without the block header. The two smaller ones match
/// common write sizes of programs, so that one read receives such a write; the largest matches what
/// the kernel returns from one read when much data is available.
inline constexpr std::size_t small_block_bytes = 4096;
inline constexpr std::size_t large_block_bytes = std::size_t{64} * 1024;
inline constexpr std::size_t huge_block_bytes = std::size_t{256} * 1024;

/// The capacity of the block of a short message.
inline constexpr std::size_t tiny_block_bytes = 128;

/// A piece of at most this size is copied to the end of a buffer rather than linked. Copying it
/// costs no more than another element of the vector of sendmsg(2), and a linked one could be in a
/// block of many times its size.
inline constexpr std::size_t copied_bytes_max = 1024;

/// Returns the size of the next read; 0: the space that the current block has left. If a read fills
/// its block, the next read gets a larger one. If a read is small, the size decreases gradually,
/// because messages that take two reads have small ends.
inline std::uint32_t next_read_size(std::uint32_t last, std::size_t room,
                                    std::size_t got) noexcept {
  const auto needed = [&]() -> std::size_t {
    if (got == room) return room < large_block_bytes ? large_block_bytes : huge_block_bytes;
    if (got > large_block_bytes) return huge_block_bytes;
    return got > small_block_bytes ? large_block_bytes : 0;
  }();
  const std::size_t less = last - last / 8;
  if (less < large_block_bytes / 4) return static_cast<std::uint32_t>(needed);
  return static_cast<std::uint32_t>(std::max(needed, less));
}

}  // namespace tambour::detail::bytes
