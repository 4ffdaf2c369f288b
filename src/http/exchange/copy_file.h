// Sends files by reading them.
#pragma once

#include <cstdint>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/file/file.h>
#include <tambour/http/response.h>
#include <tambour/task/task.h>

namespace tambour::http {

/// A part of a file that is in memory at a time.
inline constexpr std::uint64_t copied_bytes = std::uint64_t{64} * 1024;

/// Reads `size` bytes from `offset` on, at most copied_bytes at a time, and writes them to a
/// response. Fails like File::read_at() and Response::write(), and with StreamError::truncated if
/// the file ends earlier.
[[nodiscard]] Task<Result<>> copy_file(const File& file, std::uint64_t offset, std::uint64_t size,
                                       detail::ResponseSink& to);

}  // namespace tambour::http
