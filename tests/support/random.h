// Random numbers that can be had again: a test that fails says its seed, and TAMBOUR_TEST_SEED
// repeats it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

namespace tambour::test {

/// The seed of this run. A run that nobody has asked for a seed tries a new one.
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

  /// From 0 to `end`, which is not among them.
  std::uint64_t below(std::uint64_t end) { return generator_() % end; }

 private:
  std::mt19937_64 generator_;
};

}  // namespace tambour::test

/// In a test: what fails from here on tells the seed.
#define TAMBOUR_TELL_SEED() SCOPED_TRACE(testing::Message() << "TAMBOUR_TEST_SEED=" << test::seed())
