// The main function of every test program. An exit status of 77 says that all tests were skipped,
// and 1 also that none was found: a filter that matches nothing tests nothing.
//
// With TAMBOUR_TEST_SANDBOX set, the tests run where io_uring is forbidden, as in most containers.
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

#include "support/sandbox.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (std::getenv("TAMBOUR_TEST_SANDBOX") != nullptr && !tambour::test::forbid_io_uring(EPERM)) {
    std::puts("no seccomp filter can be installed here");
    return 77;
  }
  const int status = RUN_ALL_TESTS();
  if (status != 0 || testing::GTEST_FLAG(list_tests)) return status;
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  if (tests.test_to_run_count() == 0) return 1;
  return tests.skipped_test_count() == tests.test_to_run_count() ? 77 : 0;
}
