// Parses the dates of cookies: RFC 6265, section 5.1.1, which accepts almost any order.
#include "http/cookies/cookie_date.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "http_message/characters.h"

namespace tambour::http::detail::cookies {
namespace {

constexpr bool is_date_delimiter(char c) noexcept {
  const auto u = static_cast<unsigned char>(c);
  return u == 0x09 || (u >= 0x20 && u <= 0x2f) || (u >= 0x3b && u <= 0x40) ||
         (u >= 0x5b && u <= 0x60) || (u >= 0x7b && u <= 0x7e);
}

/// Reads `least` to `limit` digits at the beginning, which another digit must not follow.
std::optional<int> take_number(std::string_view& text, std::size_t least,
                               std::size_t limit) noexcept {
  std::size_t count = 0;
  int number = 0;
  while (count < text.size() && is_digit(text[count])) {
    if (++count > limit) return std::nullopt;
    number = number * 10 + (text[count - 1] - '0');
  }
  if (count < least) return std::nullopt;
  text.remove_prefix(count);
  return number;
}

/// The parts of a date that were found.
struct Parts {
  std::optional<std::chrono::seconds> time;
  std::optional<int> day;
  std::optional<unsigned> month;
  std::optional<int> year;
  bool is_invalid = false;  ///< A token has the form of a time, but is none.

  void read(std::string_view token) noexcept {
    if (!time && read_time(token)) return;
    std::string_view rest = token;
    if (!day) {
      day = take_number(rest, 1, 2);
      if (day) return;
    }
    if (!month && read_month(token)) return;
    if (!year) year = take_number(token, 2, 4);
  }

 private:
  bool read_time(std::string_view token) noexcept {
    const auto hours = take_number(token, 1, 2);
    if (!hours || !token.starts_with(':')) return false;
    token.remove_prefix(1);
    const auto minutes = take_number(token, 1, 2);
    if (!minutes || !token.starts_with(':')) return false;
    token.remove_prefix(1);
    const auto seconds = take_number(token, 1, 2);
    if (!seconds) return false;
    // RFC 6265, section 5.1.1: such a date fails; the token is not read as a day.
    is_invalid = is_invalid || *hours > 23 || *minutes > 59 || *seconds > 59;
    time = std::chrono::hours(*hours) + std::chrono::minutes(*minutes) +
           std::chrono::seconds(*seconds);
    return true;
  }

  bool read_month(std::string_view token) noexcept {
    static constexpr std::array<std::string_view, 12> names = {
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"};
    for (unsigned i = 0; i < names.size(); ++i) {
      if (!equal_ignoring_case(token.substr(0, 3), names[i])) continue;
      month = i + 1;
      return true;
    }
    return false;
  }
};

}  // namespace

std::optional<std::chrono::sys_seconds> parse_cookie_date(std::string_view text) noexcept {
  Parts parts;
  while (!text.empty()) {
    const auto* const begin = std::ranges::find_if_not(text, is_date_delimiter);
    const auto* const end = std::find_if(begin, text.end(), is_date_delimiter);
    parts.read(std::string_view(begin, end));
    text = std::string_view(end, text.end());
  }
  if (parts.is_invalid || !parts.time || !parts.day || !parts.month || !parts.year)
    return std::nullopt;
  int year = *parts.year;
  if (year >= 70 && year <= 99) year += 1900;
  if (year >= 0 && year <= 69) year += 2000;
  const std::chrono::year_month_day date(std::chrono::year(year), std::chrono::month(*parts.month),
                                         std::chrono::day(static_cast<unsigned>(*parts.day)));
  if (year < 1601 || !date.ok()) return std::nullopt;
  return std::chrono::sys_days(date) + *parts.time;
}

}  // namespace tambour::http::detail::cookies
