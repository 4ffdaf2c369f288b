// Something that is done with a file: opened, read, written.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include <tambour/operation.h>

namespace tambour {

/// Completes exactly once for each submit, with what the system call of its kind returns in
/// `result`, or an errno value, negated. What `data` and `path` point to is the kernel's until
/// then.
struct FileOperation : Operation {
  FileOperation(OperationKind what, Run run) noexcept : Operation(what, run) {}

  void* data = nullptr;
  std::size_t size = 0;  ///< Of which one call takes what fits into `result`.
  std::uint64_t offset = 0;
  const char* path = nullptr;
  int flags = 0;
  mode_t permissions = 0;

  // The backend's.
  bool handed_over = false;
  bool cancel_requested = false;
  bool doubted = false;      ///< Its completion may be lost.
  unsigned char misses = 0;  ///< How often the kernel, when asked, knew nothing of it.
  std::uint64_t probe = 0;   ///< The latest such question; 0: none.
};

}  // namespace tambour
