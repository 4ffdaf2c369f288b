// Each allocation fails once, and each with the two after it.
#include <cerrno>

#include <gtest/gtest.h>

#include "faults/allocations.h"
#include "faults/sweep.h"

namespace tambour::memory_test {
namespace {

class Memory : public test::Sweep {};

TEST_P(Memory, allocations_may_fail_at_any_point) {
  for (const unsigned times : {1U, 3U}) {
    for (unsigned nth = 1;; ++nth) {
      SCOPED_TRACE(testing::Message() << "allocation " << nth << ", " << times << " times");
      const Error reported = play([=] { test::refuse_memory(nth, times); }, test::grant_memory);
      // If there is no memory even for the server's exception, the server only closes the
      // connection.
      const bool is_disconnected =
          times > 1 && (reported == system_error(ENOTCONN) || reported == system_error(ECONNRESET));
      if (reported && !is_disconnected) {
        EXPECT_EQ(reported, system_error(ENOMEM)) << reported.message();
      }
      if (!test::memory_was_refused() || HasFailure()) break;
    }
  }
}

TAMBOUR_ON_EACH_BACKEND(Memory);

}  // namespace
}  // namespace tambour::memory_test
