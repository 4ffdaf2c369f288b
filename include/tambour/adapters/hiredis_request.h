// The commands of RedisClient in Redis' protocol.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <tambour/base/cxx23.h>

#pragma GCC visibility push(default)

namespace tambour::adapters::detail {

/// Formats commands as redisFormatCommandArgv() does, into memory that it keeps.
class RedisRequest {
 public:
  /// The text is valid until the next call. Throws std::bad_alloc.
  std::string_view format(std::span<const std::string_view> words) {
    text_.clear();
    append('*', words.size());
    for (const std::string_view word : words) {
      append('$', word.size());
      text_.append(word).append("\r\n");
    }
    return text_;
  }
  /// Frees the memory of an unusually long text.
  void shrink() noexcept {
    constexpr std::size_t kept_bytes_max = 65'536;
    if (text_.capacity() > kept_bytes_max) text_ = std::string();
  }

 private:
  void append(char type, std::size_t number) {
    std::array<char, 24> digits;
    digits[0] = type;
    const auto end = std::to_chars(&digits[1], digits.data() + digits.size(), number);
    text_.append(digits.data(), end.ptr).append("\r\n");
  }

  std::string text_;
};

}  // namespace tambour::adapters::detail

#pragma GCC visibility pop
