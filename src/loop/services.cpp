#include "loop/services.h"

#include <algorithm>

#include "loop/core.h"

namespace tambour::loop {

Services::Services(Core& core) noexcept
    : signals(core),
      children(core),
      wall_timers(core),
      inotify(core),
      embedded_loops(core),
      worker_returns(core) {}

std::int64_t Services::before_wait() noexcept {
  signals.before_wait();
  return std::min(wall_timers.before_wait(), embedded_loops.before_wait());
}

void Services::expire(std::int64_t now_ns) noexcept {
  wall_timers.expire();
  embedded_loops.expire(now_ns);
}

void Services::disown_if_lost(bool has_all) noexcept {
  signals.disown_if_lost();
  if (has_all) return;
  wall_timers.disown();
  inotify.disown();
}

Result<> Services::reopen() noexcept {
  // Reopen all of them even if one fails.
  Result<> outcomes[] = {signals.reopen(), wall_timers.reopen(), inotify.reopen(),
                         worker_returns.reopen()};
  children.reopen();
  for (Result<>& outcome : outcomes) {
    if (!outcome) return outcome;
  }
  return {};
}

void Services::abandon() noexcept {
  file_requests.abandon();
  worker_returns.abandon();
  embedded_loops.abandon();
  inotify.abandon();
  wall_timers.abandon();
  children.abandon();  // Before the signals: it owns a Signal.
  signals.abandon();
}

}  // namespace tambour::loop
