// Callbacks at fixed places in a turn of the loop, or of its life: libev's prepare, check, idle,
// fork and cleanup watchers.
#pragma once

#include <cstdint>
#include <source_location>
#include <utility>

#include <tambour/callback.h>
#include <tambour/operation.h>

namespace tambour {

class EventLoop;
namespace loop {
class Core;
}

enum class HookPoint : std::uint8_t {
  prepare,  ///< Before the loop waits. What it starts, stops or posts, the wait takes into account.
  check,    ///< After the loop has waited, before anything that has become due.
  idle,     ///< When nothing of the same or a higher priority is due. The loop then never sleeps.
  fork,     ///< In the turn after EventLoop::reopen_after_fork(), in the child.
  cleanup,  ///< When the loop is destroyed, its watchers still working; does not keep it running.
};

/// What all hooks have in common. Owns its callback. A started hook keeps the loop running, but for
/// cleanup hooks. Moves and is destroyed freely, inside its own callback too. Belongs to the thread
/// of its loop, which it may outlive, silently.
class Hook : private Ready, private Listed<Hook> {
 public:
  using Function = Callback<void()>;

  Hook(EventLoop& loop, HookPoint point, Function function,
       std::source_location created_at = std::source_location::current()) noexcept;
  Hook(Hook&& other) noexcept;
  Hook& operator=(Hook&& other) noexcept;
  ~Hook();

  void start() noexcept;
  void stop() noexcept;
  [[nodiscard]] bool started() const noexcept { return listed(); }
  [[nodiscard]] HookPoint point() const noexcept { return point_; }

  using Ready::priority;
  using Ready::set_priority;

 private:
  friend class loop::Core;
  friend class Listed<Hook>;  // The loop's list of the hooks at this point.
  static void run(Ready& ready);

  HookPoint point_;
  loop::Core* core_;
  Function function_;
};

template <HookPoint where>
class HookAt final : public Hook {
 public:
  HookAt(EventLoop& loop, Function function,
         std::source_location created_at = std::source_location::current()) noexcept
      : Hook(loop, where, std::move(function), created_at) {}
};

using Prepare = HookAt<HookPoint::prepare>;
using Check = HookAt<HookPoint::check>;
using Idle = HookAt<HookPoint::idle>;
using ForkHook = HookAt<HookPoint::fork>;
using CleanupHook = HookAt<HookPoint::cleanup>;

}  // namespace tambour
