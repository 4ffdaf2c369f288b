// The Range field, and preconditions.
#include "http/files/ranges.h"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http/files/conditions.h"

namespace tambour::ranges_test {
namespace {

using namespace std::chrono_literals;
using http::parse_ranges;
using http::Validators;
using http::Verdict;
using Ranges = std::vector<http::ByteRange>;

TEST(Ranges, are_read) {
  EXPECT_EQ(parse_ranges("bytes=0-0", 10), (Ranges{{0, 1}}));
  EXPECT_EQ(parse_ranges("bytes=2-5", 10), (Ranges{{2, 6}}));
  EXPECT_EQ(parse_ranges("bytes=2-", 10), (Ranges{{2, 10}}));
  EXPECT_EQ(parse_ranges("bytes=-3", 10), (Ranges{{7, 10}}));
  EXPECT_EQ(parse_ranges("bytes=-30", 10), (Ranges{{0, 10}}));
  EXPECT_EQ(parse_ranges("bytes=5-99999999999999999999999", 10), (Ranges{{5, 10}}));
  EXPECT_EQ(parse_ranges("bytes=0-18446744073709551615", 10), (Ranges{{0, 10}}));
  EXPECT_EQ(parse_ranges("BYTES=1-1 , 3-4\t,,-1", 10), (Ranges{{1, 2}, {3, 5}, {9, 10}}));
  EXPECT_EQ(parse_ranges("bytes=1-1,20-30", 10), (Ranges{{1, 2}}));
}

TEST(Ranges, without_a_byte_are_not_satisfiable) {
  for (const char* text : {"bytes=10-", "bytes=10-20", "bytes=-0", "bytes=11-12,99-"})
    EXPECT_EQ(parse_ranges(text, 10), Ranges()) << text;
}

/// Some clients send Range with each request. nginx, Apache and Go answer with the empty file, too.
TEST(Ranges, of_nothing_are_ignored) {
  for (const char* text : {"bytes=0-", "bytes=0-0", "bytes=-1", "bytes=-0", "bytes=5-9,-1"})
    EXPECT_EQ(parse_ranges(text, 0), std::nullopt) << text;
}

TEST(Ranges, that_are_malformed_are_ignored) {
  for (const char* text : {"", "bytes", "bytes=", "bytes=,", "bytes=-", "bytes=a-", "bytes=1",
                           "bytes=5-2", "bytes=1-2x", "bytes=+1-2", "bytes=1 -2", "lines=1-2",
                           "bytes 1-2", "bytes=--1", "bytes=1-2-3"})
    EXPECT_EQ(parse_ranges(text, 10), std::nullopt) << text;
}

TEST(Ranges, that_are_too_many_or_overlap_are_ignored) {
  std::string text = "bytes=0-0";
  for (int i = 1; i < 16; ++i) text += "," + std::to_string(i) + "-" + std::to_string(i);
  EXPECT_EQ(parse_ranges(text, 100)->size(), 16U);
  EXPECT_EQ(parse_ranges(text + ",20-20", 100), std::nullopt);
  EXPECT_EQ(parse_ranges("bytes=0-,0-", 100), std::nullopt);
  EXPECT_EQ(parse_ranges("bytes=0-59,30-99", 100), std::nullopt);
  EXPECT_EQ(parse_ranges("bytes=0-49,30-79", 100)->size(), 2U);
}

TEST(EntityTags, are_found_in_lists) {
  using http::has_tag;
  for (const char* list :
       {"\"a\"", "*", " * ", "\"b\", \"a\"", ",\"b\",,\t\"a\" ,", "W/\"b\",\"a\""})
    EXPECT_TRUE(has_tag(list, "\"a\"", false)) << list;
  for (const char* list : {"", "a", "\"b\"", "\"A\"", "W/\"a\"", "\"a", "\"b\" x \"a\"", "w/\"a\""})
    EXPECT_FALSE(has_tag(list, "\"a\"", false)) << list;
  EXPECT_TRUE(has_tag("W/\"a\"", "\"a\"", true));
  EXPECT_TRUE(has_tag("\"a,b\"", "\"a,b\"", true));
}

http::Fields fields_of(std::initializer_list<std::pair<const char*, const char*>> pairs) {
  http::Fields fields;
  for (const auto& [name, value] : pairs) or_throw(fields.add(name, value), name);
  return fields;
}

TEST(Conditions, are_checked_in_their_order) {
  const Validators now{.tag = "\"a\"", .modified = std::chrono::sys_seconds(784111777s)};
  constexpr const char* before = "Sun, 06 Nov 1994 08:49:36 GMT";
  constexpr const char* same = "Sun, 06 Nov 1994 08:49:37 GMT";
  const auto verdict = [&](std::initializer_list<std::pair<const char*, const char*>> pairs) {
    return check_conditions(fields_of(pairs), now);
  };
  EXPECT_EQ(verdict({}), Verdict::send);
  EXPECT_EQ(verdict({{"If-None-Match", "\"a\""}}), Verdict::not_modified);
  EXPECT_EQ(verdict({{"If-None-Match", "W/\"a\""}}), Verdict::not_modified);
  EXPECT_EQ(verdict({{"If-None-Match", "\"b\""}, {"If-None-Match", "\"a\""}}),
            Verdict::not_modified);
  EXPECT_EQ(verdict({{"If-None-Match", "*"}}), Verdict::not_modified);
  EXPECT_EQ(verdict({{"If-None-Match", "\"b\""}}), Verdict::send);
  EXPECT_EQ(verdict({{"If-Modified-Since", same}}), Verdict::not_modified);
  EXPECT_EQ(verdict({{"If-Modified-Since", before}}), Verdict::send);
  EXPECT_EQ(verdict({{"If-Modified-Since", "yesterday"}}), Verdict::send);
  EXPECT_EQ(verdict({{"If-None-Match", "\"b\""}, {"If-Modified-Since", same}}), Verdict::send);
  EXPECT_EQ(verdict({{"If-Match", "\"a\""}}), Verdict::send);
  EXPECT_EQ(verdict({{"If-Match", "W/\"a\""}}), Verdict::precondition_failed);
  EXPECT_EQ(verdict({{"If-Match", "\"b\""}}), Verdict::precondition_failed);
  EXPECT_EQ(verdict({{"If-Unmodified-Since", same}}), Verdict::send);
  EXPECT_EQ(verdict({{"If-Unmodified-Since", before}}), Verdict::precondition_failed);
  EXPECT_EQ(verdict({{"If-Match", "*"}, {"If-Unmodified-Since", before}}), Verdict::send);
  EXPECT_EQ(verdict({{"If-Match", "\"b\""}, {"If-None-Match", "\"a\""}}),
            Verdict::precondition_failed);
  const auto counts = [&](const char* value) {
    return range_counts(fields_of({{"If-Range", value}}), now);
  };
  EXPECT_TRUE(range_counts({}, now));
  EXPECT_TRUE(counts("\"a\""));
  EXPECT_FALSE(counts("W/\"a\""));
  EXPECT_FALSE(counts("\"b\""));
  EXPECT_TRUE(counts(same));
  EXPECT_FALSE(counts(before));
  EXPECT_FALSE(counts("x"));
}

}  // namespace
}  // namespace tambour::ranges_test
