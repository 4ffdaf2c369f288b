// Checks that the fuzzer finds bugs: each mutant of the library is detected within a limited number
// of inputs, and without a mutant the same inputs find nothing.
#include <cstdint>
#include <iostream>
#include <optional>

#include <gtest/gtest.h>

#include "base/mutant.h"
#include "fuzz/player.h"
#include "fuzz/random_input.h"
#include "support/scale.h"

namespace tambour::mutants_test {
namespace {

constexpr std::uint64_t inputs_max = test::sanitized ? 1000 : 5000;

std::optional<std::uint64_t> first_seed_that_fails(detail::base::Mutant mutant,
                                                   fuzz::BackendSet backends) {
  detail::base::mutant = mutant;
  std::optional<std::uint64_t> found;
  for (std::uint64_t seed = 1; seed <= inputs_max && !found; ++seed) {
    const fuzz::Outcome outcome = fuzz::play(fuzz::random_input(seed), backends);
    if (outcome.failure.empty()) continue;
    found = seed;
    std::cout << "mutant " << int(mutant) << ", input " << seed << ": " << outcome.failure << '\n';
    if (mutant == detail::base::Mutant::none) std::cout << outcome.trace;
  }
  detail::base::mutant = detail::base::Mutant::none;
  return found;
}

TEST(Mutants, are_not_reported_without_a_mutant) {
  EXPECT_FALSE(first_seed_that_fails(detail::base::Mutant::none, fuzz::BackendSet::all));
  EXPECT_FALSE(first_seed_that_fails(detail::base::Mutant::none, fuzz::BackendSet::simulated));
}

TEST(Mutants, are_found_on_every_backend) {
  EXPECT_TRUE(
      first_seed_that_fails(detail::base::Mutant::stopped_is_invoked, fuzz::BackendSet::all));
  EXPECT_TRUE(first_seed_that_fails(detail::base::Mutant::pushed_back_lost, fuzz::BackendSet::all));
}

TEST(Mutants, are_found_by_the_simulator) {
  EXPECT_TRUE(
      first_seed_that_fails(detail::base::Mutant::stopped_is_invoked, fuzz::BackendSet::simulated));
  EXPECT_TRUE(
      first_seed_that_fails(detail::base::Mutant::pushed_back_lost, fuzz::BackendSet::simulated));
}

}  // namespace
}  // namespace tambour::mutants_test
