// The descriptor with which a loop of another library waits for this loop: EventLoop::fd().
//
// The backend's own descriptor may be replaced by any iteration. A descriptor that is registered
// with another loop must not change, so it is an epoll set that contains the backend's.
#pragma once

#include <cstdint>

#include <tambour/base/result.h>
#include <tambour/base/unique_fd.h>

#include "loop/service.h"

namespace tambour::detail::loop {

class HostWait final : public Service {
 public:
  explicit HostWait(Core& core) noexcept : core_(core) {}

  /// Opens the set with the first call.
  Result<int> fd() noexcept;

  /// If the backend's descriptor cannot be watched, the next iteration is due at once.
  std::int64_t before_wait() noexcept override;
  void disown_if_lost(bool has_all) noexcept override;
  Result<> reopen() noexcept override;
  void close() noexcept override { set_.reset(); }

 private:
  Result<> open() noexcept;
  /// Adds the backend's descriptor to the set if it is another one than before. close(2) has
  /// removed the former one.
  Result<> update() noexcept;

  Core& core_;
  UniqueFd set_;
  bool was_opened_ = false;
  int watched_ = -1;
};

}  // namespace tambour::detail::loop
