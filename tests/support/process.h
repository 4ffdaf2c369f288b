// What the process has used, and children that may change what cannot be changed back.
#pragma once

#include <sys/resource.h>

#include <cstddef>
#include <functional>

#include <gtest/gtest.h>

#include <tambour/clock.h>

#include "support/scale.h"

namespace tambour::test {

/// The processor time of this thread.
Duration processor_time();

/// How many descriptors are open.
std::size_t open_descriptors();

/// Runs `body` in a child and returns its exit status: what `body` returned, or 128 and the signal
/// that ended it. The child ends at once after it, without destructors or leak checks.
int in_child(const std::function<int()>& body);

/// A smaller limit of RLIMIT_NOFILE, for as long as this lives. UndefinedBehaviorSanitizer opens a
/// pipe to see whether memory can be read, and without descriptors takes each object for a fault:
/// TAMBOUR_NEEDS_LAST_DESCRIPTOR skips a test that leaves it none.
class OpenFilesLimit {
 public:
  explicit OpenFilesLimit(rlim_t limit);
  OpenFilesLimit(const OpenFilesLimit&) = delete;
  OpenFilesLimit& operator=(const OpenFilesLimit&) = delete;
  ~OpenFilesLimit();

 private:
  rlimit before_{};
};

}  // namespace tambour::test

#define TAMBOUR_NEEDS_LAST_DESCRIPTOR() \
  if (test::address_sanitized) GTEST_SKIP() << "the sanitizers need descriptors of their own"
