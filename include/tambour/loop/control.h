// Control over the internals of an iteration, for code that embeds a loop in another framework or
// ports a program from libev. Programs that only use a loop need none of these functions.
//
// Thread: all functions must be called on the thread of the loop, which is checked.
#pragma once

#include <cstddef>

#include <tambour/base/callback.h>
#include <tambour/base/clock.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/readiness.h>

#pragma GCC visibility push(default)

namespace tambour {

/// Delivers `events` to the watchers of `fd` as if the kernel had reported them. Events in which no
/// watcher is interested, and descriptors without a watcher, are ignored.
void feed_fd(EventLoop& loop, int fd, Events events) noexcept;

/// Makes the loop verify before its next wait that `fd` still refers to the open file that its
/// watchers watch, for code that cannot know whether it was closed and opened meanwhile. Costs one
/// system call less than FdWatcher::set() with a descriptor if it does, and one more if not.
/// Descriptors without a watcher are ignored.
void revalidate_fd(EventLoop& loop, int fd) noexcept;

/// The number of callbacks that are due and have not run yet.
[[nodiscard]] std::size_t pending_count(const EventLoop& loop) noexcept;

/// Runs the due callbacks now. May be called inside a callback. An exception thrown by a callback
/// propagates; calling the function again runs the callbacks that were still due.
void run_pending(EventLoop& loop);

/// Invokes `runner` in each iteration instead of running the due callbacks, for example to hold a
/// lock meanwhile. `runner` must call run_pending(): callbacks that it does not run stay due. An
/// empty `runner` restores the default.
void set_pending_runner(EventLoop& loop, Callback<void()> runner) noexcept;

/// Trades latency for fewer iterations: the loop waits at least `io` between two polls for events
/// and lets timers expire up to `timeout` late, so that each iteration handles more events.
void set_collect_intervals(EventLoop& loop, Duration io, Duration timeout) noexcept;

/// Stops the clock of the timers until resume_timers(), as SIGSTOP would. The loop must not be run
/// in between. A second suspend_timers(), or a resume_timers() without a suspend_timers(), has no
/// effect.
void suspend_timers(EventLoop& loop) noexcept;
/// Restarts the clock of the timers after suspend_timers().
void resume_timers(EventLoop& loop) noexcept;

}  // namespace tambour

#pragma GCC visibility pop
