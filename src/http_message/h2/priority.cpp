// Parses priority field values, which are dictionaries of structured fields (RFC 8941).
#include "http_message/h2/priority.h"

#include <cstddef>
#include <optional>

#include "http_message/characters.h"

namespace tambour::http::detail::h2 {
namespace {

bool is_key_start(char c) noexcept { return (c >= 'a' && c <= 'z') || c == '*'; }
bool is_key_char(char c) noexcept {
  return is_key_start(c) || is_digit(c) || c == '_' || c == '-' || c == '.';
}

/// What follows "=". Types that no priority has count as one.
struct Value {
  enum class Type : std::uint8_t { boolean, integer, other };
  Type type = Type::boolean;
  std::uint32_t number = 1;
};

class Scanner {
 public:
  explicit Scanner(std::string_view text) noexcept : text_(text) {}

  [[nodiscard]] bool empty() const noexcept { return at_ == text_.size(); }
  [[nodiscard]] char peek() const noexcept { return empty() ? '\0' : text_[at_]; }
  bool skip(char c) noexcept {
    if (empty() || peek() != c) return false;
    ++at_;
    return true;
  }
  void skip_blanks(bool with_tabs) noexcept {
    while (peek() == ' ' || (with_tabs && peek() == '\t')) ++at_;
  }

  [[nodiscard]] std::string_view read_key() noexcept {
    const std::size_t begin = at_;
    if (!is_key_start(peek())) return {};
    while (is_key_char(peek())) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  /// A value without its parameters; nullopt if it is malformed.
  [[nodiscard]] std::optional<Value> read_value() noexcept {
    const char first = peek();
    if (first == '(') return read_list();
    if (first == '"') return read_until_quote();
    if (first == '?') {
      ++at_;
      const char digit = peek();
      if (digit != '0' && digit != '1') return std::nullopt;
      ++at_;
      return Value{.number = static_cast<std::uint32_t>(digit - '0')};
    }
    if (first == ':') return read_binary();
    if (is_digit(first) || first == '-') return read_number();
    if (is_letter(first) || first == '*') {
      while (is(peek(), token_char) || peek() == ':' || peek() == '/') ++at_;
      return Value{.type = Value::Type::other};
    }
    return std::nullopt;
  }

  /// Parameters of a value or of a list: they have no meaning here.
  [[nodiscard]] bool skip_parameters() noexcept {
    while (skip(';')) {
      skip_blanks(false);
      if (read_key().empty()) return false;
      if (skip('=') && (peek() == '(' || !read_value())) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] std::optional<Value> read_number() noexcept {
    constexpr std::size_t digits_max = 15;
    const bool is_negative = skip('-');
    const std::size_t begin = at_;
    std::uint64_t number = 0;
    while (is_digit(peek()) && at_ - begin < digits_max)
      number = number * 10 + static_cast<std::uint64_t>(text_[at_++] - '0');
    if (at_ == begin || is_digit(peek())) return std::nullopt;
    if (skip('.')) {
      const std::size_t fraction = at_;
      while (is_digit(peek())) ++at_;
      if (at_ == fraction || at_ - fraction > 3) return std::nullopt;
      return Value{.type = Value::Type::other};
    }
    if (is_negative || number > Priority::urgency_max)
      return Value{.type = number == 0 ? Value::Type::integer : Value::Type::other, .number = 0};
    return Value{.type = Value::Type::integer, .number = static_cast<std::uint32_t>(number)};
  }

  [[nodiscard]] std::optional<Value> read_until_quote() noexcept {
    ++at_;
    while (!empty()) {
      const char c = text_[at_++];
      if (c == '"') return Value{.type = Value::Type::other};
      if (c == '\\' && peek() != '"' && peek() != '\\') return std::nullopt;
      if (c == '\\') ++at_;
      if (c < ' ' || c > '~') return std::nullopt;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Value> read_binary() noexcept {
    ++at_;
    while (is_letter(peek()) || is_digit(peek()) || peek() == '+' || peek() == '/' || peek() == '=')
      ++at_;
    if (!skip(':')) return std::nullopt;
    return Value{.type = Value::Type::other};
  }

  [[nodiscard]] std::optional<Value> read_list() noexcept {
    ++at_;
    while (true) {
      skip_blanks(false);
      if (skip(')')) return Value{.type = Value::Type::other};
      if (peek() == '(' || !read_value() || !skip_parameters()) return std::nullopt;
      if (peek() != ' ' && peek() != ')') return std::nullopt;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

void apply(std::string_view key, const Value& value, Priority& priority) noexcept {
  // The last value of a key counts, also if it is ignored.
  if (key == "u")
    priority.urgency = value.type == Value::Type::integer ? static_cast<std::uint8_t>(value.number)
                                                          : Priority().urgency;
  if (key == "i") priority.is_incremental = value.type == Value::Type::boolean && value.number == 1;
}

}  // namespace

Priority parse_priority(std::string_view text) noexcept {
  Priority priority;
  Scanner scanner(text);
  scanner.skip_blanks(false);
  while (!scanner.empty()) {
    const std::string_view key = scanner.read_key();
    if (key.empty()) return {};
    const auto value = scanner.skip('=') ? scanner.read_value() : Value{};
    if (!value || !scanner.skip_parameters()) return {};
    apply(key, *value, priority);
    scanner.skip_blanks(true);
    if (scanner.empty()) break;
    if (!scanner.skip(',')) return {};
    scanner.skip_blanks(true);
    if (scanner.empty()) return {};
  }
  return priority;
}

}  // namespace tambour::http::detail::h2
