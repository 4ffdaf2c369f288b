// Calls on open files that do not wait for the disk, so that no thread or ring makes them.
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include <tambour/base/result.h>
#include <tambour/file/file.h>
#include <tambour/loop/event_loop.h>

namespace tambour::detail::files {

/// fstat(2)
[[nodiscard]] Result<struct stat> status_of(EventLoop& loop, const File& file) noexcept;

/// True if the bytes from `offset` on, at least one, are in the page cache: sendfile(2) will not
/// wait for the disk. The kernel reads ahead of what is read, so that the last byte is cached after
/// the others: only that is checked.
[[nodiscard]] bool is_cached(EventLoop& loop, const File& file, std::uint64_t offset,
                             std::uint64_t size) noexcept;

}  // namespace tambour::detail::files
