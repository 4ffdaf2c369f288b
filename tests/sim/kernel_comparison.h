// The fixture of the kernel comparisons: runs each scenario on the kernel and on a simulated host,
// and compares the records.
#pragma once

#include <iosfwd>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "sim/kernel_and_simulated_calls.h"

namespace tambour::test {

struct Scenario {
  const char* name;
  void (*play)(Recorder&);
};

inline void PrintTo(const Scenario& scenario,
                    std::ostream* out) {  // NOLINT: GoogleTest's own name.
  *out << scenario.name;
}

inline std::string name_of_scenario(const testing::TestParamInfo<Scenario>& scenario) {
  return scenario.param.name;
}

class KernelComparison : public testing::TestWithParam<Scenario> {
 protected:
  static void compare() {
    KernelCalls kernel;
    SimulatedCalls simulated;
    Recorder expected(kernel);
    Recorder got(simulated);
    GetParam().play(expected);
    GetParam().play(got);
    EXPECT_EQ(got.text(), expected.text());
  }
};

}  // namespace tambour::test
