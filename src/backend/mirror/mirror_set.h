// An epoll set with the interest of a poller that has no descriptor: poll or select.
//
// Another loop waits for the set on behalf of the poller, which still decides what is reported. The
// set is level-triggered, as these pollers are.
#pragma once

#include <vector>

#include <tambour/base/unique_fd.h>
#include <tambour/detail/operation.h>

#include "backend/fd_records.h"

namespace tambour::detail::backend {

struct Change;

class MirrorSet {
 public:
  [[nodiscard]] bool is_open() const noexcept { return set_.is_open(); }
  [[nodiscard]] int fd() const noexcept { return set_.get(); }

  /// Opens the set with what the records have registered. Returns 0 or an errno value, after which
  /// the set is as before.
  int open(FdRecords& records) noexcept;
  /// In the child after fork(2): gives up the descriptor without closing it, or opens an empty set.
  void disown() noexcept { static_cast<void>(set_.release()); }
  int reopen() noexcept;

  /// Call before the poller makes the change. Returns 0 or an errno value, after which the poller
  /// must not make it.
  int set(const Change& change) noexcept;

  /// Opens the set again if it reports a file whose descriptor was closed while a duplicate keeps
  /// it open: epoll_ctl(2) cannot remove its registration.
  void drop_stale(FdRecords& records) noexcept;

  /// True if a descriptor is ready that epoll does not accept: a regular file.
  [[nodiscard]] bool is_always_ready() const noexcept { return !rejected_.empty(); }

 private:
  int add(int set, int fd, Events events, std::uint32_t generation) noexcept;

  UniqueFd set_;
  std::vector<int> rejected_;
};

}  // namespace tambour::detail::backend
