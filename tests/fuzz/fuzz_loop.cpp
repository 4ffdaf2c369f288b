// The libFuzzer target for the loop: `make fuzz` runs it. A failure prints the calls, and the input
// is saved.
//
// TAMBOUR_FUZZ_WORLD=simulated runs every input on the simulator. TAMBOUR_FUZZ_TRACE=1 prints each
// call as it is made, for failures that abort the process. TAMBOUR_FUZZ_CANARY=1 (or 2) enables a
// mutant in a library that was built with mutants.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/canary.h"
#include "fuzz/player.h"

extern "C" int LLVMFuzzerInitialize(int*, char***);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);

namespace {
auto worlds = tambour::fuzz::Worlds::all;
}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* world = std::getenv("TAMBOUR_FUZZ_WORLD");
  if (world != nullptr && std::string_view(world) == "simulated")
    worlds = tambour::fuzz::Worlds::simulated;
#ifdef TAMBOUR_CANARIES
  if (const char* number = std::getenv("TAMBOUR_FUZZ_CANARY"))
    tambour::base::canary = tambour::base::Canary(std::atoi(number));
#endif
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const auto outcome = tambour::fuzz::play({bytes, size}, worlds);
  if (outcome.failure.empty()) return 0;
  std::fprintf(stderr, "%s\n%s\n", outcome.trace.c_str(), outcome.failure.c_str());
  std::abort();
}
