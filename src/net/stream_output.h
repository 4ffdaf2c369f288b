// Writing to a stream without waiting.
#pragma once

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/net/stream.h>

namespace tambour::detail::net {

struct StreamOutput {
  /// Writes what the kernel accepts at once, and removes it from the front of `from`. Returns true
  /// if that was all, false if a task has to wait for the rest: also if the loop has exhausted its
  /// I/O budget, and always over TLS. Fails like Stream::write(Buffer&). No task may be writing.
  [[nodiscard]] static Result<bool> write_now(Stream& stream, Buffer& from) noexcept;
};

}  // namespace tambour::detail::net
