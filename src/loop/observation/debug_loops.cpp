// The table of the loops of the process, for debuggers.
#include "loop/observation/debug_loops.h"

namespace tambour::detail::loop {

constinit std::array<std::atomic<const DebugLoop*>, debug_loops_max> debug_loops{};

void show_to_debuggers(const DebugLoop& loop) noexcept {
  for (std::atomic<const DebugLoop*>& place : debug_loops) {
    const DebugLoop* free = nullptr;
    if (place.load(std::memory_order_relaxed) == nullptr &&
        place.compare_exchange_strong(free, &loop, std::memory_order_release,
                                      std::memory_order_relaxed))
      return;
  }
}

void hide_from_debuggers(const DebugLoop& loop) noexcept {
  for (std::atomic<const DebugLoop*>& place : debug_loops) {
    if (place.load(std::memory_order_relaxed) != &loop) continue;
    place.store(nullptr, std::memory_order_relaxed);
    return;
  }
}

}  // namespace tambour::detail::loop
