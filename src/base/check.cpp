#include "base/check.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>
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
  std::array<char, 512> message;
  constexpr std::string_view prefix = "tambour: ";
  std::size_t size = prefix.copy(message.data(), prefix.size());
  const std::size_t room = message.size() - size - 1;  // One byte is for the line feed.
  std::va_list arguments;
  va_start(arguments, format);
  const int wanted = std::vsnprintf(message.data() + size, room, format, arguments);
  va_end(arguments);
  if (wanted > 0) size += std::min(static_cast<std::size_t>(wanted), room - 1);
  message[size++] = '\n';
  // One call, so that messages of several threads do not mix.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, message.data(), size);
  std::abort();
}

}  // namespace tambour::base
