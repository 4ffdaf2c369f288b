// Parses lists of challenges, whose commas separate both challenges and their parameters.
#include "http_message/auth/challenge.h"

#include <algorithm>
#include <optional>

#include "http_message/auth/scanner.h"

namespace tambour::http::detail::auth {
namespace {

/// Where a list may have empty elements.
void skip_separators(Scanner& scanner) noexcept {
  do {
    scanner.skip_spaces();
  } while (scanner.take(','));
}

/// Takes "name = value". False, and nothing is taken, if there is no such text; a value that is
/// malformed makes `is_malformed` true.
bool take_parameter(Scanner& scanner, Challenge& into, bool& is_malformed) {
  Scanner ahead = scanner;
  const std::string_view name = ahead.take_token();
  ahead.skip_spaces();
  if (name.empty() || !ahead.take('=')) return false;
  ahead.skip_spaces();
  auto value = ahead.take_value();
  ahead.skip_spaces();
  const bool ends_here = ahead.is_at_end() || ahead.rest().starts_with(',');
  if (!value || !ends_here) {
    is_malformed = true;
    return false;
  }
  into.parameters.emplace_back(base::lower_case(std::string(name)), std::move(*value));
  scanner = ahead;
  return true;
}

/// Takes credentials such as those of Negotiate, which are not kept.
bool take_token68(Scanner& scanner) noexcept {
  const std::string_view text = scanner.rest().substr(0, scanner.rest().find_first_of(", \t"));
  const std::size_t padding = std::min(text.find('='), text.size());
  const auto is_token68 = [](char character) {
    return is_letter(character) || is_digit(character) ||
           std::string_view("-._~+/").find(character) != std::string_view::npos;
  };
  if (padding == 0 || !std::ranges::all_of(text.substr(0, padding), is_token68) ||
      text.find_first_not_of('=', padding) != std::string_view::npos)
    return false;
  Scanner ahead(scanner.rest().substr(text.size()));
  ahead.skip_spaces();
  if (!ahead.is_at_end() && !ahead.rest().starts_with(',')) return false;
  scanner = ahead;
  return true;
}

/// Takes the parameters up to the next challenge. False if one is malformed.
bool take_parameters(Scanner& scanner, Challenge& into) {
  bool is_malformed = false;
  while (take_parameter(scanner, into, is_malformed)) skip_separators(scanner);
  return !is_malformed;
}

void parse_field(std::string_view value, std::vector<Challenge>& into) {
  Scanner scanner(value);
  skip_separators(scanner);
  while (!scanner.is_at_end()) {
    Challenge challenge;
    challenge.scheme = scanner.take_token();
    if (challenge.scheme.empty()) return;
    const bool has_space = scanner.rest().starts_with(' ') || scanner.rest().starts_with('\t');
    if (!has_space && !scanner.is_at_end() && !scanner.rest().starts_with(',')) return;
    scanner.skip_spaces();
    if (!scanner.is_at_end() && !scanner.rest().starts_with(',')) {
      const bool has_parameters = take_parameters(scanner, challenge);
      if (!has_parameters) return;
      if (challenge.parameters.empty() && !take_token68(scanner)) return;
    }
    into.push_back(std::move(challenge));
    skip_separators(scanner);
  }
}

}  // namespace

const std::string* Challenge::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(
      parameters, name, [](const auto& entry) { return std::string_view(entry.first); });
  return found == parameters.end() ? nullptr : &found->second;
}

std::vector<Challenge> parse_challenges(const Fields& fields, std::string_view name) {
  std::vector<Challenge> challenges;
  for (const Field field : fields) {
    if (equal_ignoring_case(field.name, name)) parse_field(field.value, challenges);
  }
  return challenges;
}

Challenge parse_authentication_info(std::string_view value) {
  Challenge info;
  Scanner scanner(value);
  skip_separators(scanner);
  static_cast<void>(take_parameters(scanner, info));
  return info;
}

}  // namespace tambour::http::detail::auth
