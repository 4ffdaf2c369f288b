// The libFuzzer target for the loop: `make fuzz` runs it. A failure prints the calls, and the input
// is saved.
//
// TAMBOUR_FUZZ_BACKENDS=simulated runs every input on the simulator. TAMBOUR_FUZZ_TRACE=1 prints
// each call as it is made, for failures that abort the process. TAMBOUR_FUZZ_CANARY=1 (or 2)
// enables a mutant in a library that was built with mutants.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/mutant.h"
#include "fuzz/player.h"

extern "C" int LLVMFuzzerInitialize(int*, char***);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);

namespace {
auto backends = tambour::fuzz::BackendSet::all;
}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* name = std::getenv("TAMBOUR_FUZZ_BACKENDS");
  if (name != nullptr && std::string_view(name) == "simulated")
    backends = tambour::fuzz::BackendSet::simulated;
#ifdef TAMBOUR_FAULTS
  if (const char* number = std::getenv("TAMBOUR_FUZZ_CANARY"))
    tambour::detail::base::mutant = tambour::detail::base::Mutant(std::atoi(number));
#endif
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const auto outcome = tambour::fuzz::play({bytes, size}, backends);
  if (outcome.failure.empty()) return 0;
  std::fprintf(stderr, "%s\n%s\n", outcome.trace.c_str(), outcome.failure.c_str());
  std::abort();
}
