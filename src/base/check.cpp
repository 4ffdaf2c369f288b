// What a failed check does: it prints one line that names the function and the fix, and aborts.
// A warning prints such a line too.
#include "base/check.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <tambour/base/result.h>

namespace tambour::detail::base {

namespace {

/// No stream and no allocation, because the heap may be corrupt.
void write_line(const char* format, std::va_list values) noexcept {
  std::array<char, 1024> text;
  int size = std::snprintf(text.data(), text.size(), "tambour: ");
  const int added = std::vsnprintf(text.data() + size, text.size() - size, format, values);
  size = std::min(size + std::max(added, 0), int(text.size()) - 1);
  text[size++] = '\n';
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), size);
}

}  // namespace

void fail_check(const char* format, ...) noexcept {
  std::va_list values;
  va_start(values, format);
  write_line(format, values);
  va_end(values);
  std::abort();
}

void warn(const char* format, ...) noexcept {
  std::va_list values;
  va_start(values, format);
  write_line(format, values);
  va_end(values);
}

void contract_violated(const char* sentence) noexcept {
  fail_check("contract violated: %s", sentence);
}

}  // namespace tambour::detail::base

namespace tambour::detail {

void fail_on_unchecked_error(const Error* error, std::string_view text) noexcept {
  if (error == nullptr)
    base::fail_check(
        "the value of a Result was used, but it holds an error; "
        "test the Result first");
  // Unlike in other checks the heap is not in doubt, so the message may be a string.
  const std::string message = text.empty() ? error->message() : std::string(text);
  base::fail_check(
      "the value of a Result was used, but it holds the error \"%s\" (%s %d); test the Result "
      "first, or use or_throw()",
      message.c_str(), error->category().name(), error->value());
}

void fail_on_missing_error() noexcept {
  base::fail_check("error() of a Result was used, but it holds a value; test the Result first");
}

}  // namespace tambour::detail
