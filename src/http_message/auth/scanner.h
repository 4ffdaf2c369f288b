// Lists of names with values that may be quoted: "max-age=0; includeSubDomains", and the parameters
// of challenges, RFC 9110, sections 5.6.4 and 11.2.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <tambour/detail/namespaces.h>

#include "http_message/characters.h"

namespace tambour::http::detail::auth {

/// Reads the parts of a field value from its front.
class Scanner {
 public:
  explicit Scanner(std::string_view text) noexcept : rest_(text) {}

  [[nodiscard]] bool is_at_end() const noexcept { return rest_.empty(); }
  [[nodiscard]] std::string_view rest() const noexcept { return rest_; }

  void skip_spaces() noexcept {
    const std::size_t end = rest_.find_first_not_of(" \t");
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end);
  }
  /// True if the text began with this character, which is removed.
  bool take(char character) noexcept {
    if (!rest_.starts_with(character)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  /// Empty if there is none.
  std::string_view take_token() noexcept {
    std::size_t size = 0;
    while (size < rest_.size() && is(rest_[size], token_char)) ++size;
    const std::string_view token = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return token;
  }
  /// A token or a quoted string, without its quotes. No value if it is malformed. Throws
  /// std::bad_alloc.
  std::optional<std::string> take_value() {
    if (!take('"')) {
      const std::string_view token = take_token();
      if (token.empty()) return std::nullopt;
      return std::string(token);
    }
    std::string value;
    while (!rest_.empty()) {
      char character = rest_.front();
      rest_.remove_prefix(1);
      if (character == '"') return value;
      if (character == '\\') {
        if (rest_.empty()) return std::nullopt;
        character = rest_.front();
        rest_.remove_prefix(1);
      }
      value += character;
    }
    return std::nullopt;
  }

 private:
  std::string_view rest_;
};

}  // namespace tambour::http::detail::auth
