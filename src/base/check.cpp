// What a failed check does: it prints one line that names the function and the fix, and aborts.
#include "base/check.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace tambour::detail::base {

void fail_check(const char* format, ...) noexcept {
  // No stream and no allocation, because the heap may be corrupt.
  std::array<char, 1024> text;
  int size = std::snprintf(text.data(), text.size(), "tambour: ");
  std::va_list values;
  va_start(values, format);
  const int added = std::vsnprintf(text.data() + size, text.size() - size, format, values);
  va_end(values);
  size = std::min(size + std::max(added, 0), int(text.size()) - 1);
  text[size++] = '\n';
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), size);
  std::abort();
}

void contract_violated(const char* sentence) noexcept {
  fail_check("contract violated: %s", sentence);
}

}  // namespace tambour::detail::base
