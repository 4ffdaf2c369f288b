// Wakes up a backend from another thread: an eventfd(2) that the backend watches like any other
// descriptor.
#pragma once

#include <tambour/base/result.h>
#include <tambour/base/unique_fd.h>
#include <tambour/detail/operation.h>

#include "backend/fd_records.h"
#include "base/eventfd_identity.h"

namespace tambour::detail::backend {

/// A `poll` operation on its own eventfd. The backend that owns it submits it; it must not move.
class WakeUp final : public detail::Operation {
 public:
  /// `records`: where the backend submits it.
  explicit WakeUp(FdRecords& records) noexcept
      : detail::Operation(detail::OperationKind::poll, &run), records_(records) {}

  /// `drain`: the backend is level-triggered only, so the eventfd must be read each time. With edge
  /// triggering another write is another edge, and no read is needed.
  Result<> open(bool drain) noexcept;

  [[nodiscard]] bool is_open() const noexcept { return was_opened_; }

  [[nodiscard]] int fd() const noexcept { return eventfd_.get(); }

  /// Returns true if other code has closed the eventfd.
  [[nodiscard]] bool is_lost() const noexcept {
    return was_opened_ && !identity_.is(eventfd_.get());
  }
  /// Gives up the eventfd without closing it, until the next open().
  void disown() noexcept { static_cast<void>(eventfd_.release()); }

  /// Callable from any thread; async-signal-safe.
  void wake() noexcept;

 private:
  static void run(detail::ReadyNode& ready);

  FdRecords& records_;
  UniqueFd eventfd_;
  base::EventfdIdentity identity_;
  bool was_opened_ = false;
  bool drain_ = false;
};

}  // namespace tambour::detail::backend
