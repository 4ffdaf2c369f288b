// Bytes in memory that are also a file, so that sendfile(2) sends them without a copy.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <tambour/base/unique_fd.h>
#include <tambour/bytes/buffer.h>
#include <tambour/loop/event_loop.h>

namespace tambour::detail::files {

/// A file without a name (memfd_create(2)) and its pages, mapped. They never change: packets on
/// their way refer to them. Destroyed by the thread that uses it last.
class MemoryFile {
 public:
  /// A file with the contents of `buffer`, which must not be empty. Null if the loop is simulated,
  /// and if the kernel does not make one: a limit was reached, or a filter denies the call. Throws
  /// std::bad_alloc.
  [[nodiscard]] static std::shared_ptr<MemoryFile> copy_of(EventLoop& loop, const Buffer& buffer);

  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();

  /// A buffer with the contents, which a socket gets from the file. It keeps `file`. Throws
  /// std::bad_alloc.
  [[nodiscard]] static Buffer contents_of(const std::shared_ptr<MemoryFile>& file);

  /// In the child after fork(2) that has lost the descriptors of its parent: the number is not
  /// closed. Buffers that were made before must not be sent.
  void disown() noexcept { static_cast<void>(fd_.release()); }

 private:
  MemoryFile() = default;
  [[nodiscard]] bool open(std::size_t size) noexcept;

  UniqueFd fd_;
  std::span<std::byte> bytes_;
};

}  // namespace tambour::detail::files
