// An operation on a file, such as open, read or write. Not part of the public interface: it is
// visible only because an awaitable embeds it and must have a known size.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include <tambour/detail/intrusive_list.h>
#include <tambour/detail/operation.h>

namespace tambour::detail::backend {
class RingFiles;
}

#pragma GCC visibility push(default)

namespace tambour::detail {

/// Completes exactly once per submit(). `result` is what the corresponding system call returns, or
/// a negated errno value. Until the operation completes, the kernel uses the memory at `data` and
/// `path`.
struct FileOperation : Operation, ListHook<backend::RingFiles> {
  /// The operation's place in the lists of an io_uring.
  using InRing = ListHook<backend::RingFiles>;

  FileOperation(OperationKind operation_kind, Run run) noexcept : Operation(operation_kind, run) {}

  void* data = nullptr;
  std::size_t size = 0;  ///< One call transfers at most what fits into `result`.
  std::uint64_t offset = 0;
  const char* path = nullptr;
  const char* second_path = nullptr;  ///< What `path` is renamed to, linked from, or points to.
  int flags = 0;
  mode_t permissions = 0;

  // For use by the backend.
  bool handed_over = false;
  bool cancel_requested = false;
  bool unverified = false;   ///< Its completion may be lost.
  unsigned char misses = 0;  ///< The number of probes that did not find it in the kernel.
  std::uint64_t probe = 0;   ///< The number of the latest probe; 0: none.
};

}  // namespace tambour::detail

#pragma GCC visibility pop
