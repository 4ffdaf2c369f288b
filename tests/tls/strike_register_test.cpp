// The register of accepted early data.
#include "tls/resumption/strike_register.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

namespace tambour::strike_register_test {
namespace {

using tls::detail::StrikeRegister;

std::int64_t now_s = 0;
std::int64_t clock_of_test() noexcept { return now_s; }

std::array<unsigned char, 32> hello(std::uint64_t number) {
  std::array<unsigned char, 32> random{};
  std::memcpy(random.data(), &number, sizeof number);
  return random;
}

/// The time within which OpenSSL accepts the age of a ticket.
constexpr std::int64_t window_s = 11;

TEST(StrikeRegister, accepts_each_hello_once_within_the_window) {
  for (std::int64_t start = 1'000'000; start < 1'000'000 + 2 * StrikeRegister::period_s; ++start) {
    now_s = start;
    StrikeRegister strikes(&clock_of_test);
    EXPECT_TRUE(strikes.accept(hello(1)));
    EXPECT_TRUE(strikes.accept(hello(2)));
    for (now_s = start; now_s <= start + window_s; ++now_s) {
      EXPECT_FALSE(strikes.accept(hello(1))) << now_s - start;
      EXPECT_TRUE(strikes.accept(hello(static_cast<std::uint64_t>(now_s))));
    }
  }
}

TEST(StrikeRegister, forgets_and_bounds_what_it_remembers) {
  now_s = 1'000'000;
  StrikeRegister strikes(&clock_of_test);
  std::uint64_t accepted = 0;
  for (std::uint64_t i = 0; i < 2 * StrikeRegister::hellos_per_period_max; ++i)
    accepted += strikes.accept(hello(i)) ? 1 : 0;
  EXPECT_EQ(accepted, StrikeRegister::hellos_per_period_max);
  EXPECT_FALSE(strikes.accept(hello(0)));
  now_s += StrikeRegister::period_s;
  EXPECT_FALSE(strikes.accept(hello(0)));
  EXPECT_TRUE(strikes.accept(hello(accepted)));
  now_s += 2 * StrikeRegister::period_s;
  EXPECT_TRUE(strikes.accept(hello(0)));
}

TEST(StrikeRegister, accepts_nothing_if_the_clock_is_set_back) {
  now_s = 1'000'000;
  StrikeRegister strikes(&clock_of_test);
  EXPECT_TRUE(strikes.accept(hello(1)));
  now_s += 10 * StrikeRegister::period_s;
  EXPECT_TRUE(strikes.accept(hello(2)));
  now_s = 1'000'000;
  EXPECT_FALSE(strikes.accept(hello(1)));
  EXPECT_FALSE(strikes.accept(hello(3)));
}

TEST(StrikeRegister, has_its_own_identifier) {
  StrikeRegister one;
  StrikeRegister two;
  EXPECT_NE(one.identifier(), two.identifier());
}

TEST(StrikeRegister, is_another_one_in_a_forked_child) {
  now_s = 1'000'000;
  StrikeRegister strikes(&clock_of_test);
  const StrikeRegister::Identifier identifier = strikes.identifier();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool is_other = strikes.identifier() != identifier;
    const bool works = strikes.accept(hello(1)) && !strikes.accept(hello(1));
    ::_exit(is_other && works ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(strikes.identifier(), identifier);
}

}  // namespace
}  // namespace tambour::strike_register_test
