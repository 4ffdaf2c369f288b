// How another thread ends a backend's wait: an eventfd(2) that the backend watches like any other.
#pragma once

#include <tambour/operation.h>
#include <tambour/result.h>
#include <tambour/unique_fd.h>

#include "backend/fd_records.h"

namespace tambour::backend {

/// A `poll` operation on an eventfd of its own. Pinned: the backend that owns it submits it.
class WakeUp final : public Operation {
 public:
  /// `records`: where its owner submits it.
  explicit WakeUp(FdRecords& records) noexcept
      : Operation(OperationKind::poll, &run), records_(records) {}

  /// `drain`: the backend has levels only, so the eventfd has to be read each time; with edges, a
  /// further write is a further edge, and reading would be a system call for nothing.
  Result<> open(bool drain) noexcept;

  [[nodiscard]] bool is_open() const noexcept { return eventfd_.is_open(); }

  /// Any thread; async-signal-safe.
  void wake() noexcept;

 private:
  static void run(Ready& ready);

  FdRecords& records_;
  UniqueFd eventfd_;
  bool drain_ = false;
};

}  // namespace tambour::backend
