// Write access to the bytes of a buffer, for codecs that decode in place or encode what is sent at
// once, bytes that the kernel has in a file, and the end of what the pool of buffers keeps.
// Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <tambour/bytes/buffer.h>

namespace tambour::detail {

class BufferMemory {
 public:
  /// The memory of buffer.front() if the buffer is the only one that refers to it; empty if another
  /// buffer or the owner of append_shared() could see a change, or if the buffer is empty.
  [[nodiscard]] static std::span<std::byte> writable_front(Buffer& buffer) noexcept;
  /// Buffer::commit() of at least 32 bytes that are sent soon: they stay in the block that
  /// prepare() has returned. Otherwise a short message moves to a small block, for a program that
  /// keeps it.
  static void commit_in_place(Buffer& buffer, std::size_t size) noexcept;
  /// Appends `size` bytes, at least one, and returns their memory, which the caller writes at once.
  /// Throws like Buffer::append().
  [[nodiscard]] static std::span<std::byte> extend(Buffer& buffer, std::size_t size) {
    return buffer.extend(size);
  }
  /// Makes a buffer of bytes that are the contents of the file `fd`, like append_shared(). `owner`
  /// keeps the file open, which must not change.
  [[nodiscard]] static Buffer make_of_file(std::span<const std::byte> bytes, int fd,
                                           std::shared_ptr<const void> owner);
  /// A piece of a buffer that is a part of a file.
  struct FilePart {
    int fd = -1;  ///< -1: there is none.
    std::size_t bytes_before = 0;
    std::uint64_t offset = 0;
    std::size_t size = 0;
  };
  /// The first one of at least `size_min` bytes among the first `count_max` pieces.
  [[nodiscard]] static FilePart find_file_part(const Buffer& buffer, std::size_t size_min,
                                               std::size_t count_max) noexcept;
  /// Frees the blocks that this thread keeps for its next buffers.
  static void free_kept_blocks() noexcept;
};

}  // namespace tambour::detail
