// A random number generator with the same output on every machine, compiler and standard library.
//
// xoshiro256** by David Blackman and Sebastiano Vigna, seeded by SplitMix64, both in the public
// domain: https://prng.di.unimi.it/. The standard library's engines would be suitable, but the
// output of its distributions is implementation-defined.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include <tambour/detail/namespaces.h>

namespace tambour::sim::detail {

class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept {
    for (std::uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15;
      std::uint64_t mixed = seed;
      mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
      mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
      word = mixed ^ (mixed >> 31);
    }
  }

  std::uint64_t next() noexcept {
    const std::uint64_t drawn = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return drawn;
  }

  /// Uniformly distributed in [0, end). `end` is at least 1.
  std::uint64_t below(std::uint64_t end) noexcept {
    // Rejects the lowest values, which would make the modulo biased.
    const std::uint64_t uneven = (0 - end) % end;
    std::uint64_t drawn = next();
    while (drawn < uneven) drawn = next();
    return drawn % end;
  }

  /// Uniformly distributed in [min, max].
  std::int64_t between(std::int64_t min, std::int64_t max) noexcept {
    if (max <= min) return min;
    return min + std::int64_t(below(std::uint64_t(max - min) + 1));
  }

  bool chance(double probability) noexcept {
    // A probability of 0 draws no number, so that an unused option does not change the run.
    if (!(probability > 0)) return false;
    return double(next() >> 11) * 0x1p-53 < probability;
  }

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace tambour::sim::detail
