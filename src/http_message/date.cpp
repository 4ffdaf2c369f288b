// Dates in HTTP fields.
#include "http_message/date.h"

#include <cerrno>
#include <cstddef>
#include <optional>

#include <tambour/http/date.h>

#include "base/failure.h"

namespace tambour::http {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;
using std::chrono::weekday;
using std::chrono::year;
using std::chrono::year_month_day;
using std::chrono::years;

constexpr std::array<std::string_view, 7> day_names = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                       "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> month_names = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

constexpr std::string_view date_field_name = "Date: ";
constexpr std::string_view http_format = "%a, %d %b %Y %T GMT";

void put_number(char* at, unsigned value, unsigned digits) noexcept {
  for (unsigned i = digits; i-- > 0; value /= 10) at[i] = static_cast<char>('0' + value % 10);
}

/// Writes texts from the front of a place that is large enough.
class Writer {
 public:
  explicit Writer(char* to) noexcept : to_(to) {}

  void text(std::string_view bytes) noexcept { to_ += bytes.copy(to_, bytes.size()); }
  void number(unsigned value, unsigned digits) noexcept {
    put_number(to_, value, digits);
    to_ += digits;
  }
  [[nodiscard]] char* end() const noexcept { return to_; }

 private:
  char* to_;
};

/// Returns the end of the text.
char* write_time(sys_seconds time, std::string_view format, char* to) noexcept {
  const sys_days day = std::chrono::floor<days>(time);
  const year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  Writer writer(to);
  while (!format.empty()) {
    const bool is_conversion = format.starts_with('%');
    if (is_conversion) format.remove_prefix(1);
    const std::string_view next = format.substr(0, 1);
    format.remove_prefix(1);
    switch (is_conversion ? next.front() : '\0') {
      case 'b':
        writer.text(month_names[static_cast<unsigned>(date.month()) - 1]);
        break;
      case 'd':
        writer.number(static_cast<unsigned>(date.day()), 2);
        break;
      case 'm':
        writer.number(static_cast<unsigned>(date.month()), 2);
        break;
      case 'T':
        writer.number(static_cast<unsigned>(clock.hours().count()), 2);
        writer.text(":");
        writer.number(static_cast<unsigned>(clock.minutes().count()), 2);
        writer.text(":");
        writer.number(static_cast<unsigned>(clock.seconds().count()), 2);
        break;
      case 'Y':
        writer.number(static_cast<unsigned>(static_cast<int>(date.year())), 4);
        break;
      default:
        writer.text(next);
    }
  }
  return writer.end();
}

/// Takes tokens of fixed formats from the front of a text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) noexcept : text_(text) {}

  [[nodiscard]] bool has_failed() const noexcept { return failed_; }
  [[nodiscard]] bool has_ended() const noexcept { return text_.empty() && !failed_; }

  void literal(std::string_view expected) noexcept {
    if (!text_.starts_with(expected)) return fail();
    text_.remove_prefix(expected.size());
  }

  int number(std::size_t digits) noexcept {
    if (text_.size() < digits) return fail(), 0;
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (text_[i] < '0' || text_[i] > '9') return fail(), 0;
      value = value * 10 + (text_[i] - '0');
    }
    text_.remove_prefix(digits);
    return value;
  }

  /// Returns the index of the name that the text begins with.
  template <std::size_t count>
  unsigned name(const std::array<std::string_view, count>& names, std::size_t size) noexcept {
    for (unsigned i = 0; i < count; ++i) {
      const std::string_view wanted = names[i].substr(0, size);
      if (!text_.starts_with(wanted)) continue;
      text_.remove_prefix(wanted.size());
      return i;
    }
    return fail(), 0;
  }

  /// A day of asctime(3), whose first digit may be a space.
  int padded_number() noexcept {
    if (!text_.starts_with(' ')) return number(2);
    literal(" ");
    return number(1);
  }

  /// "08:49:37"
  seconds time_of_day() noexcept {
    const int hour = number(2);
    literal(":");
    const int minute = number(2);
    literal(":");
    // 60 is a leap second.
    const int second = number(2);
    if (hour > 23 || minute > 59 || second > 60) fail();
    return hours(hour) + minutes(minute) + seconds(second);
  }

 private:
  void fail() noexcept { failed_ = true; }

  std::string_view text_;
  bool failed_ = false;
};

struct Parsed {
  std::optional<unsigned> day_of_week{};
  int day = 0;
  unsigned month = 0;  ///< From 0.
  int year = 0;
  seconds time{};
};

/// Parses a text of a format of strptime(3), of which it knows the conversions of append_time(),
/// the name of the day with three or all letters (%a, %A), a day that is padded with a space (%e),
/// and a year of two digits (%y).
std::optional<Parsed> parse(std::string_view text, std::string_view format) noexcept {
  Scanner scanner(text);
  Parsed parsed;
  while (!format.empty()) {
    const bool is_conversion = format.starts_with('%');
    if (is_conversion) format.remove_prefix(1);
    const std::string_view next = format.substr(0, 1);
    format.remove_prefix(1);
    switch (is_conversion ? next.front() : '\0') {
      case 'a':
        parsed.day_of_week = scanner.name(day_names, 3);
        break;
      case 'A':
        parsed.day_of_week = scanner.name(day_names, std::string_view::npos);
        break;
      case 'b':
        parsed.month = scanner.name(month_names, 3);
        break;
      case 'd':
        parsed.day = scanner.number(2);
        break;
      case 'e':
        parsed.day = scanner.padded_number();
        break;
      case 'm':
        parsed.month = static_cast<unsigned>(scanner.number(2)) - 1;
        break;
      case 'T':
        parsed.time = scanner.time_of_day();
        break;
      case 'y':
        parsed.year = scanner.number(2);
        break;
      case 'Y':
        parsed.year = scanner.number(4);
        break;
      default:
        scanner.literal(next);
    }
  }
  if (!scanner.has_ended()) return std::nullopt;
  return parsed;
}

Result<sys_seconds> time_of(const Parsed& parsed) noexcept {
  const year_month_day date{year(parsed.year), std::chrono::month(parsed.month + 1),
                            std::chrono::day(static_cast<unsigned>(parsed.day))};
  if (!date.ok()) return detail::base::failure(EINVAL);
  if (parsed.day_of_week && weekday(sys_days(date)).c_encoding() != *parsed.day_of_week)
    return detail::base::failure(EINVAL);
  return sys_days(date) + parsed.time;
}

}  // namespace

/// Not with write_time(), which takes 500 instructions in place of 280: files have a date in each
/// response.
void write_date(sys_seconds time, std::span<char, date_size> to) noexcept {
  const sys_days day = std::chrono::floor<days>(time);
  const year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  constexpr std::string_view pattern = "Sun, 06 Nov 1994 08:49:37 GMT";
  pattern.copy(to.data(), to.size());
  day_names[weekday(day).c_encoding()].copy(to.data(), 3);
  put_number(&to[5], static_cast<unsigned>(date.day()), 2);
  month_names[static_cast<unsigned>(date.month()) - 1].copy(&to[8], 3);
  put_number(&to[12], static_cast<unsigned>(static_cast<int>(date.year())), 4);
  put_number(&to[17], static_cast<unsigned>(clock.hours().count()), 2);
  put_number(&to[20], static_cast<unsigned>(clock.minutes().count()), 2);
  put_number(&to[23], static_cast<unsigned>(clock.seconds().count()), 2);
}

void append_time(std::string& to, sys_seconds time, std::string_view format) {
  std::array<char, 64> text;
  char* const end = write_time(time, format, text.data());
  to.append(text.data(), end);
}

std::optional<sys_seconds> parse_time(std::string_view text, std::string_view format) noexcept {
  const auto parsed = parse(text, format);
  if (!parsed) return std::nullopt;
  const Result<sys_seconds> time = time_of(*parsed);
  if (!time) return std::nullopt;
  return *time;
}

std::string format_date(sys_seconds time) {
  std::array<char, date_size> text;
  write_date(time, text);
  return {text.data(), text.size()};
}

std::string_view cached_date(std::int64_t wall_ns) noexcept {
  return cached_date_line(wall_ns).substr(date_field_name.size(), date_size);
}

std::string_view cached_date_line(std::int64_t wall_ns) noexcept {
  static constexpr std::string_view end = "\r\n";
  struct Cache {
    std::int64_t second = -1;
    std::array<char, date_field_name.size() + date_size + end.size()> text{};
  };
  static constinit thread_local Cache cache;
  const std::int64_t second = wall_ns / 1'000'000'000;
  if (second != cache.second) [[unlikely]] {
    char* const date =
        cache.text.data() + date_field_name.copy(cache.text.data(), date_field_name.size());
    write_date(sys_seconds(seconds(second)), std::span<char, date_size>(date, date_size));
    end.copy(date + date_size, end.size());
    cache.second = second;
  }
  return {cache.text.data(), cache.text.size()};
}

Result<sys_seconds> parse_date(std::string_view text, sys_seconds now) noexcept {
  auto parsed = parse(text, http_format);
  if (!parsed) parsed = parse(text, "%a %b %e %T %Y");  // asctime(3).
  if (parsed) return time_of(*parsed);
  parsed = parse(text, "%A, %d-%b-%y %T GMT");  // RFC 850.
  if (!parsed) return detail::base::failure(EINVAL);
  const int this_year = static_cast<int>(year_month_day(std::chrono::floor<days>(now)).year());
  parsed->year += this_year / 100 * 100 + 100;
  while (parsed->year > this_year + 50) parsed->year -= 100;
  return time_of(*parsed);
}

}  // namespace tambour::http
