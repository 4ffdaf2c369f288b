// Write access to the bytes of a buffer, for codecs that decode in place, and the end of what the
// pool of buffers keeps. Internal.
#pragma once

#include <cstddef>
#include <span>

#include <tambour/bytes/buffer.h>

namespace tambour::detail {

class BufferMemory {
 public:
  /// The memory of buffer.front() if the buffer is the only one that refers to it; empty if another
  /// buffer or the owner of append_shared() could see a change, or if the buffer is empty.
  [[nodiscard]] static std::span<std::byte> writable_front(Buffer& buffer) noexcept;
  /// Frees the blocks that this thread keeps for its next buffers.
  static void free_kept_blocks() noexcept;
};

}  // namespace tambour::detail
