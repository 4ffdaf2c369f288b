// Callbacks at fixed points of a loop iteration or of the loop's lifetime: libev's prepare, check,
// idle, fork and cleanup watchers.
#pragma once

#include <cstdint>
#include <source_location>
#include <utility>

#include <tambour/base/callback.h>
#include <tambour/detail/handle.h>

namespace tambour::detail::loop {
class Core;
}  // namespace tambour::detail::loop

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

/// The point at which a hook is invoked.
enum class HookPoint : std::uint8_t {
  /// Before the loop waits. The wait takes into account what the callback starts, stops or posts.
  prepare,
  check,  ///< After the loop has waited, before the callbacks that have become due.
  /// When no callback of the same or a higher priority is due. While it is started, the loop never
  /// waits.
  idle,
  fork,  ///< In the child process, in the iteration after EventLoop::after_fork().
  /// When the loop is destroyed; its watchers can still be used. Does not keep the loop running.
  cleanup,
};

/// The common base class of all hooks.
///
/// Ownership: owns its callback.
/// Lifetime: may be moved or destroyed at any time, including inside its own callback, and may
/// outlive its loop.
/// Thread: must be used on the loop's thread.
/// Loop: a started hook, except a cleanup hook, keeps the loop running.
class Hook : private detail::Handle<Hook, Callback<void()>> {
 public:
  /// The callback.
  using Function = Callback<void()>;

  /// The hook is not started.
  Hook(EventLoop& loop, HookPoint point, Function function,
       std::source_location created_at = std::source_location::current()) noexcept;
  Hook(Hook&& other) noexcept;
  Hook& operator=(Hook&& other) noexcept;
  ~Hook();

  /// The callback is invoked at its point from start() to stop(). start() has no effect if the hook
  /// is started, stop() if it is not.
  void start() noexcept;
  void stop() noexcept;
  [[nodiscard]] bool is_started() const noexcept { return listed(); }
  /// Where in an iteration the callback is invoked.
  [[nodiscard]] HookPoint point() const noexcept { return point_; }

  /// From -2, invoked last, to 2, among the callbacks that are due in an iteration; default: 0.
  /// Other values are clamped.
  using ReadyNode::priority;
  using ReadyNode::set_priority;

  /// Replaces the callback. May be called inside the callback.
  void set_function(Function function) noexcept;

 private:
  friend class detail::loop::Core;
  static void run(ReadyNode& ready);

  HookPoint point_;
};

/// A hook whose type names its point.
template <HookPoint where>
class HookAt final : public Hook {
 public:
  /// The hook is not started.
  HookAt(EventLoop& loop, Function function,
         std::source_location created_at = std::source_location::current()) noexcept
      : Hook(loop, where, std::move(function), created_at) {}
};

// The hooks of libev and libuv, under their names: see HookPoint.

/// A hook that is invoked before the loop waits.
using Prepare = HookAt<HookPoint::prepare>;
/// A hook that is invoked after the loop has waited.
using Check = HookAt<HookPoint::check>;
/// A hook that is invoked when no callback of its priority or a higher one is due.
using Idle = HookAt<HookPoint::idle>;
/// A hook that is invoked in the child process, in the iteration after EventLoop::after_fork().
using ForkHook = HookAt<HookPoint::fork>;
/// A hook that is invoked when the loop is destroyed.
using CleanupHook = HookAt<HookPoint::cleanup>;

}  // namespace tambour

#pragma GCC visibility pop
