// The main function of every test program. The exit status is 77 if all tests were skipped, and 1
// if a test failed or the filter matched no test.
//
// If TAMBOUR_TEST_SANDBOX is set, a seccomp filter forbids io_uring, as in most containers.
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

#include "support/sandbox.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (std::getenv("TAMBOUR_TEST_SANDBOX") != nullptr && !tambour::test::forbid_io_uring(EPERM)) {
    std::puts("skipped: cannot install a seccomp filter");
    return 77;
  }
  const int status = RUN_ALL_TESTS();
  if (status != 0 || testing::GTEST_FLAG(list_tests)) return status;
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  if (tests.test_to_run_count() == 0) return 1;
  return tests.skipped_test_count() == tests.test_to_run_count() ? 77 : 0;
}
