// The parts of a loop that only some handles need: signals, children, the wall clock, file status,
// embedded loops, calls on worker threads, file operations. Created when the first such handle
// starts.
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

  /// Queues what is due without a kernel event, and returns the time of the next such item.
  std::int64_t before_wait() noexcept;

  /// Queues what has become due since before_wait().
  void expire(std::int64_t now_ns) noexcept;

  /// In the child after fork(2), before the backend is reopened; see Backend::disown_if_lost().
  void disown_if_lost(bool has_all) noexcept;
  /// In the child after fork(2), once the backend has been reopened.
  Result<> reopen() noexcept;

  /// Stops all handles and unlinks them from the loop.
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
