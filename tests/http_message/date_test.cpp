// Dates in HTTP fields.
#include "http_message/date.h"

#include <cerrno>
#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <tambour/http/date.h>

namespace tambour::date_test {
namespace {

using namespace std::chrono_literals;
using http::format_date;
using http::parse_date;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

constexpr sys_seconds example(784111777s);  // RFC 9110, section 5.6.7.

TEST(Date, has_a_format) {
  EXPECT_EQ(format_date(example), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(format_date(sys_seconds(0s)), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(format_date(sys_days(2024y / 2 / 29) + 23h + 59min + 59s),
            "Thu, 29 Feb 2024 23:59:59 GMT");
  EXPECT_EQ(format_date(sys_days(9999y / 12 / 31)), "Fri, 31 Dec 9999 00:00:00 GMT");
  EXPECT_EQ(format_date(sys_days(1066y / 10 / 14)), "Sun, 14 Oct 1066 00:00:00 GMT");
}

TEST(Date, is_read_in_three_formats) {
  const auto now = sys_days(2026y / 11 / 24);
  for (const char* text : {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                           "Sun Nov  6 08:49:37 1994"})
    EXPECT_EQ(parse_date(text, now), example) << text;
  EXPECT_EQ(parse_date("Wed Nov 16 08:49:37 1994"), example + 240h);
  EXPECT_EQ(parse_date("Sun, 06 Nov 1994 08:49:60 GMT"), example + 23s);
}

TEST(Date, has_the_century_that_is_near) {
  const auto now = sys_days(2026y / 11 / 24);
  EXPECT_EQ(parse_date("Wednesday, 01-Jan-76 00:00:00 GMT", now), sys_days(2076y / 1 / 1));
  EXPECT_EQ(parse_date("Saturday, 01-Jan-77 00:00:00 GMT", now), sys_days(1977y / 1 / 1));
  EXPECT_EQ(parse_date("Saturday, 01-Jan-00 00:00:00 GMT", now), sys_days(2000y / 1 / 1));
  EXPECT_EQ(parse_date("Friday, 01-Jan-00 00:00:00 GMT", sys_days(2060y / 1 / 1)),
            sys_days(2100y / 1 / 1));
}

TEST(Date, is_rejected_if_it_is_malformed) {
  for (const char* text : {"",
                           "Sun",
                           "Sun, 06 Nov 1994 08:49:37",
                           "Sun, 06 Nov 1994 08:49:37 GMT ",
                           " Sun, 06 Nov 1994 08:49:37 GMT",
                           "Mon, 06 Nov 1994 08:49:37 GMT",
                           "sun, 06 Nov 1994 08:49:37 GMT",
                           "Sun, 6 Nov 1994 08:49:37 GMT",
                           "Sun, 06 nov 1994 08:49:37 GMT",
                           "Sun, 06 Nov 94 08:49:37 GMT",
                           "Sun, 06 Nov 1994 24:00:00 GMT",
                           "Sun, 06 Nov 1994 08:60:00 GMT",
                           "Sun, 06 Nov 1994 08:49:61 GMT",
                           "Sun, 06 Nov 1994 8:49:37 GMT",
                           "Sun, 06 Nov 1994 08:49:37 UTC",
                           "Sun, 06 Nov 1994 08:49:37 +0000",
                           "Thu, 30 Feb 2023 00:00:00 GMT",
                           "Wed, 00 Mar 2023 00:00:00 GMT",
                           "Sun, 06-Nov-94 08:49:37 GMT",
                           "Sunday, 06-Nov-1994 08:49:37 GMT",
                           "Sun Nov 6 08:49:37 1994",
                           "Sun Nov  6 08:49:37 94",
                           "Sun Nov  6 08:49:37 1994 GMT",
                           "784111777",
                           "-1"})
    EXPECT_EQ(parse_date(text).error(), system_error(EINVAL)) << text;
}

TEST(Date, is_read_as_it_was_written) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10000; ++i) {
    const sys_seconds time(seconds(static_cast<std::int64_t>(random() % 253'402'300'800)));
    ASSERT_EQ(parse_date(format_date(time)), time);
  }
}

TEST(Date, has_other_formats) {
  std::string text = "[";
  http::append_time(text, example, "%d/%b/%Y:%T +0000");  // Of access logs.
  EXPECT_EQ(text, "[06/Nov/1994:08:49:37 +0000");
  constexpr std::string_view compact = "%Y%m%d %T";  // Of HSTS lists.
  text.clear();
  http::append_time(text, example, compact);
  EXPECT_EQ(text, "19941106 08:49:37");
  EXPECT_EQ(http::parse_time(text, compact), example);
  for (const char* bad : {"", "19941106 08:49:3", "19941106 08:49:370", "19941306 08:49:37",
                          "19940006 08:49:37", "19940230 08:49:37", "19941106T08:49:37"})
    EXPECT_EQ(http::parse_time(bad, compact), std::nullopt) << bad;
}

TEST(Date, is_cached_for_a_second) {
  const std::int64_t ns = 784111777'000000000;
  EXPECT_EQ(http::cached_date(ns), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(http::cached_date(ns + 999'999'999), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(http::cached_date(ns + 1'000'000'000), "Sun, 06 Nov 1994 08:49:38 GMT");
  EXPECT_EQ(http::cached_date(ns), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(http::cached_date_line(ns), "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
}

}  // namespace
}  // namespace tambour::date_test
