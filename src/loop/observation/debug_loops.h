// The loops of the process, for debuggers: tools/tambour_gdb.py reads them in a live process
// and in a core file, without debug information.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <source_location>

#include <tambour/detail/task_lists.h>

namespace tambour::detail::loop {

/// The script knows the order of these members.
struct DebugLoop {
  const TaskLists* lists = nullptr;
  const std::int64_t* now_ns = nullptr;
  std::source_location created_at;
  int thread_id = 0;
};

/// A table instead of a list, so that no lock is needed, which a fork(2) in another thread could
/// leave locked. Debuggers do not see the loops that have no place in it.
inline constexpr std::size_t debug_loops_max = 256;
[[gnu::visibility(
    "default")]] extern std::array<std::atomic<const DebugLoop*>, debug_loops_max> debug_loops;

void show_to_debuggers(const DebugLoop& loop) noexcept;
void hide_from_debuggers(const DebugLoop& loop) noexcept;

}  // namespace tambour::detail::loop
