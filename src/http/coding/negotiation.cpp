// Parses Accept-Encoding, and chooses the coding of a response.
#include "http/coding/negotiation.h"

#include <algorithm>
#include <cstddef>

#include "http/coding/lists.h"
#include "http_message/characters.h"

namespace tambour::http::detail::coding {
namespace {

/// RFC 9110, section 12.4.2: "0" or "1" with up to three digits after the point.
std::optional<int> parse_quality(std::string_view text) noexcept {
  if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1')) return std::nullopt;
  if (text.size() > 1 && text[1] != '.') return std::nullopt;
  int quality = (text[0] - '0') * 1000;
  int weight = 100;
  for (const char c : text.substr(std::min<std::size_t>(text.size(), 2))) {
    if (!is_digit(c)) return std::nullopt;
    quality += (c - '0') * weight;
    weight /= 10;
  }
  if (quality > 1000) return std::nullopt;
  return quality;
}

/// Browsers name five codings. A long list would be searched for each coding.
constexpr std::size_t elements_max = 64;

/// No value if Accept-Encoding does not name the coding among the first ones.
std::optional<int> quality_named(const Fields& fields, std::string_view coding) noexcept {
  std::size_t elements = 0;
  for (std::size_t at = fields.find("Accept-Encoding"); at != fields.size();
       at = fields.find("Accept-Encoding", at + 1)) {
    for (const std::string_view element : ListElements(fields[at].value)) {
      if (++elements > elements_max) return std::nullopt;
      const auto preference = parse_preference(element);
      if (preference && equal_ignoring_case(preference->name, coding)) return preference->quality;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Preference> parse_preference(std::string_view element) noexcept {
  std::size_t semicolon = std::min(element.find(';'), element.size());
  Preference preference{.name = trim(element.substr(0, semicolon))};
  while (semicolon < element.size()) {
    element.remove_prefix(semicolon + 1);
    semicolon = std::min(element.find(';'), element.size());
    const std::string_view parameter = trim(element.substr(0, semicolon));
    if (!parameter.starts_with("q=") && !parameter.starts_with("Q=")) continue;
    const auto quality = parse_quality(parameter.substr(2));
    if (!quality) return std::nullopt;
    preference.quality = *quality;
  }
  return preference;
}

int quality_of(const Fields& fields, std::string_view coding, bool any_counts) noexcept {
  auto quality = quality_named(fields, coding);
  // "x-gzip" is the same coding: section 8.4.1.3.
  if (!quality && coding == "gzip") quality = quality_named(fields, "x-gzip");
  if (!quality && any_counts) quality = quality_named(fields, "*");
  return quality.value_or(0);
}

std::optional<Coding> choose_coding(const Fields& fields,
                                    std::span<const Coding> offered) noexcept {
  std::optional<Coding> best;
  // A client that names "identity" prefers it to codings of less quality.
  int limit = quality_named(fields, "identity").value_or(0) - 1;
  if (limit < 0) limit = 0;
  for (const Coding coding : offered) {
    if (!is_available(coding)) continue;
    const int quality = quality_of(fields, name_of(coding), true);
    if (quality <= limit) continue;
    best = coding;
    limit = quality;
  }
  return best;
}

std::string available_codings() {
  std::string list;
  for (const Coding coding : {Coding::zstd, Coding::br, Coding::gzip}) {
    if (is_available(coding)) list.append(list.empty() ? "" : ", ").append(name_of(coding));
  }
  // Without any, the body has to be sent as it is.
  return list.empty() ? "identity" : list;
}

}  // namespace tambour::http::detail::coding
