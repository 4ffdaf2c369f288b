#include "base/check.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace tambour::base {
namespace {

void write_to_stderr(const char* text) noexcept {
  // No stream and no allocation: the heap may be what is broken.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, std::strlen(text));
}

}  // namespace

void contract_breached(const char* sentence) noexcept {
  write_to_stderr("tambour: contract breached: ");
  write_to_stderr(sentence);
  write_to_stderr("\n");
  std::abort();
}

}  // namespace tambour::base
