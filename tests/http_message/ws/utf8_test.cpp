// The validator of UTF-8 compared with the table of RFC 3629, section 4: as a whole, in pieces, and
// at each place relative to the vectors of the implementation.
#include "http_message/ws/utf8.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "support/scale.h"

namespace tambour::utf8_test {
namespace {

using http::detail::ws::is_utf8;
using http::detail::ws::Utf8Validator;

struct Range {
  std::uint8_t min = 0;
  std::uint8_t max = 0;
};

/// The valid sequences of RFC 3629, section 4.
struct Row {
  std::size_t size;
  std::array<Range, 4> bytes;
};
constexpr Row rows[] = {
    {1, {{{0x00, 0x7F}}}},
    {2, {{{0xC2, 0xDF}, {0x80, 0xBF}}}},
    {3, {{{0xE0, 0xE0}, {0xA0, 0xBF}, {0x80, 0xBF}}}},
    {3, {{{0xE1, 0xEC}, {0x80, 0xBF}, {0x80, 0xBF}}}},
    {3, {{{0xED, 0xED}, {0x80, 0x9F}, {0x80, 0xBF}}}},
    {3, {{{0xEE, 0xEF}, {0x80, 0xBF}, {0x80, 0xBF}}}},
    {4, {{{0xF0, 0xF0}, {0x90, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}}},
    {4, {{{0xF1, 0xF3}, {0x80, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}}},
    {4, {{{0xF4, 0xF4}, {0x80, 0x8F}, {0x80, 0xBF}, {0x80, 0xBF}}}},
};

enum class Verdict : std::uint8_t { invalid, incomplete, valid };

Verdict verdict_of_table(std::string_view text) {
  while (!text.empty()) {
    std::size_t taken = 0;
    for (const Row& row : rows) {
      const std::size_t size = std::min(row.size, text.size());
      bool matches = true;
      for (std::size_t i = 0; i < size; ++i) {
        const auto byte = static_cast<std::uint8_t>(text[i]);
        matches = matches && byte >= row.bytes[i].min && byte <= row.bytes[i].max;
      }
      if (!matches) continue;
      if (size < row.size) return Verdict::incomplete;
      taken = size;
      break;
    }
    if (taken == 0) return Verdict::invalid;
    text.remove_prefix(taken);
  }
  return Verdict::valid;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

Verdict verdict_of(std::string_view text, std::size_t piece_bytes = SIZE_MAX) {
  Utf8Validator validator;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view piece = text.substr(at, piece_bytes);
    if (!validator.append(bytes_of(piece))) return Verdict::invalid;
    at += piece.size();
  }
  return validator.is_complete() ? Verdict::valid : Verdict::incomplete;
}

Verdict portable_verdict_of(std::string_view text) {
  Utf8Validator validator;
  if (!validator.append_portable(bytes_of(text))) return Verdict::invalid;
  return validator.is_complete() ? Verdict::valid : Verdict::incomplete;
}

/// The bytes at which a range of the table begins or ends, and those next to them.
std::vector<char> boundary_bytes() {
  std::vector<char> bytes;
  for (const Row& row : rows) {
    for (const Range& range : row.bytes) {
      for (const int byte :
           {range.min - 1, +range.min, range.min + 1, range.max - 1, +range.max, range.max + 1})
        bytes.push_back(static_cast<char>(byte));
    }
  }
  std::ranges::sort(bytes);
  bytes.erase(std::unique(bytes.begin(), bytes.end()), bytes.end());
  return bytes;
}

TEST(Utf8, agrees_with_the_table_on_all_sequences_of_one_and_two_bytes) {
  EXPECT_TRUE(is_utf8(""));
  for (unsigned first = 0; first < 256; ++first) {
    const std::string one(1, static_cast<char>(first));
    ASSERT_EQ(verdict_of(one), verdict_of_table(one)) << first;
    for (unsigned second = 0; second < 256; ++second) {
      const std::string two = one + static_cast<char>(second);
      ASSERT_EQ(verdict_of(two), verdict_of_table(two)) << first << ' ' << second;
      ASSERT_EQ(verdict_of(two, 1), verdict_of_table(two)) << first << ' ' << second;
    }
  }
}

TEST(Utf8, agrees_with_the_table_on_all_sequences_of_three_bytes) {
  // The last byte of a sequence without a lead byte of three has been tested above.
  std::string text(3, '\0');
  for (unsigned first = 0xE0; first < 0xF8; ++first) {
    for (unsigned rest = 0; rest < 0x10000; rest += test::sanitized ? 7 : 1) {
      text = {static_cast<char>(first), static_cast<char>(rest >> 8U), static_cast<char>(rest)};
      ASSERT_EQ(verdict_of(text), verdict_of_table(text)) << testing::PrintToString(text);
    }
  }
}

TEST(Utf8, agrees_with_the_table_on_sequences_of_four_boundary_bytes) {
  const std::vector<char> bytes = boundary_bytes();
  ASSERT_GT(bytes.size(), 25U);
  std::string text(4, '\0');
  std::size_t valid = 0;
  const std::size_t step = test::sanitized ? 11 : 1;
  const std::size_t n = bytes.size();
  for (std::size_t i = 0; i < n * n * n * n; i += step) {
    text = {bytes[i % n], bytes[i / n % n], bytes[i / n / n % n], bytes[i / n / n / n]};
    const Verdict expected = verdict_of_table(text);
    valid += expected == Verdict::valid ? 1 : 0;
    ASSERT_EQ(verdict_of(text), expected) << testing::PrintToString(text);
    ASSERT_EQ(verdict_of(text, 1 + i % 3), expected) << testing::PrintToString(text);
  }
  EXPECT_GT(valid, n);
}

/// A sequence at each place of text that is long enough for vectors: across their ends, at the end
/// of the text, and after other characters.
TEST(Utf8, agrees_with_the_table_at_every_place_of_long_text) {
  const std::vector<char> bytes = boundary_bytes();
  std::mt19937 random(1);
  const auto byte = [&] { return bytes[random() % bytes.size()]; };
  const std::string fills[] = {"a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
  std::array<std::size_t, 3> seen{};
  for (std::size_t round = 0; round < test::scaled(60000); ++round) {
    const std::string& fill = fills[round % 4];
    std::string text;
    while (text.size() < round % 137) text += fill;
    std::string inserted = {byte(), byte(), byte(), byte()};
    inserted.resize(1 + random() % 4);
    if (random() % 3 == 0) inserted = fills[random() % 4];
    if (random() % 3 == 0) inserted = fills[1 + random() % 3].substr(0, 1);
    std::string whole = text + inserted;
    if (random() % 4 != 0)
      for (const std::size_t size = 24 + round % 85; whole.size() < size;) whole += fill;
    const Verdict expected = verdict_of_table(whole);
    ++seen[static_cast<std::size_t>(expected)];
    ASSERT_EQ(verdict_of(whole), expected) << testing::PrintToString(whole);
    ASSERT_EQ(verdict_of(whole, 1 + random() % 100), expected) << testing::PrintToString(whole);
    ASSERT_EQ(portable_verdict_of(whole), expected) << testing::PrintToString(whole);
  }
  EXPECT_GT(std::ranges::min(seen), test::scaled(60000) / 100);
}

TEST(Utf8, finds_an_invalid_byte_as_soon_as_it_arrives) {
  Utf8Validator validator;
  EXPECT_TRUE(validator.append(bytes_of("\xF4")));
  EXPECT_FALSE(validator.is_complete());
  // No character begins with these bytes, so the rest need not arrive.
  EXPECT_FALSE(validator.append(bytes_of("\x90")));
  validator.restart();
  EXPECT_TRUE(validator.append(bytes_of("\xE2\x82")));
  EXPECT_TRUE(validator.append(bytes_of("")));
  EXPECT_TRUE(validator.append(bytes_of("\xAC" + std::string(200, 'a') + "\xE2")));
  EXPECT_FALSE(validator.is_complete());
  EXPECT_FALSE(validator.append(bytes_of(std::string(200, 'a'))));
}

}  // namespace
}  // namespace tambour::utf8_test
