// Reproducible random numbers: a failing test prints its seed, and TAMBOUR_TEST_SEED sets the seed.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

namespace tambour::test {

/// The seed of this run: TAMBOUR_TEST_SEED if set, otherwise random.
inline std::uint64_t seed() {
  static const std::uint64_t chosen = [] {
    const char* wanted = std::getenv("TAMBOUR_TEST_SEED");
    return wanted != nullptr ? std::strtoull(wanted, nullptr, 0) : std::random_device()();
  }();
  return chosen;
}

class Random {
 public:
  Random() : generator_(seed()) {}

  /// A number from 0 to `end` - 1.
  std::uint64_t below(std::uint64_t end) { return generator_() % end; }

 private:
  std::mt19937_64 generator_;
};

}  // namespace tambour::test

/// Adds the seed to the messages of failures in the current scope.
#define TAMBOUR_TRACE_SEED() \
  SCOPED_TRACE(testing::Message() << "TAMBOUR_TEST_SEED=" << test::seed())
