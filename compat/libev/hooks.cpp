// The watchers that are invoked at fixed points of an iteration: ev_idle, ev_prepare, ev_check,
// ev_fork, ev_cleanup.

#include "loop.h"

namespace {

template <class Watcher>
void start(struct ev_loop* loop, tambour::libev::Watchers<Watcher>& those, Watcher* w) noexcept {
  if (w->active == 0) loop->start(w, those.add(w));
}

/// Returns false if it was already stopped.
template <class Watcher>
bool stop(struct ev_loop* loop, tambour::libev::Watchers<Watcher>& those, Watcher* w) noexcept {
  loop->take_back(w);
  if (w->active == 0) return false;
  those.remove(w);
  loop->stop(w);
  return true;
}

}  // namespace

void ev_idle_start(struct ev_loop* loop, ev_idle* w) noexcept {
  if (w->active != 0) return;
  tambour::libev::Loop::clamp_priority(tambour::libev::base_of(w));
  start(loop, loop->idles[w->priority - EV_MINPRI], w);
  ++loop->idle_count;
}
void ev_idle_stop(struct ev_loop* loop, ev_idle* w) noexcept {
  loop->take_back(w);
  if (w->active == 0) return;
  stop(loop, loop->idles[w->priority - EV_MINPRI], w);
  --loop->idle_count;
}

void ev_prepare_start(struct ev_loop* loop, ev_prepare* w) noexcept {
  start(loop, loop->prepares, w);
}
void ev_prepare_stop(struct ev_loop* loop, ev_prepare* w) noexcept {
  stop(loop, loop->prepares, w);
}

void ev_check_start(struct ev_loop* loop, ev_check* w) noexcept { start(loop, loop->checks, w); }
void ev_check_stop(struct ev_loop* loop, ev_check* w) noexcept { stop(loop, loop->checks, w); }

void ev_fork_start(struct ev_loop* loop, ev_fork* w) noexcept { start(loop, loop->forks, w); }
void ev_fork_stop(struct ev_loop* loop, ev_fork* w) noexcept { stop(loop, loop->forks, w); }

// Cleanup watchers do not keep the loop running.
void ev_cleanup_start(struct ev_loop* loop, ev_cleanup* w) noexcept {
  if (w->active != 0) return;
  start(loop, loop->cleanups, w);
  --loop->references;
}
void ev_cleanup_stop(struct ev_loop* loop, ev_cleanup* w) noexcept {
  if (stop(loop, loop->cleanups, w)) ++loop->references;
}
