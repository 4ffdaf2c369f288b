// Parses the line "hosts:" with its sources and their actions.
#include "dns_message/nsswitch.h"

#include <algorithm>

#include "dns_message/wire_name.h"
#include "dns_message/words.h"

namespace tambour::dns::detail {
namespace {

constexpr std::array<std::string_view, 4> statuses{"success", "notfound", "unavail", "tryagain"};

Source::Kind kind_of(std::string_view module) noexcept {
  if (module == "files") return Source::Kind::files;
  if (module == "dns") return Source::Kind::dns;
  const bool is_minimal = module.starts_with("mdns") && module.ends_with("_minimal");
  return is_minimal ? Source::Kind::local_only : Source::Kind::other;
}

/// Applies the words between brackets: "NOTFOUND=return !UNAVAIL=return".
void apply_actions(std::string_view text, Source& to) {
  for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) {
    const bool is_negated = word.starts_with('!');
    if (is_negated) word.remove_prefix(1);
    const auto equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    const bool returns = equal_ignoring_case(word.substr(equals + 1), "return");
    for (std::size_t i = 0; i < statuses.size(); ++i) {
      const bool is_named = equal_ignoring_case(word.substr(0, equals), statuses[i]);
      if (is_named != is_negated) to.returns[i] = returns;
    }
  }
}

std::vector<Source> parse_line(std::string_view line) {
  std::vector<Source> sources;
  for (skip_blanks(line); !line.empty(); skip_blanks(line)) {
    if (line.front() == '[') {
      const auto end = line.find(']');
      if (!sources.empty())
        apply_actions(line.substr(1, end == line.npos ? end : end - 1), sources.back());
      line.remove_prefix(end == line.npos ? line.size() : end + 1);
      continue;
    }
    const std::string_view module = line.substr(0, line.find_first_of(" \t\r\f\v["));
    sources.push_back({.kind = kind_of(module)});
    line.remove_prefix(module.size());
  }
  return sources;
}

}  // namespace

std::vector<Source> parse_nsswitch(std::string_view text) {
  std::vector<Source> sources;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    line = line.substr(0, line.find('#'));
    skip_blanks(line);
    constexpr std::string_view database = "hosts:";
    if (line.starts_with(database)) sources = parse_line(line.substr(database.size()));
  }
  if (sources.empty()) sources = {{.kind = Source::Kind::files}, {.kind = Source::Kind::dns}};
  return sources;
}

}  // namespace tambour::dns::detail
