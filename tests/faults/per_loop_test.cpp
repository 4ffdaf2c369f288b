// PerLoop: each allocation of the thread that constructs it fails, alone and with all after it.
#include <tambour/threads/per_loop.h>

#include <cstddef>
#include <new>

#include <gtest/gtest.h>

#include "faults/allocations.h"

namespace tambour::per_loop_test {
namespace {

TEST(PerLoopMemory, a_failed_allocation_is_the_exception_of_the_constructor) {
  LoopGroup group({.threads = 2});
  for (const unsigned times : {1U, 1000U}) {
    for (unsigned nth = 1;; ++nth) {
      SCOPED_TRACE(testing::Message() << "allocation " << nth << ", " << times << " times");
      bool has_failed = false;
      test::refuse_memory(nth, times);
      try {
        const PerLoop<int> numbers(group);
        test::grant_memory();
      } catch (const std::bad_alloc&) {
        test::grant_memory();
        has_failed = true;
      }
      if (!has_failed) break;
    }
  }
}

}  // namespace
}  // namespace tambour::per_loop_test
