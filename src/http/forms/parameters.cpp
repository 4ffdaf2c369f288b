// Parses a value with parameters, such as Content-Disposition, with the practice of browsers.
#include "http/forms/parameters.h"

#include <algorithm>

#include "http_message/characters.h"

namespace tambour::http::detail::forms {
namespace {

bool is_token_or_type(std::string_view text) noexcept {
  const std::size_t slash = text.find('/');
  const bool has_parts = slash == std::string_view::npos || (slash > 0 && slash + 1 < text.size());
  return !text.empty() && has_parts && all_are(text.substr(0, slash), token_char) &&
         (slash == std::string_view::npos || all_are(text.substr(slash + 1), token_char));
}

/// Removes a quoted string from the front of `text`, which begins with a quote.
std::optional<std::string> take_quoted(std::string_view& text) {
  std::string value;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return value;
    }
    const bool escapes =
        text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\');
    if (escapes) ++i;
    value += text[i];
  }
  return std::nullopt;
}

/// Without quotes, a value must be a token. Clients also send other characters of boundaries so,
/// for example those of "----=_Part_1"; none of them separates parameters or fields.
std::optional<std::string> take_value(std::string_view& text) {
  constexpr std::string_view others = "()/:=?";
  if (text.starts_with('"')) return take_quoted(text);
  const auto end = std::ranges::find_if_not(
      text, [others](char c) { return is(c, token_char) || others.contains(c); });
  const auto size = static_cast<std::size_t>(end - text.begin());
  if (size == 0) return std::nullopt;
  std::string value(text.substr(0, size));
  text.remove_prefix(size);
  return value;
}

}  // namespace

const std::string* Parameterized::find(std::string_view name) const noexcept {
  for (const auto& [entry, content] : parameters) {
    if (equal_ignoring_case(entry, name)) return &content;
  }
  return nullptr;
}

std::optional<Parameterized> parse_parameters(std::string_view text) {
  Parameterized parsed;
  const std::size_t semicolon = std::min(text.find(';'), text.size());
  parsed.value = trim(text.substr(0, semicolon));
  if (!is_token_or_type(parsed.value)) return std::nullopt;
  text.remove_prefix(semicolon);
  while (!text.empty()) {
    if (text.front() != ';') return std::nullopt;
    text = trim(text.substr(1));
    if (text.empty()) break;  // RFC 9110 allows a semicolon at the end, and several of them.
    if (text.front() == ';') continue;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view name = text.substr(0, equals);
    if (name.empty() || !all_are(name, token_char) || parsed.find(name) != nullptr ||
        parsed.parameters.size() == parameters_max)
      return std::nullopt;
    text.remove_prefix(equals + 1);
    auto value = take_value(text);
    if (!value) return std::nullopt;
    parsed.parameters.emplace_back(name, std::move(*value));
    text = trim(text);
  }
  return parsed;
}

}  // namespace tambour::http::detail::forms
