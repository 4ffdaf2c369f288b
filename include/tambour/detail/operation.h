// The base of the operations that a backend completes. Not part of the public interface: it is
// visible only because a handle embeds it and must have a known size.
#pragma once

#include <cstdint>
#include <source_location>

#include <tambour/detail/ready_node.h>
#include <tambour/loop/readiness.h>

#pragma GCC visibility push(default)

namespace tambour::detail {

enum class OperationKind : std::uint8_t {
  poll,                 ///< Readiness of a file descriptor, reported until cancelled.
  file_open,            ///< openat(2). This and the following are FileOperations.
  file_read,            ///< pread(2).
  file_write,           ///< pwrite(2).
  file_sync,            ///< fsync(2).
  file_size,            ///< fstat(2).
  file_truncate,        ///< ftruncate(2).
  file_allocate,        ///< fallocate(2).
  file_status,          ///< statx(2). This and the following name files by paths.
  file_rename,          ///< renameat2(2).
  file_remove,          ///< unlinkat(2).
  file_make_directory,  ///< mkdirat(2).
  file_link,            ///< linkat(2).
  file_symlink,         ///< symlinkat(2).
  file_call,            ///< A function that worker threads call.
};

/// The parameters and the result of an operation. A base of its own, so that they use the tail
/// padding of ReadyNode: an idle connection is one operation.
class OperationData : public ReadyNode {
 public:
  OperationKind kind;
  Trigger trigger = Trigger::level;
  Events events = Events::none;  ///< poll: the requested events.
  int fd = -1;
  std::int32_t result = 0;  ///< poll: the reported events, or a negated errno value.

 protected:
  OperationData(OperationKind operation_kind, Run run, std::source_location created_at) noexcept
      : ReadyNode(run, created_at), kind(operation_kind) {}
  OperationData(OperationData&&) noexcept = default;
  ~OperationData() = default;
};

/// An asynchronous operation. The caller owns it and must not access its parameters between
/// submission and completion.
///
/// A `poll` operation differs from all other kinds: the kernel borrows no memory from it, so it may
/// complete any number of times, and `cancel` ends it at once, without a final completion.
class Operation : public OperationData, public HlistHook<Operation> {
 public:
  Operation(OperationKind operation_kind, Run run,
            std::source_location created_at = std::source_location::current()) noexcept
      : OperationData(operation_kind, run, created_at) {}
  Operation(Operation&&) noexcept = default;
  Operation& operator=(Operation&&) = delete;

  /// True from submission to completion or cancellation; the hook is then in the list of the
  /// operations on the same file descriptor.
  [[nodiscard]] bool submitted() const noexcept { return listed(); }
};

}  // namespace tambour::detail

#pragma GCC visibility pop
