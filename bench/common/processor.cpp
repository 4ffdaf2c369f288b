#include "common/processor.h"

#include <sched.h>
#include <unistd.h>

#include "common/program.h"

namespace bench {

void move_to_another_processor() {
  const int here = sched_getcpu();
  cpu_set_t others;
  CPU_ZERO(&others);
  for (long cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); ++cpu) {
    if (cpu != here) CPU_SET(cpu, &others);
  }
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0)
    fail("a second processor is needed for the client");
}

}  // namespace bench
