// What reads and writes have in common, whether the task or a request has the operation.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <tambour/detail/file_operation.h>

#include "files/file_request.h"

namespace tambour::detail::files {

/// The greatest offset of a system call.
inline constexpr auto offset_max = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());

/// Returns 0, or the negated errno value of a read or write that cannot begin. `appends`: the file
/// must have been opened with O_APPEND.
[[nodiscard]] inline int check_transfer(const FileOperation& op, const OpenFile* file,
                                        bool appends) noexcept {
  if (file == nullptr) return -EBADF;
  // Checked here for all backends: pread(2) and pwrite(2) reject an offset that is negative as
  // off_t, but io_uring interprets -1 as the file's current position.
  if (op.offset > offset_max) return -EINVAL;
  // With O_APPEND, pwrite(2) ignores the offset; without it, there is none to append at.
  if (op.kind == OperationKind::file_write && file->appends() != appends) return -EBADF;
  return 0;
}

/// With O_DIRECT, if the end of the file is not aligned, the rest of a read is not either: EINVAL
/// then means end of file. `done`: the number of bytes that were read before.
[[nodiscard]] inline bool is_end_of_direct_read(const FileOperation& op, const OpenFile& file,
                                                std::int64_t answer, std::int64_t done) noexcept {
  return answer == -EINVAL && done > 0 && op.kind == OperationKind::file_read && file.is_direct();
}

/// For a call that has transferred `count` bytes and after which `op.size` bytes are left: returns
/// true if another call must follow.
[[nodiscard]] inline bool must_continue(const FileOperation& op, std::size_t count,
                                        std::int64_t& outcome) noexcept {
  if (op.size == 0) return false;
  if (count != 0) return true;
  // A read of 0 bytes is the end of the file. No known file system writes 0 bytes without an error,
  // so that is reported as EIO.
  if (op.kind == OperationKind::file_write) outcome = -EIO;
  return false;
}

}  // namespace tambour::detail::files
