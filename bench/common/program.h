// What every benchmark program needs before and after its measurement: to be told what to do, to be
// stopped when it hangs, and to fail loudly.
//
// Exit codes: 2 for arguments that make no sense, 1 for anything that went wrong later. Standard
// output carries the one line of JSON and nothing else, because a runner reads it.
#pragma once

#include <cstdint>
#include <ctime>
#include <span>
#include <string>
#include <string_view>

namespace bench {

/// Who is being measured. What a library cannot say about itself at run time is "unknown".
struct About {
  std::string subject;
  std::string version;
  std::string backend;
};

/// One number of one iteration, printed with one decimal unless it is whole.
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

/// Says on stderr why the measurement is void, and exits with 1.
[[noreturn]] void fail(const std::string& why);

/// The same, with the text of the current errno behind it.
[[noreturn]] void fail_errno(const std::string& what);

/// Ends the program with a message unless it is called again within 60 s: a lost byte or timer
/// would otherwise leave a loop waiting for ever. Uses SIGALRM.
void feed_watchdog();

/// The release of the running kernel: the version of a subject that is nothing but system calls.
std::string kernel_release();

/// Collects the iterations and prints them as one line of JSON.
class Report {
 public:
  void add(std::span<const Figure> iteration);
  void print(const About& about) const;

 private:
  std::string iterations_;
};

}  // namespace bench
