// The functions for ports of libev programs, which forward to Core.
#include <utility>

#include <tambour/loop/control.h>

#include "loop/core.h"

namespace tambour {
namespace {

/// The core of `loop`, whose thread is checked. `function` is the one that a failed check names.
detail::loop::Core& checked_core(
    EventLoop& loop, std::source_location function = std::source_location::current()) noexcept {
  detail::loop::Core& core = detail::loop::core_of(loop);
  core.check_thread(function);
  return core;
}

}  // namespace

void feed_fd(EventLoop& loop, int fd, Events events) noexcept {
  checked_core(loop).feed_fd(fd, events);
}

void revalidate_fd(EventLoop& loop, int fd) noexcept {
  checked_core(loop).backend().revalidate(fd);
}

std::size_t pending_count(const EventLoop& loop) noexcept {
  return checked_core(const_cast<EventLoop&>(loop)).pending_count();
}

void run_pending(EventLoop& loop) { detail::loop::core_of(loop).run_pending(); }

void set_pending_runner(EventLoop& loop, Callback<void()> runner) noexcept {
  checked_core(loop).set_pending_runner(std::move(runner));
}

void set_collect_intervals(EventLoop& loop, Duration io, Duration timeout) noexcept {
  checked_core(loop).set_collect_intervals(io.count(), timeout.count());
}

void suspend_timers(EventLoop& loop) noexcept { checked_core(loop).suspend_timers(); }
void resume_timers(EventLoop& loop) noexcept { checked_core(loop).resume_timers(); }

}  // namespace tambour
