// Shared by all benchmark programs: error exits, the watchdog, the clock, and the output.
//
// Exit status: 2 for invalid arguments, 1 for any later error. Standard output contains one line of
// JSON and nothing else, because the runner parses it.
#pragma once

#include <cstdint>
#include <ctime>
#include <span>
#include <string>
#include <string_view>

namespace bench {

/// The measured library. A version that is not available at run time is "unknown".
struct SubjectInfo {
  std::string subject;
  std::string version;
  std::string backend;
};

/// One figure of one iteration, printed with two decimals unless it is an integer.
struct Figure {
  std::string_view name;
  double value;
};

/// CLOCK_MONOTONIC in nanoseconds.
inline std::int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Prints the reason to standard error and exits with status 1.
[[noreturn]] void fail(const std::string& reason);

/// Like fail(), with the text of errno appended.
[[noreturn]] void fail_errno(const std::string& text);

/// Restarts the watchdog. If it is not called again within 60 s, the program ends with a message: a
/// lost byte or timer would otherwise block the loop forever. Uses SIGALRM.
void feed_watchdog();

/// The release of the running kernel: the version of subjects that use bare system calls.
std::string kernel_release();

/// Collects the iterations and prints them as one line of JSON.
class Report {
 public:
  void add(std::span<const Figure> iteration);
  void print(const SubjectInfo& info) const;

 private:
  std::string iterations_;
};

}  // namespace bench
