// Masking of payloads: RFC 6455, section 5.3. Masking twice with the same key restores the payload.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>

#include "bytes/buffer_memory.h"
#include "http_message/ws/frame.h"

namespace tambour::http::detail::ws {

/// Writes the bytes of `from`, masked, to `to`, which has as many bytes and may be the same memory.
/// The first byte is byte `offset` of the payload.
void mask_copy(std::span<const std::byte> from, std::byte* to, MaskKey key,
               std::size_t offset) noexcept;

/// A payload of at least so many contiguous bytes is masked where it is, a shorter one while it is
/// copied: that costs less than a block that two buffers share.
inline constexpr std::size_t masked_in_place_bytes_min = 4096;
/// Bytes that another buffer shares are copied in pieces that fit into pooled blocks.
inline constexpr std::size_t copied_piece_bytes_max = std::size_t{64} * 1024;

/// Moves the first `size` bytes of `from`, of which there must be as many, masked to the end of
/// `to`. Calls `visit(bytes)` for each masked piece. Throws std::bad_alloc; a part of the payload
/// may be lost then.
template <class Visitor>
void move_masked(Buffer& from, Buffer& to, std::size_t size, MaskKey key, std::size_t offset,
                 Visitor&& visit) {
  while (size > 0) {
    std::size_t here = std::min(from.front().size(), size);
    std::span<std::byte> bytes;
    if (here >= masked_in_place_bytes_min)
      bytes = tambour::detail::BufferMemory::writable_front(from);
    if (bytes.empty()) {
      here = std::min(here, copied_piece_bytes_max);
      bytes = to.prepare(here).first(here);
      mask_copy(from.front().first(here), bytes.data(), key, offset);
      visit(std::span<const std::byte>(bytes));
      to.commit(here);
      from.consume(here);
    } else {
      bytes = bytes.first(here);
      mask_copy(bytes, bytes.data(), key, offset);
      visit(std::span<const std::byte>(bytes));
      to.append(from.take(here));
    }
    offset += here;
    size -= here;
  }
}

}  // namespace tambour::http::detail::ws
