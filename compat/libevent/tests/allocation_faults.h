// What the programs have in common that make each allocation of the library fail in turn.
#pragma once

#include <cstdarg>
#include <cstdio>

#include <event2/event.h>

#include "failing_allocations.h"

namespace faults {

inline int failures = 0;

/// Prints what is wrong.
__attribute__((format(printf, 1, 2))) inline void report(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::vprintf(format, arguments);
  va_end(arguments);
  std::putchar('\n');
  ++failures;
}

inline void expect(bool holds, const char* text) {
  if (!holds) report("not so: %s", text);
}
#define EXPECT(condition) faults::expect(condition, #condition)

/// From now on, the library allocates with functions that can fail, and logs nothing.
inline void replace_memory_functions() {
  event_set_mem_functions(&failing_allocations::allocate, &failing_allocations::reallocate,
                          &failing_allocations::release);
  event_set_log_callback([](int, const char*) {});
}

/// As `failing`: no allocation fails.
inline constexpr int none = 1 << 30;

/// Calls `use`; after `failing` allocations, one fails. Returns whether it was reached.
template <class Use>
bool fail_at(int failing, const Use& use) {
  failing_allocations::countdown = failing;
  use();
  const bool was_reached = failing_allocations::countdown < 0;
  failing_allocations::countdown = -1;
  return was_reached;
}

/// Calls `use` with 0, 1, ... until it returns false: it passes the number to fail_at(), and
/// returns the result. It must free what it allocates.
template <class Use>
void fail_each(const char* name, const Use& use) {
  int failing = 0;
  for (bool was_reached = true; was_reached; ++failing) {
    const int before = failing_allocations::live;
    was_reached = use(failing);
    const int leaks = failing_allocations::live - before;
    if (leaks != 0) report("%s: %d leaks, allocation %d", name, leaks, failing);
  }
  std::printf("%s: %d allocations\n", name, failing - 1);
}

}  // namespace faults
