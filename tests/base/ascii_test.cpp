// Letters and digits of ASCII: the same for each byte as in the C locale.
#include "base/ascii.h"

#include <cctype>
#include <string>

#include <gtest/gtest.h>

namespace tambour::ascii_test {
namespace {

TEST(Ascii, classes_and_cases_are_those_of_the_c_locale) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    EXPECT_EQ(detail::base::is_digit(c), std::isdigit(byte) != 0) << byte;
    EXPECT_EQ(detail::base::is_letter(c), std::isalpha(byte) != 0) << byte;
    EXPECT_EQ(detail::base::to_lower(c), static_cast<char>(std::tolower(byte))) << byte;
    EXPECT_EQ(detail::base::to_upper(c), static_cast<char>(std::toupper(byte))) << byte;
    EXPECT_EQ(detail::base::hex_value(c) >= 0, std::isxdigit(byte) != 0) << byte;
  }
  EXPECT_EQ(detail::base::hex_value('9'), 9);
  EXPECT_EQ(detail::base::hex_value('a'), 10);
  EXPECT_EQ(detail::base::hex_value('F'), 15);
}

TEST(Ascii, texts_are_compared_without_regard_to_case) {
  EXPECT_TRUE(detail::base::equal_ignoring_case("", ""));
  EXPECT_TRUE(detail::base::equal_ignoring_case("Content-Type", "cONTENT-tYPE"));
  EXPECT_FALSE(detail::base::equal_ignoring_case("a", "ab"));
  EXPECT_FALSE(detail::base::equal_ignoring_case("a", "b"));
  // Bytes that differ in the bit of the case only, but are no letters.
  EXPECT_FALSE(detail::base::equal_ignoring_case("[", "{"));
  EXPECT_FALSE(detail::base::equal_ignoring_case("@", "`"));
  EXPECT_FALSE(detail::base::equal_ignoring_case("\xC1", "\xE1"));
  EXPECT_EQ(detail::base::lower_case("\xC1 Z[@"), "\xC1 z[@");
}

}  // namespace
}  // namespace tambour::ascii_test
