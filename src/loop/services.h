// What a loop needs only for some of its handles: signals, children, the wall clock, file status,
// loops embedded in it, calls on other
// threads, operations on files. Made when the first of those starts.
#pragma once

#include <cstdint>

#include <tambour/result.h>

#include "loop/children.h"
#include "loop/embedded_loops.h"
#include "loop/file_request.h"
#include "loop/file_status_inotify.h"
#include "loop/signals.h"
#include "loop/wall_timers.h"
#include "loop/worker_returns.h"

namespace tambour::loop {

class Core;

class Services {
 public:
  explicit Services(Core& core) noexcept;
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  /// Queues what is due without the kernel's help, and says when to do so next.
  std::int64_t before_wait() noexcept;

  /// Queues what has become due since.
  void expire(std::int64_t now_ns) noexcept;

  /// In the child after fork(2), the backend having been reopened.
  Result<> reopen() noexcept;

  /// All handles are their owners' again, stopped.
  void abandon() noexcept;

  Signals signals;
  Children children;
  WallTimers wall_timers;
  Inotify inotify;
  EmbeddedLoops embedded_loops;
  WorkerReturns worker_returns;
  FileRequests file_requests;
};

}  // namespace tambour::loop
