// Checks that the fuzzer finds bugs: each mutant of the library is detected within a limited number
// of inputs, and without a mutant the same inputs find nothing.
#include <cstdint>
#include <iostream>
#include <optional>

#include <gtest/gtest.h>

#include "base/canary.h"
#include "fuzz/player.h"
#include "fuzz/random_input.h"

namespace tambour {
namespace {

constexpr std::uint64_t inputs_max = 5000;

std::optional<std::uint64_t> first_seed_that_fails(base::Canary canary, fuzz::Worlds worlds) {
  base::canary = canary;
  std::optional<std::uint64_t> found;
  for (std::uint64_t seed = 1; seed <= inputs_max && !found; ++seed) {
    const fuzz::Outcome outcome = fuzz::play(fuzz::random_input(seed), worlds);
    if (outcome.failure.empty()) continue;
    found = seed;
    std::cout << "canary " << int(canary) << ", input " << seed << ": " << outcome.failure << '\n';
    if (canary == base::Canary::none) std::cout << outcome.trace;
  }
  base::canary = base::Canary::none;
  return found;
}

TEST(Canaries, are_not_seen_where_there_are_none) {
  EXPECT_FALSE(first_seed_that_fails(base::Canary::none, fuzz::Worlds::all));
  EXPECT_FALSE(first_seed_that_fails(base::Canary::none, fuzz::Worlds::simulated));
}

TEST(Canaries, are_found_in_all_worlds) {
  EXPECT_TRUE(first_seed_that_fails(base::Canary::stopped_is_told, fuzz::Worlds::all));
  EXPECT_TRUE(first_seed_that_fails(base::Canary::pushed_back_lost, fuzz::Worlds::all));
}

TEST(Canaries, are_found_by_the_simulator) {
  EXPECT_TRUE(first_seed_that_fails(base::Canary::stopped_is_told, fuzz::Worlds::simulated));
  EXPECT_TRUE(first_seed_that_fails(base::Canary::pushed_back_lost, fuzz::Worlds::simulated));
}

}  // namespace
}  // namespace tambour
