// Each allocation fails once, and each with the two after it.
#include <cerrno>

#include <gtest/gtest.h>

#include "faults/allocations.h"
#include "faults/sweep.h"

namespace tambour {
namespace {

class Memory : public test::Sweep {};

TEST_P(Memory, may_be_refused) {
  for (const unsigned times : {1U, 3U}) {
    for (unsigned nth = 1;; ++nth) {
      SCOPED_TRACE(testing::Message() << "allocation " << nth << ", " << times << " times");
      const Error told = play([=] { test::refuse_memory(nth, times); }, test::grant_memory);
      // If there is no memory even for the server's exception, the server only closes the
      // connection.
      const bool is_gone =
          times > 1 && (told == system_error(ENOTCONN) || told == system_error(ECONNRESET));
      if (told && !is_gone) {
        EXPECT_EQ(told, system_error(ENOMEM)) << told.message();
      }
      if (!test::memory_was_refused() || HasFailure()) break;
    }
  }
}

TAMBOUR_ON_EACH_BACKEND(Memory);

}  // namespace
}  // namespace tambour
