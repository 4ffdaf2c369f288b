// The children that one loop watches.
#pragma once

#include <tambour/base/result.h>
#include <tambour/events/child.h>
#include <tambour/events/signal.h>

#include "loop/service.h"

namespace tambour::detail::events {

class Children final : public loop::Service {
 public:
  explicit Children(loop::Core& core) noexcept;

  Result<> add(Child& child) noexcept;
  void remove(Child& child) noexcept;

  /// Called when the child is dispatched: invokes its callback if a status is available.
  void run(Child& child);

  Result<> reopen() noexcept override;
  void close() noexcept override;

  /// For tests: behaves as if pidfds were unavailable, as before Linux 5.3 or in old sandboxes.
  static void avoid_pidfds(bool avoid) noexcept;

 private:
  bool watch_by_pidfd(Child& child) noexcept;
  Result<> watch_by_signal() noexcept;
  void close_pidfd(Child& child) noexcept;
  void fall_back_to_signal(Child& child);
  void check_all() noexcept;

  loop::Core& core_;
  detail::Hlist<Child> children_;
  int by_signal_ = 0;  ///< The number of children watched through SIGCHLD.
  Signal sigchld_;
};

}  // namespace tambour::detail::events
