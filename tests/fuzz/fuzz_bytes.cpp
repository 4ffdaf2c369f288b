// The libFuzzer targets for the checks of bytes_checks.h; TAMBOUR_FUZZ_CHECK names the function.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fuzz/bytes_checks.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    tambour::fuzz::TAMBOUR_FUZZ_CHECK({bytes, size});
  } catch (const tambour::fuzz::Wrong& wrong) {
    std::fprintf(stderr, "%s\n", wrong.text.c_str());
    std::abort();
  }
  return 0;
}
