// Resource usage of the process, and child processes for changes that cannot be undone.
#pragma once

#include <sys/resource.h>

#include <cstddef>
#include <functional>

#include <gtest/gtest.h>

#include <tambour/base/clock.h>

#include "support/scale.h"

namespace tambour::test {

/// The processor time of the calling thread.
Duration processor_time();

/// The number of open descriptors of the process.
std::size_t open_descriptors();

/// Runs `body` in a child process and returns its exit status: the result of `body`, or 128 plus
/// the signal that killed it. The child ends with _exit(2), without static destructors or leak
/// checks.
int in_child(const std::function<int()>& body);

/// Lowers RLIMIT_NOFILE for its lifetime. UndefinedBehaviorSanitizer opens a pipe to check whether
/// memory is readable, and reports false errors if it cannot: TAMBOUR_NEEDS_LAST_DESCRIPTOR skips
/// tests that leave no free descriptor.
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
  if (test::address_sanitized) GTEST_SKIP() << "the sanitizers need free descriptors"
