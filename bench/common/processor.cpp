#include "common/processor.h"

#include <sched.h>
#include <unistd.h>

#include <ctime>
#include <initializer_list>

#include "common/program.h"

namespace bench {
namespace {

std::int64_t read_clock(clockid_t clock) {
  timespec used;
  if (clock_gettime(clock, &used) != 0) fail_errno("clock_gettime of a CPU clock");
  return std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

}  // namespace

int pinned_processor() {
  static const int local = sched_getcpu();
  return local;
}

void move_to_another_processor() {
  cpu_set_t others;
  // The runner pins its children to one processor; the others are allowed to the runner itself.
  for (const pid_t process : {pid_t{0}, getppid()}) {
    if (sched_getaffinity(process, sizeof others, &others) != 0) fail_errno("sched_getaffinity");
    CPU_CLR(pinned_processor(), &others);
    if (CPU_COUNT(&others) != 0) break;
  }
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0)
    fail("a second processor is needed");
}

void move_to_pinned_processor() {
  cpu_set_t cpu_set;
  CPU_ZERO(&cpu_set);
  CPU_SET(pinned_processor(), &cpu_set);
  if (sched_setaffinity(0, sizeof cpu_set, &cpu_set) != 0) fail_errno("sched_setaffinity");
}

std::int64_t cpu_ns(pid_t process) {
  clockid_t clock;
  if (clock_getcpuclockid(process, &clock) != 0) fail("the server process has ended");
  return read_clock(clock);
}

std::int64_t own_cpu_ns() { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace bench
