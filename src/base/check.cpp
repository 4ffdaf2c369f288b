#include "base/check.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

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

void fail_check(const char* format, ...) noexcept {
  std::array<char, 1024> text;
  constexpr std::size_t longest = 1000;
  std::size_t size = std::size_t(std::snprintf(text.data(), longest, "tambour: "));
  std::va_list arguments;
  va_start(arguments, format);
  const int printed = std::vsnprintf(text.data() + size, longest - size, format, arguments);
  va_end(arguments);
  if (printed > 0) size = std::min(size + std::size_t(printed), longest - 1);
  text[size++] = '\n';
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), size);
  std::abort();
}

}  // namespace tambour::base
