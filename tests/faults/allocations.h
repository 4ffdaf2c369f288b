// Allocation failures on demand: counts the operator new calls of this thread and fails chosen
// ones.
//
// Linking this file replaces operator new and operator delete in the whole program.
#pragma once

#include <cstddef>

#include <gtest/gtest.h>

#include "support/process.h"

namespace tambour::test {

/// Fails the `nth` allocation of this thread (from 1) and the `times` - 1 after it: operator new
/// throws std::bad_alloc, and nothrow forms return null.
void refuse_memory(unsigned nth, unsigned times = 1) noexcept;

/// From now on, all allocations succeed.
void grant_memory() noexcept;

/// Returns whether the last planned failure has occurred.
bool memory_was_refused() noexcept;

/// Calls `attempt` again and again, and makes each of its allocations fail in turn: one, or three
/// in a row. `check` gets each result. Expects that no descriptor leaks. Ends at the first failure
/// of the test.
template <class Attempt, class Check>
void refuse_each_allocation(const Attempt& attempt, const Check& check) {
  const std::size_t descriptors = open_descriptors();
  for (const unsigned times : {1U, 3U}) {
    for (unsigned nth = 1;; ++nth) {
      SCOPED_TRACE(testing::Message() << "allocation " << nth << ", " << times << " times");
      refuse_memory(nth, times);
      const auto result = attempt();
      grant_memory();
      check(result);
      EXPECT_EQ(open_descriptors(), descriptors);
      if (!memory_was_refused() || testing::Test::HasFailure()) break;
    }
  }
}

}  // namespace tambour::test
