// Wakes up a backend from another thread: an eventfd(2) that the backend watches like any other
// descriptor.
#pragma once

#include <tambour/operation.h>
#include <tambour/result.h>
#include <tambour/unique_fd.h>

#include "backend/fd_records.h"

namespace tambour::backend {

/// A `poll` operation on its own eventfd. The backend that owns it submits it; it must not move.
class WakeUp final : public Operation {
 public:
  /// `records`: where the backend submits it.
  explicit WakeUp(FdRecords& records) noexcept
      : Operation(OperationKind::poll, &run), records_(records) {}

  /// `drain`: the backend is level-triggered only, so the eventfd must be read each time. With edge
  /// triggering another write is another edge, and no read is needed.
  Result<> open(bool drain) noexcept;

  [[nodiscard]] bool is_open() const noexcept { return eventfd_.is_open(); }

  /// Callable from any thread; async-signal-safe.
  void wake() noexcept;

 private:
  static void run(Ready& ready);

  FdRecords& records_;
  UniqueFd eventfd_;
  bool drain_ = false;
};

}  // namespace tambour::backend
